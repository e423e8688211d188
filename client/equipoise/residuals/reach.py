"""How wide intervals must be that hold for everything that can ever be asked of one measurement.

Whoever has seen answers can ask next where the noise seems to be large. So an interval must not depend on how many
statements a round declares: all statements that the family tells share beta, for ever. Each has the part
`2^-bits` of it, where `bits` is the length of a code word for it. In such a prefix code the parts sum to at most 1
(Kraft's inequality), and by a union bound all intervals of all rounds with the same beta hold together. Simple
statements have short words, and so narrower intervals.

A word says one of three things:

1. (1 bit) A sum of boxes. As many bits as there are boxes; then for each which set of the family it is over, and on
   each of its axes the categories that it selects: 1 bit, then their number and which of so many there are, or, for
   neighbours, the first and the last. Of several boxes each has `COEFFICIENT_BITS` for its coefficient; of a single
   one it is 1, or -1 of the complement. What is the same for all records has no error, and no word.
2. (2 bits) Which set of the family, and which of its cells: 1 bit for each.
3. (2 bits) Which set of the family, and one cell of its table. There is a number that no set has: after it follow
   which attribute is added up, and which two of its ends values are clamped to, which the schema makes weights of;
   then 1 bit, and the boxes of the records that count, as in 1, or which set and which of its cells, as in 2.

Everything is in whole bits, so that it is the same on every machine.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from equipoise.queries.box_terms import Vectors
from equipoise.queries.compiled_workload import MAX_WEIGHT
from equipoise.queries.restricted_tables import RestrictedTables
from equipoise.queries.workload_compiler import CompiledWorkload
from equipoise.residuals.family import ResidualFamily

UNIT = 1 << 20  # logarithms of plans are whole units of 2^-20
COEFFICIENT_BITS = (2 * MAX_WEIGHT).bit_length()
MAX_COUNTED_CATEGORIES = (
    4096  # categories, of which the number of choices is not computed but bounded by all subsets
)
BLOCK = 1 << 12  # vectors that are looked at at once
_LOG_2 = math.log(2) * (1 + 1e-12)


def log_chance(beta: float) -> Fraction:
    """Return `ln(2 / beta)`, for both sides of intervals; rounded up, so that no machine's logarithm changes it."""
    return Fraction(math.ceil(math.log(2 / beta) * (1 + 1e-9) * UNIT), UNIT)


