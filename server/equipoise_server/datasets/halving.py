"""Finds the bin that a value is in by halving, in expressions of whatever language a source is asked in.

That takes as many comparisons as the number of edges has binary digits, and no row has to be kept, as for a join
with the edges.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

Expression = TypeVar("Expression")


def halved(
    edges: int, bin_at: Callable[[int], Expression], choose: Callable[[int, Expression, Expression], Expression]
) -> Expression:
    """Return the expression of a value's bin.

    Args:
        edges: how many edges there are.
        bin_at: returns the expression of the bin of values that are at or above so many edges.
        choose: returns the expression that is its second argument where the value is below the edge of this place,
            and its third elsewhere.
    """

    def between(low: int, high: int) -> Expression:
        """Return the bin of a value at or above `low` edges, and below all from `high` on."""
        if low == high:
            return bin_at(low)
        middle = (low + high) // 2
        return choose(middle, between(low, middle), between(middle + 1, high))

    return between(0, edges)
