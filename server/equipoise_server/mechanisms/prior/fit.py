"""Fits a distribution to noisy marginal tables in arithmetic that gives the same bits on every machine.

What follows a prior (draws, tests) depends on every bit of it, and a round is replayed to the byte. So sums are
sums of integers, exponentials come from one table, and all else is elementwise arithmetic of doubles.

The distribution is `p(x) = exp(sum over tables B of l_B(cell of x in B))`, normalised. The fit minimises

    sum over tables B, cells c of (p_B(c) - y_B(c))^2 / (2 v_B) + strength KL(p || uniform),

whose dual is a function of the `l_B` alone. One table at a time, with `a` the distribution's own table and `t` what
the cells' `l` have been so far, the dual is improved by the solution `l` of

    a exp(l) + strength v (t + l) = y,    cell by cell.

Proof that no step makes the dual worse: the dual is `log sum_c a_c exp(l_c) - sum_c l_c y_c + strength sum_c v
(t_c + l_c)^2 / 2` up to constants, and convex. As `log z <= z - 1`, replacing the logarithm gives an upper
bound that is exact at `l = 0` and splits into cells; the equation says that its derivative vanishes. Without
noise this is iterative proportional fitting (Deming & Stephan 1940).

It sees noisy tables and public variances only: post-processing.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from equipoise.queries.marginal_tables import Axes
from equipoise_server.mechanisms.prior.support import Support
from equipoise_server.randomness.exponential import UNIT_BITS, exponentials

STRENGTH = 30.0  # of the pull to the uniform distribution, as measured on a public table
MAX_SWEEPS = 40  # over all tables
# What a sweep must save for another one: this part of the loss, or, where that is less, this part of the standard
# deviation of the loss that noise alone leaves.
PROGRESS, NOISE_PROGRESS = 0.05, 0.25
TERM_BITS = 28  # a table's terms are integers in units of 2^-28 nats
MAX_TERM = 24  # nats, of one cell's term in all
MAX_MOVE = 4  # nats, of one cell's term in one step
NEWTON_STEPS = 16
MIN_WEIGHT = 2.0**-900  # so that no product leaves the normal doubles
SUM_BITS = 60  # weights are added up as integers in units of 2^-60 of their sum


@dataclass(frozen=True)
class Target:
    """A noisy table as fractions of the records: float64, a dimension for each axis; and one cell's variance."""

    axes: Axes
    fractions: NDArray[np.float64]
    variance: float


def fit_potential(support: Support, targets: Sequence[Target]) -> NDArray[np.int64]:
    """Return the fitted distribution's log-weights over the support: int64[size] in units of 2^-48 nats.

    The largest is 0. Needs about 40 bytes for each record of the support.
    """
    terms = [np.zeros(target.fractions.shape, dtype=np.int64) for target in targets]
    weights = np.full(support.size, 1.0 / support.size)
    before = math.inf
    # The squares of c standard normal numbers sum to c, with a standard deviation of sqrt(2 c).
    noise = math.sqrt(2 * sum(target.fractions.size for target in targets))
    for _ in range(MAX_SWEEPS):
        losses = []
        for place, target in enumerate(targets):
            integers = (weights * 2.0**SUM_BITS).astype(np.int64)
            sums = support.table(target.axes, integers)
            total = int(sums.sum())
            own = sums / float(total)
            losses.append(math.fsum(((own - target.fractions) ** 2).ravel().tolist()) / target.variance)
            moves = _moves(own, target, terms[place])
            terms[place] += moves
            factors = exponentials(moves << (UNIT_BITS - TERM_BITS))
            # Back to the sum 1, which the solution keeps only where the table's cells sum to 1 and none is cut.
            factors *= 2.0**SUM_BITS / total / math.fsum((own * factors).ravel().tolist())
            support.scale(target.axes, factors, weights)
            np.maximum(weights, MIN_WEIGHT, out=weights)
        loss = math.fsum(losses)
        if before - loss <= min(PROGRESS * before, NOISE_PROGRESS * noise):
            break
        before = loss
    potential = np.zeros(support.size, dtype=np.int64)
    for target, so_far in zip(targets, terms, strict=True):
        support.add(target.axes, so_far << (UNIT_BITS - TERM_BITS), potential)
    potential -= potential.max()
    return potential


def _moves(own: NDArray[np.float64], target: Target, so_far: NDArray[np.int64]) -> NDArray[np.int64]:
    """Solve `a exp(l) + c (t + l) = y` by Newton's method: int64, in units of 2^-28 nats; shape of the table."""
    stiffness = STRENGTH * target.variance
    wanted = target.fractions - stiffness * (so_far / 2.0**TERM_BITS)
    moves = np.zeros_like(own)
    for _ in range(NEWTON_STEPS):
        grown = own * exponentials(np.rint(moves * 2.0**TERM_BITS).astype(np.int64) << (UNIT_BITS - TERM_BITS))
        moves -= np.clip((grown + stiffness * moves - wanted) / (grown + stiffness), -1.0, 1.0)
        np.clip(moves, -MAX_MOVE, MAX_MOVE, out=moves)
    limit = MAX_TERM << TERM_BITS
    reached = np.clip(so_far + np.rint(moves * 2.0**TERM_BITS).astype(np.int64), -limit, limit)
    return reached - so_far
