"""The public family of tables that analysts vote for.

A set of attributes is written as the ascending tuple of its axes. Attributes of a single category belong to no set:
they tell nothing apart.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from functools import cached_property

from equipoise.errors import InvalidArgument
from equipoise.queries.marginal_tables import Axes
from equipoise.records.codec import COUNT, canonical_object, key, list_of

MAX_SETS = 1 << 10  # to vote for; all triples of 16 attributes, with their pairs, are 696
MAX_RESIDUAL_SETS = 1 << 13  # whose residuals are measured; all pairs of 100 attributes are 5,050
MAX_TABLE = 1 << 20  # cells


@canonical_object
class Family:
    """All sets of 1 to `ways` attributes whose table has at most `cells` cells. `sizes`: the schema's."""

    sizes: tuple[int, ...] = key("sizes", list_of(COUNT))
    ways: int = key("ways", COUNT)
    cells: int = key("cells", COUNT)

    @cached_property
    def sets(self) -> tuple[Axes, ...]:
        """The sets, small ones first."""
        return tuple(axes for axes in self._combinations() if table_cells(self.sizes, axes) <= self.cells)

    @cached_property
    def largest(self) -> tuple[Axes, ...]:
        """The sets that no other set of the family holds: their tables tell every table of the family."""
        # With a set all of its subsets are in the family: their tables are smaller.
        held = {axes[:place] + axes[place + 1 :] for axes in self.sets for place in range(len(axes))}
        return tuple(axes for axes in self.sets if axes not in held)

    @property
    def count(self) -> int:
        """How many sets of `ways` attributes or fewer there are, before tables are left out for their size."""
        return sum(math.comb(len(self._telling), ways) for ways in range(1, self.ways + 1))

    def holds(self, axes: Axes) -> bool:
        """Whether the family answers a statement about the table over these attributes."""
        return len(axes) <= self.ways and table_cells(self.sizes, axes) <= self.cells

    @property
    def complete(self) -> bool:
        """Whether the family holds the set of all attributes, and so every statement's."""
        return self.holds(tuple(self._telling))

    def covers(self, summed: float) -> bool:
        """Whether sums of half of the largest table are certified: the other half errs like them."""
        return 4 * summed >= max((table_cells(self.sizes, axes) for axes in self.sets), default=1)

    def check(self, most: int) -> None:
        """Raises `InvalidArgument` for a family that is empty or has more than `most` sets."""
        if self.count > most:
            problem = f"makes a family of {self.count:,} tables; at most {most} are allowed"
            raise InvalidArgument("options.ways", problem)
        if self._telling and not self.sets:
            smallest = min(self.sizes[axis] for axis in self._telling)
            raise InvalidArgument("options.cells", f"allows no table: the smallest one has {smallest:,} cells")

    @property
    def _telling(self) -> list[int]:
        return [axis for axis, size in enumerate(self.sizes) if size > 1]

    def _combinations(self) -> Iterator[Axes]:
        for ways in range(1, self.ways + 1):
            yield from itertools.combinations(self._telling, ways)


def table_cells(sizes: tuple[int, ...], axes: Axes) -> int:
    """Return the number of cells of the table over these attributes; 1 for none."""
    return math.prod(sizes[axis] for axis in axes)


def asked_sets(family: Family, ways: int) -> Sequence[Axes]:
    """Return the sets of so many attributes as a share's statements may be about; the largest, where none has.

    `ways`: as the share declares it; 0 where it does not.
    """
    return [axes for axes in family.sets if len(axes) == ways] or family.largest
