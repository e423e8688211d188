"""Renyi curves: composition for costs that have no useful rho, such as the mixture that sampled play costs.

A mechanism's curve bounds the Renyi divergence D_a between its outputs on neighbours at every order a of a fixed
list (Mironov 2017). Curves of successive mechanisms add, order by order, also where a later one depends on what
earlier ones released (Proposition 1 there); rho-zCDP is the curve `a rho`. Converting a curve to (epsilon, delta)
is left to a library: `equipoise_server.conversion.epsilon_of_curve`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from equipoise.accounting.cost import OUTWARD
from equipoise.accounting.game import BinomialMixture

# 1 + 2^-6 to 1 + 1.75 * 2^17, four orders for each power of two; all of them exact doubles.
ORDERS = tuple(1 + quarter * 2.0 ** (power - 2) for power in range(-6, 18) for quarter in range(4, 8))
MAX_TRIALS = 1 << 20  # of a mixture that is summed; beyond, every trial is taken to differ


@dataclass(frozen=True)
class RenyiCurve:
    """`divergences[i]` bounds D_a, in nats, for the order a = `ORDERS[i]`; `inf` where nothing is known."""

    divergences: tuple[float, ...] = (0.0,) * len(ORDERS)

    def __post_init__(self) -> None:
        if len(self.divergences) != len(ORDERS) or not all(value >= 0 for value in self.divergences):
            raise ValueError(f"divergences: needs {len(ORDERS)} numbers, none negative")

    def __add__(self, other: RenyiCurve) -> RenyiCurve:
        pairs = zip(self.divergences, other.divergences, strict=True)
        # One step up: a rounded sum must not be below the sum.
        return RenyiCurve(tuple(math.nextafter(a + b, math.inf) if a and b else a + b for a, b in pairs))


def zcdp_curve(rho: float) -> RenyiCurve:
    """Returns the curve of rho-zCDP: `D_a <= a rho`, by definition (Bun & Steinke 2016, Definition 1.1)."""
    return RenyiCurve(tuple(order * rho * OUTWARD for order in ORDERS))


def mixture_curve(mixture: BinomialMixture) -> RenyiCurve:
    """Returns the curve of what is `w^2 rho_of_one`-zCDP given `w`, with `w` at most Binomial(trials, probability).

    `exp((a - 1) D_a)` is the sum of `P^a Q^(1-a)`, which is jointly convex in (P, Q) (van Erven & Harremoes 2014,
    Theorem 11 and its proof), so for two mixtures with the same weights it is at most the mean of its values given
    w, each of which is at most `exp((a - 1) a w^2 rho_of_one)`. That grows with w, so a stochastically larger w
    gives an upper bound:

        D_a <= log(sum_w Bin(w) exp(a (a - 1) w^2 rho_of_one)) / (a - 1),   and   D_a <= a trials^2 rho_of_one.

    Computed by log-sum-exp over all w, none of which may be left out: at large orders rare ones decide.
    """
    return RenyiCurve(tuple(mixture_divergence(mixture, order) for order in ORDERS))


@lru_cache(maxsize=1024)
def mixture_divergence(mixture: BinomialMixture, order: float) -> float:
    """Returns `D_order` of `mixture_curve`, in nats, at any order above 1."""
    most = order * mixture.trials**2 * mixture.rho_of_one * OUTWARD
    if not 0 < mixture.probability < 1 or mixture.trials > MAX_TRIALS:
        return most if mixture.probability > 0 else 0.0
    exponents = order * (order - 1) * mixture.rho_of_one * np.arange(mixture.trials + 1.0) ** 2
    terms = _log_binomial(mixture.trials, mixture.probability) + exponents
    top = float(terms.max())
    total = top + math.log(float(np.exp(terms - top).sum()))
    # Logarithms of factorials and large exponents are wrong by a few units in their last place.
    slack = 1e-14 * (mixture.trials + 64) + 1e-15 * float(exponents[-1])
    return max(0.0, min(most, (total + slack) * OUTWARD / (order - 1)))


@lru_cache(maxsize=4)
def _log_binomial(trials: int, chance: float) -> NDArray[np.float64]:
    """Returns the logarithms of the binomial law's probabilities; float64[trials + 1]."""
    factorials = np.array([math.lgamma(count + 1) for count in range(trials + 1)])
    differing = np.arange(trials + 1.0)
    ways = factorials[-1] - factorials - factorials[::-1]
    law: NDArray[np.float64] = ways + differing * math.log(chance) + (trials - differing) * math.log1p(-chance)
    return law
