"""Sums of a histogram down to tables over some axes, and back: such tables added up over the whole universe.

Both work axis by axis from the first one and share the partial sums, so that a thousand tables cost about as
much as a few passes over the universe instead of a thousand. The first axes vary slowest, so every pass but
those over small arrays runs along memory. Tables are arrays with one dimension for each of their axes, which
ascend: int64, where all sums are exact, or float64, for what needs no exactness. Types come out as they go in.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

WORD = 62  # axes whose bits one number holds

Axes = tuple[int, ...]
Table = NDArray[Any]  # int64 or float64
Parts = Mapping[Axes, Sequence[Callable[[], Table]]]
"""Tables over some axes, to be made and added up."""


def marginal_tables(histogram: Table, wanted: Iterable[Axes]) -> Iterator[tuple[Axes, Table]]:
    """Yields each of the wanted axis sets, all different, with the histogram summed over the other axes.

    `histogram` has one dimension for each axis of the universe. Besides it, partial sums of less than its size are
    held.
    """
    return _collect(histogram, [(axes, axes) for axes in wanted], 0, 0)


def spread(wanted: Iterable[Axes], table_of: Callable[[Axes], Table], universe: Table) -> None:
    """Adds tables over some axes to an array over the whole universe, in place.

    Args:
        wanted: sets of axes, ascending, all different.
        table_of: Returns the table over a set of axes. It is called once for each, as late as possible, so that few
            tables exist at a time.
        universe: has one dimension for each axis, and is added to. Besides it, partial sums of less than its size
            are held.
    """
    keys = [(axes, axes) for axes in wanted]
    if keys:
        _add(universe, keys, table_of, 0, 0)


# Below, each wanted axis set comes with those of its axes that are still to be treated; `axis` is the next one. The
# dimensions of an array are first the treated axes that the axis sets at hand all share, then all from `axis` on.

Keys = list[tuple[Axes, Axes]]


def _collect(tensor: Table, keys: Keys, shared: int, axis: int) -> Iterator[tuple[Axes, Table]]:
    if len(keys) == 1 and not keys[0][1]:
        yield keys[0][0], np.asarray(tensor.sum(axis=tuple(range(shared, tensor.ndim)), dtype=tensor.dtype))
    elif keys:
        without, sharing = _divided(keys, axis)
        if without:
            lone = tensor.shape[shared] == 1
            summed = tensor.squeeze(shared) if lone else tensor.sum(axis=shared, dtype=tensor.dtype)
            yield from _collect(summed, without, shared, axis + 1)
            del summed  # before `sharing` makes its own
        yield from _collect(tensor, sharing, shared + 1, axis + 1)


def _add(total: Table, keys: Keys, table_of: Callable[[Axes], Table], shared: int, axis: int) -> None:
    if len(keys) == 1:
        ((axes, left),) = keys
        shape = list(total.shape)
        for place in range(shared, total.ndim):
            if place - shared + axis not in left:
                shape[place] = 1
        total += table_of(axes).reshape(shape)
        return
    without, sharing = _divided(keys, axis)
    if len(without) == 1:
        _add(total, without, table_of, shared, axis)
    elif without and total.shape[shared] == 1:
        _add(total.squeeze(shared), without, table_of, shared, axis + 1)
    elif without:
        partial = np.zeros(total.shape[:shared] + total.shape[shared + 1 :], dtype=total.dtype)
        _add(partial, without, table_of, shared, axis + 1)
        total += partial[(slice(None),) * shared + (None,)]
        del partial  # before `sharing` makes its own
    if sharing:
        _add(total, sharing, table_of, shared + 1, axis + 1)


def _divided(keys: Keys, axis: int) -> tuple[Keys, Keys]:
    """Returns the axis sets without `axis`, and those with it, of which it is then treated."""
    without = [key for key in keys if not key[1] or key[1][0] != axis]
    sharing = [(axes, left[1:]) for axes, left in keys if left and left[0] == axis]
    return without, sharing


def spread_sums(parts: Parts, universe: Table) -> None:
    """Adds tables, which are made as late as possible, to `universe`, an axis an attribute."""

    def table_of(axes: Axes) -> Table:
        return functools.reduce(operator.add, (make() for make in parts[axes]))

    spread(parts.keys(), table_of, universe)


class AxisSets:
    """A set of axes for each of some queries; axes of one category, which tell nothing apart, are in none.

    Args:
        queries: how many there are.
        sizes: the number of categories of each axis.
    """

    def __init__(self, queries: int, sizes: Sequence[int]) -> None:
        self._sizes = sizes
        self._words = np.zeros((-(-len(sizes) // WORD), queries), dtype=np.int64)

    def add(self, queries: NDArray[np.int64] | int, axes: Axes) -> None:
        """Add axes to the sets of some queries."""
        for axis in axes:
            if self._sizes[axis] > 1:
                self._words[axis // WORD, queries] |= 1 << axis % WORD

    def largest(self, queries: NDArray[np.int64]) -> int:
        """Return how many axes the largest set of some queries has."""
        return int(np.bitwise_count(self._words[:, queries]).sum(axis=0, dtype=np.int64).max(initial=0))

    def of(self, queries: NDArray[np.int64]) -> list[Axes]:
        """Return the sets of some queries, axes ascending."""
        rows = list(map(tuple, self._words[:, queries].T.tolist()))
        known = {
            row: tuple(axis for axis in range(len(self._sizes)) if row[axis // WORD] >> axis % WORD & 1)
            for row in set(rows)
        }
        return [known[row] for row in rows]
