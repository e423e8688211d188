"""Joins tables that share attributes, so that records are summed down to several tables in one pass.

Each table takes a pass over all records, and costs the same whether it has a hundred cells or some thousands. A
table over the union of some tables' attributes tells all of them.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from equipoise.queries.marginal_tables import Axes

MAX_CELLS = 1 << 14  # of a union, so that it stays in a core's own cache


@dataclass(frozen=True)
class JoinedTables:
    """Some tables, told by one over the union of their attributes.

    Attributes:
        axes: the union, in ascending order.
        members: the places in the list of tables of those that it tells.
    """

    axes: Axes
    members: tuple[int, ...]


def joined(sizes: Sequence[int], tables: Sequence[Axes]) -> list[JoinedTables]:
    """Join tables greedily: a union takes in the attribute that completes most of the tables that are left.

    Args:
        sizes: the number of categories of each attribute.
        tables: the attributes of each, without repetition.

    Returns:
        Unions of at most `MAX_CELLS` cells, or of one table that is larger. Every table is told by exactly one.
    """
    left = {place: sum(1 << axis for axis in axes) for place, axes in enumerate(tables)}
    found = []
    while left:
        union = next(iter(left.values()))
        while (more := _next_attribute(sizes, union, left.values())) is not None:
            union |= 1 << more
        members = tuple(place for place, table in left.items() if not table & ~union)
        for place in members:
            del left[place]
        found.append(JoinedTables(_axes(union), members))
    return found


def _next_attribute(sizes: Sequence[int], union: int, left: Iterable[int]) -> int | None:
    """Return the attribute that completes most tables, of several the first one; None: none does, or has room."""
    room = MAX_CELLS // math.prod(sizes[axis] for axis in _axes(union))
    missing = Counter(table & ~union for table in left)
    completes = {
        attributes.bit_length() - 1: count
        for attributes, count in missing.items()
        if attributes.bit_count() == 1 and sizes[attributes.bit_length() - 1] <= room
    }
    return min(completes, key=lambda axis: (-completes[axis], axis), default=None)


def _axes(union: int) -> Axes:
    return tuple(axis for axis in range(union.bit_length()) if union >> axis & 1)
