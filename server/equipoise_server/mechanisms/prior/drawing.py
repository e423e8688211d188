"""Draws the records of a support from noisy tables alone, for universes that nobody can enumerate.

Three quarters of the records follow the tree of those pairs of attributes that tell most of one another, one
quarter the product of single attributes, so that what no pair of the tree tells is there, too. It is
post-processing and costs nothing. All decisions are integers, so that every machine draws the same records.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from equipoise.queries.marginal_tables import Axes
from equipoise.queries.record_list import RecordList
from equipoise_server.datasets.coded_counts import code_type
from equipoise_server.mechanisms.prior.dependence import dependence_tree, mutual_information
from equipoise_server.mechanisms.prior.fit import Target
from equipoise_server.mechanisms.prior.support import RECORDS
from equipoise_server.randomness.stream import KeyedStream

CUT = 2.0  # standard deviations below which a noisy cell counts as empty
ALONG_TREE = 3, 4  # the part of the records that follows the tree
WEIGHT_BITS = 38  # a table's weights sum to less than 2^38, up to rounding; times 2^23 that is below 2^62


def drawn_records(sizes: Sequence[int], tables: Sequence[Target], count: int = RECORDS) -> RecordList:
    """Draw records along noisy tables of one and of two attributes.

    What is drawn is a function of the tables: the stream's seed is their digest, which is no secret, as nothing
    hides behind these draws.

    Args:
        sizes: the number of categories of each attribute.
        tables: each at most once. Attributes without a table of their own are uniform, and pairs without one are
            taken to be independent.
        count: how many records.
    """
    singles = {target.axes[0]: weights(target.fractions, 0.0) for target in tables if len(target.axes) == 1}
    pairs: dict[Axes, NDArray[np.int64]] = {
        target.axes: weights(target.fractions, target.variance) for target in tables if len(target.axes) == 2
    }
    alone = [singles.get(axis, np.ones(size, dtype=np.int64)) for axis, size in enumerate(sizes)]
    information: dict[Axes, float] = {
        axes: mutual_information(table.astype(np.float64)) for axes, table in pairs.items()
    }
    digest = hashlib.sha256(b"".join(target.fractions.astype("<f8").tobytes() for target in tables)).digest()
    along = count * ALONG_TREE[0] // ALONG_TREE[1]
    codes = np.zeros((len(sizes), count), dtype=code_type(sizes))
    for axis, parent in dependence_tree(len(sizes), information):
        stream = KeyedStream.derive(digest, "support", str(axis))
        own = np.zeros(along, dtype=np.int64) if parent is None else codes[parent, :along].astype(np.int64)
        table = alone[axis][None] if parent is None else _weights_by_parent(parent, axis, pairs, alone[axis])
        codes[axis, :along] = laid_out(own, table, stream)
        codes[axis, along:] = laid_out(np.zeros(count - along, dtype=np.int64), alone[axis][None], stream)
    return RecordList(tuple(sizes), codes)


def weights(fractions: NDArray[np.float64], variance: float) -> NDArray[np.int64]:
    """Return a noisy table as integer weights of its cells, with 0 for cells that noise alone may have filled.

    Where nothing would be left, all cells have the same weight.

    Args:
        fractions: float64 of any shape, a table's cells as fractions of the records, with noise.
        variance: of one cell's noise, in fractions squared.

    Returns:
        int64 of the same shape.
    """
    kept = np.where(fractions > CUT * math.sqrt(variance), fractions, 0.0)
    total = math.fsum(kept.ravel().tolist())
    if not total:
        return np.ones(fractions.shape, dtype=np.int64)
    return np.rint(kept * 2.0 ** (WEIGHT_BITS - math.frexp(total)[1])).astype(np.int64)


def laid_out(given: NDArray[np.int64], table: NDArray[np.int64], stream: KeyedStream) -> NDArray[np.int64]:
    """Return a category for each record, given its category of another attribute: int64[records].

    Of the records with the same given category as many get each category as its weight deserves, up to less than
    one record, and which ones is drawn uniformly.

    Args:
        given: the row of `table` that each record is in, int64[records].
        table: int64[rows, categories], at least 0, and no row without weight.
        stream: of this attribute.
    """
    order = np.argsort(stream.words(len(given)), kind="stable")
    order = order[np.argsort(given[order], kind="stable")]
    rows = given[order]
    held = np.bincount(given, minlength=len(table))
    ranks = np.arange(len(given)) - (np.cumsum(held) - held)[rows]
    ends = np.cumsum(table.reshape(-1))
    totals = table.sum(axis=1)
    middles = (2 * ranks + 1) * totals[rows]
    places = (np.cumsum(totals) - totals)[rows] + middles // (2 * held[rows])
    categories = np.empty(len(given), dtype=np.int64)
    categories[order] = np.searchsorted(ends, places, side="right") - rows * table.shape[1]
    return categories


def _weights_by_parent(
    parent: int, axis: int, pairs: Mapping[Axes, NDArray[np.int64]], alone: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Return the weights of an attribute's categories in a row for each of its parent's; as alone in empty rows."""
    table = pairs[parent, axis] if parent < axis else pairs[axis, parent].T
    return np.where(table.sum(axis=1, keepdims=True) > 0, table, alone)
