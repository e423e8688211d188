"""Tables that a trial is about: read into the categories of a schema, record by record."""

from __future__ import annotations

import csv
import importlib
import math
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from datetime import date, datetime
from pathlib import Path
from typing import Any

import numpy as np

from equipoise.errors import InvalidArgument
from equipoise.frames import Frame
from equipoise.model.synopsis import Synopsis
from equipoise.queries.dates import seconds_of
from equipoise.queries.schema import Attribute, Schema

MISSING_TEXTS = ("", "NA")  # in CSV, as a server reads it


def records_of(table: object, schema: Schema) -> Synopsis:
    """Returns the records of a table, as a schema sees them.

    Args:
        table: the path of a CSV or Parquet file; a `Frame`; columns by name; or what hands over Arrow tables, such
            as data frames of pandas and Polars. Columns that the schema does not have are passed over.
        schema: of the table.

    Raises:
        InvalidArgument: a column is missing, or has a value that is in no category, as where a table is registered;
            or a file cannot be read.
    """
    columns = _columns(table, schema)
    absent = [name for name in schema.names if name not in columns]
    if absent:
        raise InvalidArgument(absent[0], f"is no column of the table; there are {', '.join(map(str, columns))}")
    codes = [_codes(attribute, columns[attribute.name]) for attribute in schema.attributes]
    if len(set(map(len, codes))) > 1 or not codes[0]:
        raise InvalidArgument("table", "has no records" if not codes[0] else "has columns of different lengths")
    return Synopsis.from_categories(np.array(codes, dtype=np.int64).T, schema.sizes)


def _columns(table: object, schema: Schema) -> Mapping[str, Sequence[object]]:
    if isinstance(table, str | Path):
        path = Path(table)
        return _parquet_columns(path, schema) if path.suffix == ".parquet" else _csv_columns(path)
    if isinstance(table, Frame):
        return {name: list(table[name]) for name in table.names}
    if isinstance(table, Mapping):
        return table
    if hasattr(table, "__arrow_c_stream__"):
        return _python(_installed("pyarrow").table(table), schema)
    raise InvalidArgument("table", "must be a file, columns by name, or a data frame")


def _csv_columns(path: Path) -> Mapping[str, Sequence[object]]:
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            header, *rows = csv.reader(file, delimiter="\t" if path.suffix == ".tsv" else ",", strict=True)
    except (OSError, UnicodeDecodeError, csv.Error, ValueError) as error:
        said = getattr(error, "strerror", None) or "is empty, or no CSV in UTF-8"
        raise InvalidArgument(str(path), f"cannot be read: {said}") from None
    if any(len(row) != len(header) for row in rows):
        raise InvalidArgument(str(path), "has lines of different lengths")
    values = zip(*rows, strict=True) if rows else ([] for _ in header)
    return {
        name: [None if each in MISSING_TEXTS else each for each in column]
        for name, column in zip(header, values, strict=True)
    }


def _parquet_columns(path: Path, schema: Schema) -> Mapping[str, Sequence[object]]:
    reader = _installed("pyarrow.parquet")
    try:
        return _python(reader.read_table(path), schema)
    except (OSError, ValueError):
        raise InvalidArgument(str(path), "cannot be read as Parquet") from None


def _python(table: Any, schema: Schema) -> Mapping[str, Sequence[object]]:
    return {name: table[name].to_pylist() if name in schema.names else [] for name in map(str, table.column_names)}


def _codes(attribute: Attribute, values: Sequence[object]) -> list[int]:
    """The category of each value; equal values are looked up once."""
    known: dict[object, int] = {}
    named, codes = dict(attribute.codes), []
    for value in values:
        key = value.__class__, value  # True and 1 are equal
        code = known.get(key)
        if code is None:
            code = known[key] = _category(attribute, value, named)
        codes.append(code)
    return codes


def _category(attribute: Attribute, value: object, codes: Mapping[str, str]) -> int:
    if value is None or (isinstance(value, float) and math.isnan(value)):
        if not attribute.missing:
            raise InvalidArgument(attribute.name, "has missing values, for which the schema has no category")
        return attribute.index(attribute.missing)
    if attribute.edges:
        return _bin(attribute, value)
    label = _label(value)
    if label in codes:
        return attribute.index(codes[label])
    if label in attribute.categories and label not in (attribute.missing, attribute.unknown, attribute.none):
        return attribute.index(label)
    return _unlisted(attribute, value)


def _bin(attribute: Attribute, value: object) -> int:
    """The bin of a number or date. A bin's own name stands for it, too, as in the records of a synopsis."""
    if isinstance(value, str) and value in attribute.categories:
        return attribute.index(value)
    number = _moment(attribute, value) if attribute.dates else _number(attribute, value)
    place = bisect_right(attribute.edges, number) - 1
    if 0 <= place < attribute.bins and not math.isnan(number):
        return place
    if attribute.clamp:
        return max(0, min(place, attribute.bins - 1))
    return _unlisted(attribute, value)


def _number(attribute: Attribute, value: object) -> float:
    try:
        return float(str(value))
    except ValueError:
        raise InvalidArgument(attribute.name, f"has {value!r}, which is no number") from None


def _moment(attribute: Attribute, value: object) -> float:
    if isinstance(value, datetime):
        value = value.replace(microsecond=0)  # edges are whole seconds
    if not isinstance(value, str | date):
        raise InvalidArgument(attribute.name, f"has {value!r}, which is no date")
    return seconds_of(attribute.name, value)


def _unlisted(attribute: Attribute, value: object) -> int:
    if not attribute.unknown:
        raise InvalidArgument(attribute.name, f"has {value!r}, which is in no category of the schema")
    return attribute.index(attribute.unknown)


def _label(value: object) -> str:
    """A value as the label of a category, written as a server writes it."""
    if isinstance(value, bool | np.bool_):
        return "true" if value else "false"
    return str(value)


def _installed(module: str) -> Any:
    try:
        return importlib.import_module(module)
    except ImportError:
        raise InvalidArgument(module, "is not installed; run: pip install 'equipoise[arrow]'") from None
