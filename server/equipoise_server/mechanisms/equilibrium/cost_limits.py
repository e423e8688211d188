"""The costs of a game by its totals, in closed form: the limit of the exact sums for many rounds.

These costs only propose games, solved for the rates that budgets allow; `equipoise.accounting` computes every
charge. `N` and `K` are the records and actions drawn, `E_D` and `E_Q` either player's rate times rounds, `n` the
records of the table, `s` the density; the integrals are over the part `x` of the game already played.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binom

from equipoise import accounting
from equipoise_server.conversion import delta_of_rho
from equipoise_server.mechanisms.equilibrium.cost_model import Size

Numbers = NDArray[np.float64]

MAX_DIFFERING = 64  # groups of differing draws
MIN_RHO, MAX_RHO, RHO_POINTS = 1e-9, 1e4, 80
BISECTIONS = 22  # of the logarithm of a rho: nearer than a cut of the search


def mixed_data_travel(records: Numbers, density: Numbers, analyst_rho: float, size: Size) -> Numbers:
    """Return the `E_D` that mixed play's analysts allow: `N E_D^2 (2/s + slack)^2 / 24` is their rho."""
    slack = accounting.rounding_slack(size.units, size.queries)
    return np.sqrt(24 * analyst_rho / records) / (2 / density + slack)


def mixed_query_travel(records: Numbers, data_travel: Numbers, data_rho: float, size: Size) -> Numbers:
    """Return the `E_Q` that the people in the table allow in mixed play, 0 where none.

    The exponents' range is `E_D (E_Q x^2 / 2n + slack x)`, so the rho is `N E_D^2 / 8` times the integral of
    its square, `(E_Q/n)^2 / 20 + slack (E_Q/n) / 4 + slack^2 / 3`.
    """
    slack = accounting.rounding_slack(size.units, size.queries)
    left = slack**2 / 3 - 8 * data_rho / (records * data_travel**2)
    return size.records * _positive_root(1 / 20, slack / 4, left)


def sampled_query_travel(actions: Numbers, data_rho: float, size: Size) -> Numbers:
    """Return the `E_Q` that the people in the table allow in sampled play, 0 where none.

    An action costs `(2 x E_Q/n + 4g)^2 / 4`: integrated `(E_Q/n)^2 / 3 + 2g E_Q/n + 4 g^2`.
    """
    slack = accounting.draw_slack(size.units)
    return size.records * _positive_root(1 / 3, 2 * slack, 4 * slack**2 - data_rho / actions)


def _positive_root(square: float, linear: float, constant: Numbers) -> Numbers:
    """Return the larger root of `square y^2 + linear y + constant`, 0 where there is no positive one."""
    roots = np.sqrt(np.maximum(0.0, linear**2 - 4 * square * constant)) - linear
    return np.asarray(np.maximum(0.0, roots / (2 * square)))


def rho_of_one(actions: Numbers, density: Numbers, epsilon: float, delta: float, size: Size) -> Numbers:
    """Return the largest rho of one differing draw at which the binomial mixture's delta is within `delta`, nearly.

    `epsilon`: of the analysts' budget.

    Numbers of differing draws are grouped, each group counted at its largest, and the mixture solved by bisection.
    """
    chances = np.minimum(1.0, 1 / density + 2 * accounting.draw_slack(size.units))
    trials, chances = np.broadcast_arrays(np.round(actions), chances)
    mean = trials * chances
    spread = 8 * np.sqrt(mean) + 16
    low, high = np.maximum(0.0, mean - spread), np.minimum(trials, mean + spread)
    steps = np.linspace(0, 1, MAX_DIFFERING)
    differing = np.floor(low[..., None] + (high - low)[..., None] * steps)
    reached = binom.cdf(differing, trials[..., None], chances[..., None])
    weights = np.diff(reached, axis=-1, prepend=0.0)
    log_rhos, log_deltas = _delta_curve(epsilon)
    squares = 2 * np.log(np.maximum(differing, 1e-30))
    lower = np.full(trials.shape, math.log(MIN_RHO) - 40)
    upper = np.full(trials.shape, math.log(MAX_RHO))
    for _ in range(BISECTIONS):
        middle = (lower + upper) / 2
        losses = np.exp(np.interp(squares + middle[..., None], log_rhos, log_deltas, left=-math.inf, right=0.0))
        fits = (weights * losses).sum(axis=-1) <= delta
        lower, upper = np.where(fits, middle, lower), np.where(fits, upper, middle)
    return np.asarray(np.exp(lower))


@lru_cache(maxsize=64)
def _delta_curve(epsilon: float) -> tuple[Numbers, Numbers]:
    """Logarithms of rhos, and of their deltas at `epsilon`, from the library."""
    rhos = np.geomspace(MIN_RHO, MAX_RHO, RHO_POINTS)
    deltas = np.array([max(1e-300, delta_of_rho(float(rho), epsilon)) for rho in rhos])
    return np.log(rhos), np.log(deltas)
