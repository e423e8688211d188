"""The grid of all published answers and intervals: whole units of 2^-40."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

GRID_BITS = 40
ONE = 1 << GRID_BITS


def on_grid(counts: NDArray[np.int64], total: int | NDArray[np.int64]) -> NDArray[np.int64]:
    """Return `counts / total`, of one total or one for each, rounded down to units of 2^-40.

    In two steps, so that nothing overflows below 2^42.

    Args:
        counts: int64, from 0 to the total.
        total: above 0 and below 2^42; one number, or an array that broadcasts with `counts`.

    Returns:
        int64 of the shape of `counts`, in units of 2^-40.
    """
    half = GRID_BITS // 2
    high, rest = np.divmod(counts << half, total)
    return (high << half) + (rest << half) // total
