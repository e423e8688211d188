"""Builds the counts of a table from raw codes, by the schema's rules, and refuses rows that break them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from equipoise.errors import InvalidArgument
from equipoise.queries.schema import Attribute, Schema
from equipoise.queries.universe_size import MAX_UNIVERSE
from equipoise_server.datasets.coded_counts import CodedCounts, code_type
from equipoise_server.datasets.counts import Counts
from equipoise_server.datasets.dense_counts import DenseCounts

MISSING = -1  # null, or not a number where DuckDB says so (NaN)
UNKNOWN = -2  # a label that is not a category; text that is no number or no date, as the edges ask for
BELOW = -3  # a value below the first edge; one at or above the last edge has the number of bins as its code

MAX_AXES = 60  # of a histogram: NumPy arrays have at most 64


def is_enumerable(sizes: Sequence[int], universe_size: int) -> bool:
    """Return whether all `universe_size` possible records can be listed, over attributes of these `sizes`."""
    return universe_size <= MAX_UNIVERSE and len(sizes) <= MAX_AXES


def build_counts(schema: Schema, codes: Iterable[NDArray[np.int64]], counts: NDArray[np.int64]) -> Counts:
    """Build the counts of a table from groups of equal rows: over the universe, or by its distinct records.

    Args:
        schema: the attributes with their rules.
        codes: for each attribute, the code of each group, int64[groups]: the position of a category or bin, or one
            of the negative codes above.
        counts: the number of rows in each group, int64[groups].

    Raises:
        InvalidArgument: "table", with the number of refused rows for each attribute and reason; the message never
            contains values, which are private.
    """
    rules = Rules(schema)
    built = counts_of_records(schema, rules.records(codes, counts), counts)
    rules.check()
    return built


def counts_of_records(schema: Schema, records: Iterable[NDArray[np.int64]], counts: NDArray[np.int64]) -> Counts:
    """Build the counts of a table from groups of equal records.

    Args:
        schema: the attributes.
        records: for each attribute, the category of each group, int64[groups].
        counts: the number of records in each group, int64[groups].
    """
    sizes, listed = schema.sizes, is_enumerable(schema.sizes, schema.universe_size)
    cells = np.zeros(len(counts), dtype=np.int64)
    coded = np.zeros((0 if listed else len(sizes), len(counts)), dtype=code_type(sizes))
    for axis, categories in enumerate(records):
        if listed:
            cells = cells * sizes[axis] + categories
        else:
            coded[axis] = categories
    if not listed:
        return CodedCounts.of(sizes, coded, counts)
    histogram = np.zeros(schema.universe_size, dtype=np.int64)
    np.add.at(histogram, cells, counts)
    return DenseCounts(histogram, sizes)


class Rules:
    """A schema's rules, which give codes their categories; and how many rows they have refused so far."""

    def __init__(self, schema: Schema) -> None:
        self._schema = schema
        self._refused: dict[tuple[str, str, str], int] = {}

    def records(self, codes: Iterable[NDArray[np.int64]], counts: NDArray[np.int64]) -> Iterator[NDArray[np.int64]]:
        """Yield the category of each group for each attribute, int64[groups]; refused groups are in category 0.

        `codes`, `counts`: as `build_counts` has them.
        """
        for attribute, code in zip(self._schema.attributes, codes, strict=True):
            yield self._apply(attribute, code, counts)

    def check(self) -> None:
        """Raise `InvalidArgument` where any row was refused."""
        problems = []
        for attribute in self._schema.names:
            refused = [
                f"{rows:,} {one if rows == 1 else several}"
                for (name, one, several), rows in self._refused.items()
                if name == attribute
            ]
            if refused:
                problems.append(f"attribute {attribute}: {', '.join(refused)}")
        if problems:
            raise InvalidArgument("table", "; ".join(problems))

    def _apply(self, attribute: Attribute, code: NDArray[np.int64], counts: NDArray[np.int64]) -> NDArray[np.int64]:
        positions = code.copy()

        def settle(chosen: NDArray[np.bool_], category: str, one: str, several: str) -> None:
            if category:
                positions[chosen] = attribute.index(category)
            elif chosen.any():
                reason = attribute.name, one, several
                self._refused[reason] = self._refused.get(reason, 0) + int(counts[chosen].sum())
                positions[chosen] = 0

        settle(code == MISSING, attribute.missing, "null", "nulls")
        if not attribute.edges:
            settle(code == UNKNOWN, attribute.unknown, "unknown category", "unknown categories")
            return positions
        words = (
            ("not a date in ISO 8601", "not dates in ISO 8601")
            if attribute.dates
            else ("not a number", "not numbers")
        )
        settle(code == UNKNOWN, attribute.unknown, *words)
        if attribute.clamp:
            positions[code == BELOW] = 0
            positions[code == attribute.bins] = attribute.bins - 1
        else:
            settle((code == BELOW) | (code == attribute.bins), attribute.unknown, "out of range", "out of range")
        return positions