def reaches(log: Fraction, bits: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return how many standard deviations statements of these code lengths may err by: float64[k].

    A sub-Gaussian number of variance v exceeds `sqrt(2 v (log + bits ln 2))` on either side with probability `beta
    2^-bits` at most (Chernoff's bound).

    Args:
        log: the natural logarithm of 2 / beta, rounded up.
        bits: int64[k], at least 1.
    """
    return np.asarray(np.sqrt(2 * (float(log) + bits * _LOG_2)) * (1 + 1e-12))


def most_bits(family: ResidualFamily) -> dict[tuple[int, ...], int]:
    """Return the longest code word of any statement about each of the family's largest sets: of sums."""
    return {
        axes: max(_weights_bits(family, axis) for axis in axes) + _set_bits(family) + _cells(family, axes)
        for axes in family.largest
    }


def code_lengths(workload: CompiledWorkload, family: ResidualFamily) -> NDArray[np.int64]:
    """Return the length of every query's code word: int64[k]. The family must hold every statement's table."""
    sizes, queries = workload.schema_sizes, workload.query_count
    boxes, lengths, prefixes = np.zeros(queries, np.int64), np.zeros(queries, np.int64), np.ones(queries, np.int64)
    vectors = [_vector_bits(each) for each in workload.vectors]
    for group in workload.groups:
        if any(sizes[axis] > 1 for axis in group.axes):
            own = np.full(len(group.queries), _set_bits(family))
            for place, axis in enumerate(group.axes):
                own += vectors[axis][group.vectors[:, place]]
            np.add.at(boxes, group.queries, 1)
            np.add.at(lengths, group.queries, own)
    for restricted in workload.restricted:
        if any(sizes[axis] > 1 for axis in restricted.table_axes):
            asked = restricted.first_queries[:, None] + np.arange(restricted.cells)
            np.add.at(boxes, asked, 1)
            np.add.at(lengths, asked, _restricted_bits(restricted, vectors, family)[:, None])
        if restricted.weights is not None:
            prefixes[restricted.first_queries[:, None] + np.arange(restricted.cells)] = _weights_bits(
                family, restricted.weights.axis
            )
    lengths += prefixes + boxes + np.where(boxes > 1, boxes * COEFFICIENT_BITS, 0)
    sets = workload.statement_tables()
    tables = np.array([_cells(family, axes) for axes in sets], dtype=np.int64)
    subsets = np.where(workload.weighted, prefixes, 2) + _set_bits(family)
    lengths = np.minimum(lengths, subsets + np.repeat(tables, np.diff(workload.statement_offsets)))
    for marginal in workload.marginals:
        cells = _cells(family, marginal.axes)
        lengths[marginal.first_query : marginal.first_query + cells] = 2 + _set_bits(family) + cells.bit_length()
    return np.asarray(lengths)


def own_code_lengths(asked: CompiledWorkload) -> NDArray[np.int64]:
    """Return the length of a code word for each count of one statement, whatever table it is about: int64[k].

    A word says which attributes the table is over, and then the count in the code of that table.

    Args:
        asked: the statement, compiled alone, whose table is one that a family may hold.
    """
    (table,) = asked.statement_tables()
    which = len(table) + 1 + len(table) * (len(asked.schema_sizes) - 1).bit_length()
    return code_lengths(asked, ResidualFamily.closed(asked.schema_sizes, [table])) + which


def _restricted_bits(
    tables: RestrictedTables, vectors: Sequence[NDArray[np.int64]], family: ResidualFamily
) -> NDArray[np.int64]:
    """Return the bits that say one cell of each table in its box: one category of each of the cells' axes."""
    own = np.full(len(tables.first_queries), _set_bits(family))
    own += sum(_single_bits(family.sizes[axis]) for axis in tables.axes)
    for place, axis in enumerate(tables.box_axes):
        if axis not in tables.axes:
            own += vectors[axis][tables.vectors[:, place]]
    return own


def _set_bits(family: ResidualFamily) -> int:
    return len(family.sets).bit_length()


def _weights_bits(family: ResidualFamily, axis: int) -> int:
    """Bits that say what is added up, and that boxes or cells follow."""
    size = family.sizes[axis]
    return 3 + _set_bits(family) + len(family.sizes).bit_length() + (size * (size + 1) // 2).bit_length()


def _cells(family: ResidualFamily, axes: tuple[int, ...]) -> int:
    return math.prod(family.sizes[axis] for axis in axes)


def _vector_bits(vectors: Vectors) -> NDArray[np.int64]:
    """Return for each choice of categories of one axis the bits that say it: int64[count]."""
    size, selected = vectors.size, vectors.covered()
    if size == 1:
        return np.zeros(len(selected), np.int64)
    bits = np.array([_subset_bits(size, number) for number in selected.tolist()], dtype=np.int64)
    for start in range(0, len(bits), BLOCK):
        numbers = np.arange(start, min(start + BLOCK, len(bits)), dtype=np.int32)
        rows = vectors.rows(numbers).astype(np.int8)
        neighbours = (np.diff(rows, axis=1, prepend=0) == 1).sum(axis=1) == 1
        runs = np.where(neighbours, (size * (size + 1) // 2).bit_length(), bits[numbers])
        bits[numbers] = np.minimum(bits[numbers], runs)
    return 1 + bits


def _single_bits(size: int) -> int:
    """Bits that say one category of an axis, as `_vector_bits` counts them."""
    return 0 if size == 1 else 1 + min((size * (size + 1) // 2).bit_length(), _subset_bits(size, 1))


@lru_cache(maxsize=1 << 14)
def _subset_bits(size: int, selected: int) -> int:
    """Bits that say how many of `size` categories are selected, and which of so many."""
    if size > MAX_COUNTED_CATEGORIES:
        return size + size.bit_length()
    return ((size + 1) * math.comb(size, selected)).bit_length()
