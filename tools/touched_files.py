"""Counts the files that a change of each kind needs: those of real changes, which `changes.toml` lists.

python tools/touched_files.py                     the changes of the list, beside their limits
python tools/touched_files.py --files             lists the files as well
python tools/touched_files.py --change BASE..HEAD the files that a change in the history touched
"""

from __future__ import annotations

import argparse
import tomllib
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from trees import KINDS, changed_files, kind_of

LIST = Path(__file__).with_name("changes.toml")


@dataclass(frozen=True, kw_only=True)
class Change:
    """A change that was carried out, and the code and protos that it needed.

    `limit`: how many files its kind may need; `before`: how many it needed once, in words. `how` says whether it is
    a commit, a trial that was thrown away, or a thought. `edited`: paths from the root of the tree; `written`: new
    ones, below a package.
    """

    kind: str
    title: str
    limit: int
    before: str
    how: str
    edited: tuple[str, ...]
    written: tuple[str, ...] = ()

    @property
    def files(self) -> tuple[str, ...]:
        """All files, edited ones first."""
        return (*self.edited, *self.written)


def read_changes() -> tuple[Change, ...]:
    """The changes of the list."""
    listed: list[dict[str, Any]] = tomllib.loads(LIST.read_text(encoding="utf-8"))["change"]
    return tuple(
        Change(**(each | {"edited": tuple(each["edited"]), "written": tuple(each.get("written", ()))}))
        for each in listed
    )


def report(*, with_files: bool) -> None:
    """Print a line a change."""
    print(f"{'what is added':28}{'files':>6}{'limit':>7}{'before':>10}  {'how it was counted':20}the change")
    for change in read_changes():
        count = len(change.files)
        print(f"{change.kind:28}{count:>6}{change.limit:>7}{change.before:>10}  {change.how:20}{change.title}")
        if with_files:
            for path in change.files:
                print(f"    {path}")


def report_change(change: str, *, with_files: bool) -> None:
    """Print how many files of each kind a change touched."""
    paths = changed_files(change)
    counts = Counter(kind_of(path) for path in paths)
    print(", ".join(f"{kind} {counts[kind]}" for kind in KINDS if counts[kind]) or "nothing")
    print(f"code and protos together: {counts['code'] + counts['protos']} files")
    if with_files:
        for kind in KINDS:
            for path in paths:
                if kind_of(path) == kind:
                    print(f"    {kind:10} {path}")


def main() -> None:
    """Count the listed changes, or one of the history."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--change", help="two revisions, BASE..HEAD")
    parser.add_argument("--files", action="store_true", help="list the files")
    arguments = parser.parse_args()
    if arguments.change is None:
        report(with_files=arguments.files)
    else:
        report_change(arguments.change, with_files=arguments.files)


if __name__ == "__main__":
    main()
