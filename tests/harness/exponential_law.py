"""The law of the exponential mechanism's draws, from which exact enumerations start."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from equipoise_server.randomness.exponential import exponential_bits


def exponential_law(exponents: NDArray[np.int64], bits: int = 192) -> tuple[Fraction, ...]:
    """The law of `draw_exponential`, to a total variation of 3 m / 2^bits."""
    top = int(exponents.max())
    ratios = [exponential_bits(top - exponent, bits) for exponent in exponents.tolist()]
    total = sum(ratios)
    return tuple(Fraction(ratio, total) for ratio in ratios)
