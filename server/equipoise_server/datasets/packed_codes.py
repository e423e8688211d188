"""Packs the codes of a row into a few whole numbers, so that equal rows are grouped by as few columns as possible.

A word is the mixed-radix number of some attributes' codes. An engine groups rows by its words faster, and in less
memory, than by the codes themselves, and sends less.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from equipoise.errors import InvalidArgument
from equipoise.queries.schema import Schema
from equipoise_server.datasets.counts import Counts
from equipoise_server.datasets.universe import BELOW, build_counts

MAX_WORD = 1 << 62


def words_of(schema: Schema) -> tuple[tuple[tuple[int, int], ...], ...]:
    """Deal a schema's attributes to words, in order: each attribute's axis, and what its code is multiplied by.

    Codes count from `BELOW`. Every word is below `MAX_WORD`.
    """
    words: list[list[tuple[int, int]]] = [[]]
    factor = 1
    for axis, size in enumerate(schema.sizes):
        if factor * radix(size) > MAX_WORD:
            words.append([])
            factor = 1
        words[-1].append((axis, factor))
        factor *= radix(size)
    return tuple(tuple(word) for word in words)


def radix(size: int) -> int:
    """Return how many codes there are for `size` categories: those, one above the last, and `BELOW` to -1."""
    return size + 1 - BELOW


def counts_of(schema: Schema, packed: Sequence[NDArray[np.int64]], counts: NDArray[np.int64]) -> Counts:
    """Return the counts of a table from groups of equal rows.

    Args:
        schema: the attributes with their rules.
        packed: the words of the groups, int64[groups] each.
        counts: the number of rows of each group, int64[groups].

    Raises:
        InvalidArgument: "table": it has no rows, or rows that the rules refuse.
    """
    if not len(counts):
        raise InvalidArgument("table", "has no records")
    return build_counts(schema, codes_of(schema, packed), counts)


def codes_of(schema: Schema, packed: Sequence[NDArray[np.int64]]) -> Iterator[NDArray[np.int64]]:
    """Yield each attribute's codes, int64[groups], from the words of groups; one attribute at a time."""
    for word, values in zip(words_of(schema), packed, strict=True):
        for axis, factor in word:
            yield values // factor % radix(schema.sizes[axis]) + BELOW
