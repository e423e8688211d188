"""Schema files as people write them: labels from a lookup file, and edges at every day, month or year.

    {"version": 1, "attributes": [
      {"name": "origin", "categories": {"file": "airports.csv", "column": "iata"}},
      {"name": "carrier", "categories": {"file": "carriers.csv", "column": "code", "label": "name"}},
      {"name": "departure", "edges": {"from": "2013-01-01", "to": "2014-01-01", "by": "month"}}
    ]}

Such labels and edges are written out where the file is read, on the user's machine. So a schema that is registered,
hashed or shown holds all of its labels and edges, and does not depend on another file.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import date, timedelta
from json import dumps
from pathlib import Path

from equipoise.errors import InvalidArgument
from equipoise.queries.schema import Schema
from equipoise.queries.schema_checks import MAX_CATEGORIES, check_keys, check_text
from equipoise.queries.strict_json import parse_json
from equipoise.queries.text_file import read_text

LAST_DAY = 28  # of a month, that every month has
MONTHS = {"month": 1, "year": 12}


def read_schema_file(path: Path) -> Schema:
    """Return the schema of a file.

    Args:
        path: the file; the lookup files that it names are relative to it.

    Raises:
        InvalidArgument: a file cannot be read; or a value is wrong, whose place the message names, such as
            `schema.attributes[2].edges`.
    """
    text = read_text(path)
    document = parse_json(text, "schema")
    attributes = document.get("attributes") if isinstance(document, dict) else None
    if not isinstance(attributes, list):
        return Schema.from_json(text)
    written = [_written_out(f"schema.attributes[{i}]", each, path.parent) for i, each in enumerate(attributes)]
    return Schema.from_json(dumps({**document, "attributes": written}))


def _written_out(field: str, document: object, directory: Path) -> object:
    """Return an attribute with all of its labels and edges; whatever else is wrong with it is found later."""
    if not isinstance(document, dict):
        return document
    if isinstance(categories := document.get("categories"), dict):
        document = {**document, **_looked_up(f"{field}.categories", categories, directory)}
    if isinstance(edges := document.get("edges"), dict):
        days = _days(f"{field}.edges", edges)
        names = period_names(days, edges["by"])
        labels = {"categories": names} if names else {}
        document = {**labels, **document, "edges": [day.isoformat() for day in days]}
    return document


def _looked_up(field: str, said: Mapping[str, object], directory: Path) -> dict[str, object]:
    """Return the categories that a lookup file lists, in its order, and the codes that stand for them, if any."""
    check_keys(field, said, {"file", "column", "label"})
    file, column = (check_text(f"{field}.{key}", said.get(key, "")) for key in ("file", "column"))
    if "label" not in said:
        return {"categories": [row[0] for row in read_lookup(directory, file, field, column=column)]}
    label = check_text(f"{field}.label", said["label"])
    codes = lookup_codes(read_lookup(directory, file, field, column=column, label=label), field)
    return {"categories": list(dict.fromkeys(codes.values())), "codes": codes}


def period_names(days: Sequence[date], by: str) -> list[str]:
    """Return what bins of days, months or years are called: `2013-01`.

    Args:
        days: the ends of the bins, ascending.
        by: `day`, `month` or `year`, which each of them spans.

    Returns:
        A name for each bin; none at all where they are not whole ones, and are called by their ends.
    """
    shown = _SHOWN[by]
    return [shown(day) for day in days[:-1]] if shown(days[0]) else []


def codes_of_file(path: Path) -> dict[str, str]:
    """Return the codes in the first column of a lookup file, each with its label in the second one.

    Raises:
        InvalidArgument: `lookup`: the file cannot be read, or has no such columns, or a code twice.
    """
    header = _rows(path.parent, path.name, "lookup")[0]
    if len(header) < 2:
        raise InvalidArgument("lookup", f"{path.name} must have two columns: codes, and their labels")
    rows = read_lookup(path.parent, path.name, "lookup", column=header[0], label=header[1])
    return lookup_codes(rows, "lookup")


def lookup_codes(rows: Sequence[Sequence[str]], field: str) -> dict[str, str]:
    """Return what each code stands for.

    Args:
        rows: a code and its label each.
        field: what errors name.

    Raises:
        InvalidArgument: a code is listed twice.
    """
    codes = {row[0]: row[1] for row in rows}
    if len(codes) < len(rows):
        listed = [row[0] for row in rows]
        twice = next(code for place, code in enumerate(listed) if code in listed[:place])
        raise InvalidArgument(field, f"has the code {twice!r} twice")
    return codes


def read_lookup(directory: Path, file: str, field: str, **wanted: str) -> list[list[str]]:
    """Return columns of a lookup file, CSV with a header, row by row.

    Args:
        directory: where it lies.
        file: its name; separated by tabs where it ends in .tsv.
        field: what errors name.
        wanted: the names of the columns, by what the schema calls them.

    Raises:
        InvalidArgument: the file or a column is missing or damaged, or a value is no valid label.
    """
    header, *listed = _rows(directory, file, field)
    places = []
    for key, column in wanted.items():
        if header.count(column) != 1:
            many = f"{header.count(column)} columns" if column in header else "no column"
            raise InvalidArgument(f"{field}.{key}", f"{file} has {many} named {column!r}")
        places.append(header.index(column))
    found = [[row[place] if place < len(row) else "" for place in places] for row in listed]
    for number, row in enumerate(found, start=2):
        for value in row:
            check_text(f"{field}: row {number} of {file}", value)
    return found


def _rows(directory: Path, file: str, field: str) -> list[list[str]]:
    """Return the rows of a CSV file but empty ones, at least one, which is its header."""
    lines = read_text(directory / file).splitlines()
    rows = csv.reader(lines, delimiter="\t" if file.lower().endswith(".tsv") else ",", strict=True)
    try:
        return [row for row in rows if row] or [[]]
    except csv.Error:
        raise InvalidArgument(f"{field}.file", f"{file} is damaged, or no CSV") from None


def _days(field: str, said: Mapping[str, object]) -> list[date]:
    """Return the days from the first to the last, by days, months or years."""
    texts = _texts(field, said, ("from", "to", "by"))
    if texts[2] not in _SHOWN:
        raise InvalidArgument(f"{field}.by", f"must be one of {', '.join(_SHOWN)}")
    first, last = (_day(f"{field}.{key}", text) for key, text in zip(("from", "to"), texts, strict=False))
    if texts[2] != "day" and first.day > LAST_DAY:
        raise InvalidArgument(f"{field}.from", f"must be one of the first {LAST_DAY} days of a month")
    days = [first]
    with suppress(ValueError, OverflowError):  # beyond the last year that there is
        while days[-1] < last:
            if len(days) > MAX_CATEGORIES:
                raise InvalidArgument(field, f"are more than {MAX_CATEGORIES:,}")
            days.append(_after(first, len(days), texts[2]))
    if days[-1] != last or first == last:
        raise InvalidArgument(f"{field}.to", f"must be a whole number of {texts[2]}s after from, at least one")
    return days


def _after(first: date, steps: int, by: str) -> date:
    if by == "day":
        return first + timedelta(days=steps)
    months = first.year * 12 + first.month - 1 + steps * MONTHS[by]
    return first.replace(year=months // 12, month=months % 12 + 1)


def _day(field: str, text: str) -> date:
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise InvalidArgument(field, f"is {text!r}, no date such as 2013-01-31") from None


def _texts(field: str, said: Mapping[str, object], keys: tuple[str, ...]) -> list[str]:
    check_keys(field, said, set(keys))
    return [check_text(f"{field}.{key}", said.get(key, "")) for key in keys]


# What bins are called that are whole days, months or years; empty where they are called by their ends.
_SHOWN: Mapping[str, Callable[[date], str]] = {
    "day": date.isoformat,
    "month": lambda day: day.isoformat()[:7] if day.day == 1 else "",
    "year": lambda day: day.isoformat()[:4] if (day.month, day.day) == (1, 1) else "",
}
