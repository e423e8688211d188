"""Sums of a histogram down to tables over some axes, and back: the sum of such tables over the whole universe.

Both work axis by axis from the last one and share the partial sums, so that a thousand tables cost about as
much as a few passes over the universe instead of a thousand. Tables are int64 arrays with one dimension for
each of their axes, which ascend; all sums are exact in integers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import numpy as np
from numpy.typing import NDArray

Axes = tuple[int, ...]
Table = NDArray[np.int64]


def marginal_tables(histogram: Table, wanted: Iterable[Axes]) -> Iterator[tuple[Axes, Table]]:
    """Yields each of the wanted axis sets, all different, with the histogram summed over the other axes.

    `histogram` has one dimension for each axis of the universe.
    """
    return _collect(histogram, [(axes, axes) for axes in wanted], histogram.ndim)


def spread(wanted: Iterable[Axes], table_of: Callable[[Axes], Table], sizes: tuple[int, ...]) -> Table:
    """The int64[universe] whose cell x is the sum, over the wanted axis sets, of `table_of(axes)` at x.

    `table_of` is called once for each axis set, as late as possible, so that few tables exist at a time.
    """
    total = _total([(axes, axes) for axes in wanted], table_of, sizes)
    universe = np.zeros(sizes, dtype=np.int64)
    if total is not None:
        universe += total
    return universe.reshape(-1)


# Below, each wanted axis set comes with those of its axes that are still to be treated. The dimensions of an
# array are first the axes not yet treated, then the treated ones that the axis sets at hand all share.


def _collect(tensor: Table, keys: list[tuple[Axes, Axes]], untreated: int) -> Iterator[tuple[Axes, Table]]:
    if len(keys) == 1:
        ((axes, left),) = keys
        yield axes, np.asarray(tensor.sum(axis=tuple(a for a in range(untreated) if a not in left), dtype=np.int64))
    elif keys:
        without, sharing = _divided(keys, untreated - 1)
        if without:
            yield from _collect(tensor.sum(axis=untreated - 1, dtype=np.int64), without, untreated - 1)
        yield from _collect(tensor, sharing, untreated - 1)


def _total(
    keys: list[tuple[Axes, Axes]], table_of: Callable[[Axes], Table], untreated: tuple[int, ...]
) -> Table | None:
    if not keys:
        return None
    if len(keys) == 1:
        ((axes, left),) = keys
        table = table_of(axes)
        shape = tuple(size if axis in left else 1 for axis, size in enumerate(untreated))
        return table.reshape(shape + table.shape[len(left) :])
    last = len(untreated) - 1
    without, sharing = _divided(keys, last)
    plain = _total(without, table_of, untreated[:-1])
    shared = _total(sharing, table_of, untreated[:-1])
    if plain is not None:
        plain = np.expand_dims(plain, last)
    if plain is None or shared is None:
        return shared if plain is None else plain
    return np.asarray(plain + shared)


def _divided(keys: list[tuple[Axes, Axes]], axis: int) -> tuple[list[tuple[Axes, Axes]], list[tuple[Axes, Axes]]]:
    """The axis sets without `axis`, and those with it, of which it is then treated."""
    without = [key for key in keys if not key[1] or key[1][-1] != axis]
    sharing = [(axes, left[:-1]) for axes, left in keys if left and left[-1] == axis]
    return without, sharing
