"""The family of marginals that a residual measurement tells: closed under subsets, and not too large to hold."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

from equipoise.accounting.residuals import Residual, axis_levels
from equipoise.errors import InvalidArgument
from equipoise.queries.marginal_tables import Axes

MAX_SETS = 1 << 13
MAX_SET_CELLS = 1 << 20  # of one table
MAX_CELLS = 1 << 25  # of all tables together: what a measurement holds, 8 bytes each


@dataclass(frozen=True)
class ResidualFamily:
    """Sets of axes with all of their subsets. Axes of one category belong to no set: they tell nothing apart.

    Attributes:
        sizes: the number of categories of each axis.
        ordered: the axes that are analysed by levels, ascending.
        largest: the sets that no other set of the family holds; made by `closed`.
    """

    sizes: tuple[int, ...]
    ordered: tuple[int, ...]
    largest: tuple[Axes, ...]

    @classmethod
    def closed(cls, sizes: Sequence[int], sets: Iterable[Axes], ordered: Iterable[int] = ()) -> ResidualFamily:
        """Return the smallest family that holds these sets.

        Args:
            sizes: the number of categories of each axis.
            sets: axes, in any order; axes of one category are left out.
            ordered: axes with an order.

        Raises:
            InvalidArgument: an axis is unknown or named twice in a set, or the family is too large.
        """
        wanted: set[Axes] = set()
        for number, axes in enumerate(sets):
            field = f"sets[{number}]"
            unknown = [axis for axis in axes if not 0 <= axis < len(sizes)]
            if unknown:
                raise InvalidArgument(field, f"names attribute {unknown[0]}; there are {len(sizes)}")
            twice = [axis for place, axis in enumerate(axes) if axis in axes[:place]]
            if twice:
                raise InvalidArgument(field, f"names attribute {twice[0]} twice")
            kept = tuple(sorted(axis for axis in axes if sizes[axis] > 1))
            cells = math.prod(sizes[axis] for axis in kept)
            if cells > MAX_SET_CELLS:
                raise InvalidArgument(
                    field, f"has a table of {cells:,} cells; at most {MAX_SET_CELLS:,} are allowed"
                )
            wanted.add(kept)
            if len(wanted) > MAX_SETS:
                raise InvalidArgument("sets", f"are more than {MAX_SETS:,}")
        unknown = [axis for axis in ordered if not 0 <= axis < len(sizes)]
        if unknown:
            raise InvalidArgument("ordered", f"names attribute {unknown[0]}; there are {len(sizes)}")
        closure = _closure(wanted)
        cells = sum(math.prod(sizes[axis] for axis in axes) for axes in closure)
        if cells > MAX_CELLS:
            raise InvalidArgument(
                "sets", f"have {cells:,} cells with all subsets; at most {MAX_CELLS:,} are allowed"
            )
        inner = {axes[:place] + axes[place + 1 :] for axes in closure for place in range(len(axes))}
        largest = tuple(sorted((axes for axes in closure if axes and axes not in inner), key=_order))
        return cls(tuple(sizes), tuple(sorted(set(ordered))), largest)

    @cached_property
    def sets(self) -> tuple[Axes, ...]:
        """All sets but the empty one, small ones first."""
        return tuple(sorted((axes for axes in _closure(self.largest) if axes), key=_order))

    @cached_property
    def is_ordered(self) -> tuple[bool, ...]:
        """Whether each axis is analysed by levels."""
        return tuple(axis in self.ordered for axis in range(len(self.sizes)))

    @cached_property
    def residuals(self) -> tuple[Residual, ...]:
        """All residuals of the family, set by set."""
        return tuple(residual for axes in self.sets for residual in self.residuals_of(axes))

    def residuals_of(self, axes: Axes) -> list[Residual]:
        """Return the residuals over exactly these axes, coarse levels first."""
        levels = [range(1, axis_levels(self.sizes[axis], self.is_ordered[axis]) + 1) for axis in axes]
        return [tuple(zip(axes, chosen, strict=True)) for chosen in itertools.product(*levels)]

    def holds(self, axes: Axes) -> bool:
        """Whether the family tells the marginal over these axes, given ascending."""
        telling = tuple(axis for axis in axes if self.sizes[axis] > 1)
        return not telling or telling in self._members

    @cached_property
    def _members(self) -> frozenset[Axes]:
        return frozenset(self.sets)


def _closure(sets: Iterable[Axes]) -> set[Axes]:
    closed: set[Axes] = set()
    waiting = set(sets)
    while waiting:
        closed |= waiting
        if len(closed) > MAX_SETS:
            raise InvalidArgument("sets", f"have more than {MAX_SETS:,} subsets")
        waiting = {axes[:place] + axes[place + 1 :] for axes in waiting for place in range(len(axes))} - closed
    return closed


def _order(axes: Axes) -> tuple[int, Axes]:
    return len(axes), axes
