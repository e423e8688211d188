"""How the commands print: one JSON object, or lines and tables for people."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from datetime import datetime
from pathlib import Path
from typing import TypeVar

from rich import box
from rich.console import Console
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from equipoise.queries.schema import Schema
from equipoise.wire.printable import printable

out = Console(emoji=False)
err = Console(stderr=True, emoji=False)

T = TypeVar("T")
Columns = Mapping[str, Callable[[T], object]]  # what is shown of a thing, by the title of the column

_WIDEST = 1_000  # columns
_BEGIN_NUMBERS = set("0123456789-(")
# Ids of rounds, requests and certificates (longer numbers are printed with commas); times and days.
_NO_NUMBER = re.compile(r"[0-9a-f]{16,}|\d{4}-\d\d-\d\d(?:[ T].*)?")
BAR = 24  # signs


def print_json(value: object) -> None:
    """One JSON object on one line. Not through rich, which would wrap it at the terminal's width."""
    text = json.dumps(plain(value), ensure_ascii=False)
    # What a terminal would obey, or cannot show, is within a string, where JSON has another spelling of it.
    print("".join(each if each.isprintable() else json.dumps(each)[1:-1] for each in text), flush=True)


def plain(value: object) -> object:
    """`value` as what JSON can say: times in ISO 8601, bytes in hexadecimal, infinite and NaN as null."""
    match value:
        case Schema():
            return json.loads(value.to_json())
        case datetime():
            return value.isoformat()
        case bytes():
            return value.hex()
        case Path():
            return str(value)
        case float():
            return value if math.isfinite(value) else None
        case dict():
            return {str(key): plain(each) for key, each in value.items()}
        case list() | tuple():
            return [plain(each) for each in value]
        case _ if is_dataclass(value):
            return {each.name: plain(getattr(value, each.name)) for each in fields(value)}
        case _:
            return value


def fraction(number: float | None) -> str:
    """`number` to five digits after the point, nothing where an answer does not carry it."""
    return "" if number is None else f"{number:.5f}"


def print_line(text: str) -> None:
    """One line of plain text, which no terminal obeys, and which is not read as markup or wrapped."""
    out.print(printable(text), markup=False, highlight=False, soft_wrap=True)


def print_aside(text: str) -> None:
    """One line for the person at the terminal, on stderr: no part of what the command answers."""
    err.print(printable(text), markup=False, highlight=False, soft_wrap=True)


def print_rows(columns: Columns[T], things: Iterable[T]) -> None:
    """A table with a row for each thing."""
    print_table(tuple(columns), ([shown(each) for shown in columns.values()] for each in things))


def print_list(name: str, things: Sequence[T], columns: Columns[T], as_json: bool) -> None:
    """Print a list: as one JSON object that holds it under its name, or as a table.

    Args:
        name: the key of the list in the object.
        things: what is listed, a row each.
        columns: of the table; the object has all fields.
        as_json: whether the object is printed.
    """
    if as_json:
        print_json({name: things})
    else:
        print_rows(columns, things)


def print_table(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Print a table of plain texts, with numbers to the right. It is as wide as it needs to be: nothing is cut off.

    Args:
        columns: the titles.
        rows: as many cells each as there are titles.
    """
    texts = [[printable(str(cell)) for cell in row] for row in rows]
    shown = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False)
    for number, column in enumerate(columns):
        numeric = is_numeric([row[number] for row in texts])
        shown.add_column(printable(column), justify="right" if numeric else "left", no_wrap=True)
    for row in texts:
        shown.add_row(*map(Text, row))
    natural = Measurement.get(out, out.options.update(width=_WIDEST), shown).maximum
    Console(width=max(natural, out.width), emoji=False).print(shown)


def is_numeric(cells: Iterable[str]) -> bool:
    """Tell whether all cells are numbers, which are aligned to the right. An id of digits or a time is none."""
    return all(cell[:1] in _BEGIN_NUMBERS and not _NO_NUMBER.fullmatch(cell) for cell in cells)


def bars_of(sizes: Sequence[float]) -> list[str]:
    """Return a bar for each number, of `BAR` signs for the largest; none for numbers below 0."""
    largest = max(sizes, default=0.0)
    return ["█" * round(BAR * max(0.0, size) / largest) if largest > 0 else "" for size in sizes]


def print_facts(facts: Iterable[tuple[str, object]]) -> None:
    """Names and values, one a line; without those that are None."""
    for name, value in facts:
        if value is not None:
            print_line(f"  {name:<22} {value}")


def counted(number: int, noun: str) -> str:
    """Return a number with its noun: 1 query, 2,000 queries.

    Args:
        number: how many there are.
        noun: what they are, in the singular.
    """
    plural = f"{noun[:-1]}ies" if noun.endswith("y") else f"{noun}s"
    return f"{number:,} {noun if number == 1 else plural}"
