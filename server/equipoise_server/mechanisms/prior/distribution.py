"""The prior as a distribution: log-weights on the grid of the game, integer weights, and records laid out."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from equipoise_server.mechanisms.repair.weights_hypothesis import MAX_GAP, rounded_weights
from equipoise_server.randomness.exponential import UNIT_BITS, exponentials, precise

MIN_PART = 2.0**-10  # no record has less than this part of what the uniform distribution gives it
_CONTEXT = precise(40)


@dataclass(frozen=True, eq=False)
class Prior:
    """A distribution over a list of records.

    Attributes:
        potential: int64[size], the log-weights in units of 2^-48 nats, at most 0. None is far below that of the
            uniform distribution (`floored`).
    """

    potential: NDArray[np.int64]

    @cached_property
    def weights(self) -> NDArray[np.int64]:
        """Integer weights, int64[size], with a sum below 2^52 (`rounded_weights`)."""
        return rounded_weights(exponentials(self.potential))[0]

    def records(self, count: int) -> NDArray[np.int64]:
        """`count` records laid out along the distribution: int64[count], ascending places in the list of records.

        The integer weights are laid end to end, and one record stands in the middle of each of `count` equal
        parts. So every run of neighbours holds its share up to less than one record. All in integers.
        """
        return laid_out(self.weights, count)


def laid_out(weights: NDArray[np.int64], count: int) -> NDArray[np.int64]:
    """Return `count` places along integer `weights`, as `Prior.records` does. These sum to less than 2^52."""
    ends = np.cumsum(weights)
    step, rest = divmod(int(ends[-1]), count)
    places = np.arange(count, dtype=np.int64)
    middles = places * step + (2 * places + 1) * rest // (2 * count) + step // 2
    cells: NDArray[np.int64] = np.searchsorted(ends, middles, side="right")
    return cells


def floored(potential: NDArray[np.int64]) -> Prior:
    """Make the prior of log-weights, with every record's weight raised to `MIN_PART` of the uniform one's.

    So whatever the noise hid can be learnt: the divergence of any data from the prior is at most that from the
    uniform distribution and `log(1 / MIN_PART)` nats, and raising takes less than `MIN_PART` from all others.

    Args:
        potential: int64[size] in units of 2^-48, the largest is 0.
    """
    integers, _ = rounded_weights(exponentials(np.maximum(potential, -MAX_GAP)))
    mean = Decimal(int(integers.sum())) / Decimal(int(integers.max())) / Decimal(len(integers))
    least = _CONTEXT.ln(_CONTEXT.multiply(mean, Decimal(MIN_PART)))
    return Prior(np.maximum(potential, int(_CONTEXT.multiply(least, Decimal(1 << UNIT_BITS)).to_integral_value())))
