"""A tail bound for weighted sums of independent integer noises, by Chernoff's bound.

For a symmetric law let `K(s) = log E exp(s Z)`. For weights `w_i` of at most 1 in absolute value, whose squares add
up to `V`, and any `s > 0`,

    P(sum_i w_i Z_i > t) <= exp(-s t + sum_i K(s w_i)) <= exp(-s t + V K(s)),

so the sum exceeds `(log(1 / p) + V K(s)) / s` with probability at most `p`. The second step needs that
`K(w s) <= w^2 K(s)`. Discrete Laplace noise of rate `r` is the difference of two geometric numbers, which makes
`K(s) = 2 sum_j exp(-r j) (cosh(s j) - 1) / j` for `s < r`: divided by `s^2`, every term grows with `s`. In closed
form it is `-log(1 - 4 e^-r sinh(s/2)^2 / (1 - e^-r)^2)`. For the discrete Gaussian law `K(s) <= v s^2 / 2` (the sum
over integers of `exp(-(z - m)^2 / 2v)` is largest where `m` is an integer), which stands for `K` here.

Logarithms are taken in decimal arithmetic and doubles only added, multiplied, divided and rooted, so that every
machine finds the same bounds.
"""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from equipoise_server.mechanisms.noise_calibration import NoiseDistribution
from equipoise_server.randomness.discrete_gaussian import DiscreteGaussian
from equipoise_server.randomness.discrete_laplace import DiscreteLaplace
from equipoise_server.randomness.exponential import precise

FINEST = 20  # slopes go down to 2^-20 of the Laplace law's rate, and up to all but 2^-13 of it
UPWARD = 1 + 1e-9  # far more than the doubles here can err
_CONTEXT = precise(40)


def sum_reach(law: NoiseDistribution, squares: NDArray[np.float64], chance: Fraction) -> NDArray[np.float64]:
    """Return bounds that the absolute values of sums exceed with probability at most `chance` each.

    The bounds hold for the ideal distribution; the sampler's distribution differs by its truncation.

    Args:
        law: the distribution of each noise.
        squares: `V` above, one for each sum; float64 of any shape.
        chance: the probability for one sum.

    Raises:
        TypeError: the distribution is neither discrete Gaussian nor discrete Laplace.

    Returns:
        The bounds, float64 of the same shape.
    """
    nats = float(_CONTEXT.ln(_decimal(2 / chance)))
    if isinstance(law, DiscreteGaussian):
        return np.asarray(np.sqrt(2 * nats * float(law.variance) * squares) * UPWARD)
    if not isinstance(law, DiscreteLaplace):
        raise TypeError(f"no bound is proven for sums of {law}")
    different, places = np.unique(squares, return_inverse=True)
    reach = np.full(different.shape, np.inf)
    for slope, cumulants in laplace_slopes(law.rate):
        np.minimum(reach, (nats + different * cumulants) / slope, out=reach)
    reach[different == 0] = 0
    return np.asarray(reach[places.reshape(squares.shape)] * UPWARD)


@lru_cache(maxsize=64)
def laplace_slopes(rate: Fraction) -> tuple[tuple[float, float], ...]:
    """Return pairs of `s` and `K(s)` of the discrete Laplace law: small `s` for many noises, large `s` for few."""
    sixteenths = [Fraction(16 + part, 32) for part in range(16)]
    small = [part / 2**halving for halving in range(FINEST) for part in sixteenths]
    large = [1 - part / 2**halving for halving in range(12) for part in sixteenths[::4]]
    return tuple((float(rate * part), float(_laplace_cumulants(rate, rate * part))) for part in small + large)


def _laplace_cumulants(rate: Fraction, slope: Fraction) -> Decimal:
    # Halved exponents, so that no large rate overflows: sinh(s/2) e^(-r/2) = (e^((s-r)/2) - e^(-(s+r)/2)) / 2.
    nearer, further, whole = (
        _CONTEXT.exp(_decimal(-nats)) for nats in ((rate - slope) / 2, (rate + slope) / 2, rate)
    )
    grown = _CONTEXT.divide(_CONTEXT.subtract(nearer, further), _CONTEXT.subtract(Decimal(1), whole))
    inner = _CONTEXT.subtract(Decimal(1), _CONTEXT.multiply(grown, grown))
    return _CONTEXT.ln(inner).copy_negate()


def _decimal(number: Fraction) -> Decimal:
    return _CONTEXT.divide(Decimal(number.numerator), Decimal(number.denominator))
