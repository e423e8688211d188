"""Plays rounds and sessions from fixed seeds and writes what came of them: values under plain words.

    python tools/round_values.py                 prints the values as JSON
    python tools/round_values.py --out FILE      writes them
    python tools/round_values.py --compare FILE  names every place where they are not those of the file

The values are answers with their intervals, methods and cells, what both ledgers are charged, what plans promise,
what accounts come to, and which checks a bundle passes or fails. They hold no hashes, no formats, and no names of
classes or fields: these may change, and the values must stay. Every mechanism draws from a seed that is given to it
here, so that no value depends on how a seed is bound to the parameters of its round.

Everything of the two packages that this script uses is imported in `project_imports.py`. After modules have moved,
only that needs a change.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path

from mechanism_values import auto_parts, round_parts, session_parts, statement_parts
from round_cases import Values
from service_values import held_parts


def all_values() -> Values:
    """Everything, in parts that may change one by one."""
    held, accounts = held_parts()
    return {
        "statements": statement_parts(),
        "rounds": round_parts(),
        "choices of auto": auto_parts(),
        "sessions": session_parts(),
        "held": held,
        "accounts": accounts,
    }


def text_of(values: Values) -> str:
    """JSON with a line a row. Floats are written so that they are read again exactly."""
    indented = json.dumps(values, indent=1, allow_nan=False)
    return re.sub(r"\[[^][{}]*\]", lambda row: re.sub(r"\n\s*", " ", row[0]), indented) + "\n"


def differences(before: object, after: object, place: str = "") -> Iterator[str]:
    """Every place where two values are not the same."""
    if isinstance(before, dict) and isinstance(after, dict):
        for key in sorted({*before, *after}):
            if key in before and key in after:
                yield from differences(before[key], after[key], f"{place} > {key}")
            else:
                yield f"{place} > {key}: only {'before' if key in before else 'after'}"
    elif isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        for number, (one, other) in enumerate(zip(before, after, strict=True)):
            yield from differences(one, other, f"{place}[{number}]")
    elif repr(before) != repr(after):
        yield f"{place}: {before!r} before, {after!r} after"


def main() -> int:
    """Play everything; print, write or compare."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, help="write the values to this file")
    parser.add_argument("--compare", type=Path, help="name the places where they differ from this file's")
    arguments = parser.parse_args()
    text = text_of(all_values())
    if arguments.out is not None:
        arguments.out.write_text(text, encoding="utf-8")
    if arguments.compare is None:
        if arguments.out is None:
            sys.stdout.write(text)
        return 0
    known = json.loads(arguments.compare.read_text(encoding="utf-8"))
    found = list(differences(known, json.loads(text)))
    print("\n".join(found) or "All values are the same.")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
