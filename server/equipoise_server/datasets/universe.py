"""Builds a histogram over the universe from raw codes, by the schema's rules, and refuses rows that break them."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from equipoise.errors import InvalidArgument
from equipoise.queries.schema import Attribute, Schema

MISSING = -1  # null, or not a number where DuckDB says so (NaN)
UNKNOWN = -2  # a label that is not a category; text that is no number or no date, as the edges ask for
BELOW = -3  # a value below the first edge; one at or above the last edge has the number of bins as its code

MAX_UNIVERSE = 1 << 26


def check_universe(schema: Schema) -> None:
    """Raise `InvalidArgument` for a universe whose histogram would not fit in memory."""
    if schema.universe_size > MAX_UNIVERSE:
        size = f"{schema.universe_size:,}"
        raise InvalidArgument("schema", f"has a universe of {size} records; at most {MAX_UNIVERSE:,} are allowed")


def build_histogram(
    schema: Schema, codes: Iterable[NDArray[np.int64]], counts: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Build the counts over the universe, int64[|X|], from groups of equal rows.

    Args:
        schema: the attributes with their rules.
        codes: for each attribute, the code of each group, int64[groups]: the position of a category or bin, or one
            of the negative codes above.
        counts: the number of rows in each group, int64[groups].

    Raises:
        InvalidArgument: "table", with the number of refused rows for each attribute and reason; the message never
            contains values, which are private.
    """
    cells = np.zeros(len(counts), dtype=np.int64)
    refusals = []
    for attribute, code in zip(schema.attributes, codes, strict=True):
        positions, refused = _apply_rules(attribute, code, counts)
        cells = cells * attribute.size + positions
        if refused:
            refusals.append(f"attribute {attribute.name}: {', '.join(refused)}")
    if refusals:
        raise InvalidArgument("table", "; ".join(refusals))
    histogram = np.zeros(schema.universe_size, dtype=np.int64)
    np.add.at(histogram, cells, counts)
    return histogram


def _apply_rules(
    attribute: Attribute, code: NDArray[np.int64], counts: NDArray[np.int64]
) -> tuple[NDArray[np.int64], list[str]]:
    """Return each group's category, and what is refused in words; refused groups are put in category 0."""
    positions = code.copy()
    refused = []

    def settle(chosen: NDArray[np.bool_], category: str, one: str, several: str) -> None:
        if category:
            positions[chosen] = attribute.index(category)
        elif chosen.any():
            rows = int(counts[chosen].sum())
            refused.append(f"{rows:,} {one if rows == 1 else several}")
            positions[chosen] = 0

    settle(code == MISSING, attribute.missing, "null", "nulls")
    if not attribute.edges:
        settle(code == UNKNOWN, attribute.unknown, "unknown category", "unknown categories")
        return positions, refused
    words = (
        ("not a date in ISO 8601", "not dates in ISO 8601") if attribute.dates else ("not a number", "not numbers")
    )
    settle(code == UNKNOWN, attribute.unknown, *words)
    if attribute.clamp:
        positions[code == BELOW] = 0
        positions[code == attribute.bins] = attribute.bins - 1
    else:
        settle((code == BELOW) | (code == attribute.bins), attribute.unknown, "out of range", "out of range")
    return positions, refused
