"""Suggests a schema for a table, for its custodian to edit.

What is suggested was looked up in private data. A schema is public, so it is the custodian who answers for what it
tells: that a rare label occurs, or how far a column reaches. Edges are round numbers and clamp, so they tell about
the smallest and the largest value only between which round numbers it lies. Labels of a lookup file are public; of
the table they tell only whether it has others.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from pathlib import Path

from equipoise.errors import InvalidArgument
from equipoise.queries.dates import seconds_of
from equipoise.queries.schema import Attribute, Schema
from equipoise.queries.schema_checks import MAX_EDGE, MAX_LABEL, bin_labels
from equipoise.queries.schema_file import codes_of_file, period_names
from equipoise_server.datasets.columns import MAX_LABELS, Column, Values
from equipoise_server.datasets.label_codes import label_codes
from equipoise_server.datasets.source import source_at

MAX_BINS = 10
MAX_WHOLE = 24  # different whole numbers that are categories of their own, such as months
MAX_DAYS = 31  # of a column of dates, that get a bin each
MISSING, OTHER = "missing", "other"
MONTHS = (1, 3, 6, 12, 24, 60, 120, 240, 600, 1200)  # what bins of dates may span


@dataclass(frozen=True)
class Suggestion:
    """One attribute, or why there is none; `reason` says what was looked up, in a few words."""

    column: str
    attribute: Attribute | None
    reason: str


def suggest_schema(table: Path, lookups: Mapping[str, Path] | None = None) -> tuple[Suggestion, ...]:
    """Look at a table and suggest an attribute for each of its columns.

    Args:
        table: where it lies.
        lookups: by the column's name a lookup file, which has the codes in its first column and their labels in its
            second one.

    Raises:
        InvalidArgument: the table or a lookup file cannot be read, or the table has no such column.
    """
    source = source_at(table)
    if not source.exists():
        raise InvalidArgument(str(table), "there is no such table")
    codes = {column: codes_of_file(path) for column, path in (lookups or {}).items()}
    columns = source.columns()
    for name in codes:
        if name not in [column.name for column in columns]:
            raise InvalidArgument("lookup", f"the table has no column named {name!r}")
    return tuple(
        _coded(column, codes[column.name]) if column.name in codes else suggestion(column) for column in columns
    )


def schema_of(suggestions: Sequence[Suggestion]) -> Schema:
    """Return the schema of all suggested attributes. Raises `InvalidArgument` where there are none."""
    attributes = tuple(each.attribute for each in suggestions if each.attribute is not None)
    if not attributes:
        raise InvalidArgument("table", "has no column that a schema could be suggested for")
    return Schema(attributes)


def suggestion(column: Column) -> Suggestion:
    """Suggest an attribute for one column."""
    if not column.name.isprintable():
        return Suggestion(column.name, None, "a name that is not printable")
    few = 0 < len(column.labels) <= (MAX_WHOLE if column.values is Values.WHOLE else MAX_LABELS)
    if column.values in {Values.LABELS, Values.WHOLE} and few:
        return _labels(column)
    if column.low is None or column.high is None:
        return Suggestion(column.name, None, "no values" if column.missing else f"more than {MAX_LABELS} labels")
    if max(abs(column.low), abs(column.high)) > MAX_EDGE / 10:
        return Suggestion(column.name, None, "numbers too large for edges")
    dates = column.values is Values.DATES
    edges, names = _periods(column.low, column.high) if dates else (round_edges(column.low, column.high), [])
    missing = MISSING if column.missing else ""
    categories = (*(names or bin_labels(edges, dates)), *filter(None, [missing]))
    attribute = Attribute(column.name, categories, edges, missing=missing, clamp=True, dates=dates)
    return Suggestion(column.name, attribute, f"{column.values.value}, in {len(edges) - 1} bins")


def _coded(column: Column, codes: Mapping[str, str]) -> Suggestion:
    """Suggest the labels of a lookup file, and a category for what else the table holds."""
    labels = tuple(dict.fromkeys(codes.values()))
    listed = Attribute(column.name, labels, codes=tuple(sorted(codes.items())))
    spellings = label_codes(listed)
    others = sum(label not in spellings for label in column.labels)
    told = f", and {others:,} others" if others else "" if column.labels else ", and maybe others"
    missing = _unlike(MISSING, spellings) if column.missing else ""
    other = _unlike(OTHER, spellings) if told else ""
    categories = (*labels, *filter(None, [missing, other]))
    attribute = replace(listed, categories=categories, missing=missing, unknown=other)
    return Suggestion(column.name, attribute, f"labels of its lookup file{told}")


def _unlike(label: str, labels: Container[str]) -> str:
    """Return a label that is none of some others."""
    while label in labels:
        label += "_"
    return label


def _labels(column: Column) -> Suggestion:
    if any(not label.isprintable() or not 0 < len(label) <= MAX_LABEL for label in column.labels):
        return Suggestion(column.name, None, "labels that are empty, too long, or not printable")
    whole = column.values is Values.WHOLE
    labels = tuple(sorted(column.labels, key=float) if whole else sorted(column.labels))
    missing = _unlike(MISSING, labels) if column.missing else ""
    categories = (*labels, *filter(None, [missing]))
    attribute = Attribute(column.name, categories, missing=missing, ordered=True if whole else None)
    return Suggestion(column.name, attribute, f"{len(labels)} {column.values.value}")


def round_edges(low: float, high: float) -> tuple[float, ...]:
    """Return the edges of at most `MAX_BINS` equal bins between multiples of 1, 2 or 5 times a power of ten.

    The first edge is at most `low`, the last one above `high`.
    """
    least = max((high - low) / MAX_BINS, abs(high) * 1e-12, 1e-12)
    exponent = math.floor(math.log10(least))
    for factor in (1, 2, 5, 10, 20, 50):
        first, last = (math.floor(value / factor / 10.0**exponent) for value in (low, high))
        # The doubles nearest to decimal forms; one more at each end to choose from, as division has rounded.
        edges = [float(f"{place * factor}e{exponent}") for place in range(first - 1, last + 3)]
        edges = edges[bisect_right(edges, low) - 1 : bisect_right(edges, high) + 1]
        if len(edges) - 1 <= MAX_BINS:
            return tuple(edges)
    raise AssertionError("fifty times a tenth of the range leaves two bins")


def _periods(low: float, high: float) -> tuple[tuple[float, ...], list[str]]:
    """Return the edges of bins of dates, and what they are called; no names where they are called by their ends.

    Up to `MAX_DAYS` days get a bin each. Otherwise there are at most about `MAX_BINS` bins, of months or years.
    """
    first, last = (datetime.fromtimestamp(value, UTC) for value in (low, high))
    if (last.date() - first.date()).days < MAX_DAYS:
        days = [date.fromordinal(day) for day in range(first.toordinal(), last.toordinal() + 2)]
        return _seconds(days), period_names(days, "day")
    begin, end = (12 * moment.year + moment.month - 1 for moment in (first, last))
    step = next((step for step in MONTHS if end // step - begin // step < MAX_BINS), MONTHS[-1])
    places = range(begin // step, end // step + 2)
    days = [date(place * step // 12, place * step % 12 + 1, 1) for place in places]
    by = {1: "month", 12: "year"}.get(step, "")
    return _seconds(days), period_names(days, by) if by else []


def _seconds(days: Sequence[date]) -> tuple[float, ...]:
    return tuple(seconds_of("edges", day) for day in days)
