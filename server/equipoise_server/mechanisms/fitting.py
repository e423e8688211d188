"""Fits one distribution over the universe to noisy answers, and so makes the answers consistent.

Minimises `L(p) = sum_i (q_i(p) - y_i)^2 / (2 v_i)` over the distributions p on X, from the uniform one or another
that is public, by accelerated entropic mirror descent with a line search (Auslender & Teboulle 2006; Tseng 2008, in
the form that lets the step size change). Every step is one pass of all queries over X and one back, along the
partial sums that tables share; no query is ever held as a vector over X.

The fit sees noisy answers only, so it is post-processing and costs no privacy. It uses floating point: one machine
gives the same bits for the same input. Another machine may round sums differently, by some 2^-45 of an answer;
where a comparison is as close as that, the fit makes one step more or fewer.

Why it stops early. The noise can be fitted, too: L at the truth has the mean k/2 and the standard deviation
sqrt(k/2), while its minimum is smaller. Mirror descent fits first what many answers agree on: it keeps near the
uniform distribution (`L(x_j) - L(p) <= KL(p || uniform) / A_j` for every p, and A_j grows like j^2), so the number
of steps regularises. It stops once four steps together have lowered L by less than one such standard deviation:
from there on progress cannot be told from fitting the noise. That reads noisy answers and public variances only.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

MAX_STEPS = 400
WINDOW = 4  # steps whose progress is compared with the noise
GROWTH = 1.25  # of the step size, where the last step had room to spare
SPARE = 0.5
HALVINGS = 60  # of one step size; after so many the fit is as close as doubles can represent
RESOLUTION = 2.0**-46  # a step whose divergence is less is rounding
MIN_MEAN = 2.0**-1000  # keeps logarithms finite


class Queries(Protocol):
    """Linear queries over a universe or a list of records: a workload, cells of tables, or a family's residuals."""

    @property
    def size(self) -> int:
        """The number of records that have weights: of the universe, or of a list."""
        ...

    @property
    def query_count(self) -> int:
        """How many queries there are: k."""
        ...

    def expectations(self, distribution: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return each query's answer on a distribution, float64[|X|]: float64[k]."""
        ...

    def combination(self, coefficients: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the sum of all queries, each times its coefficient, float64[k]: float64[|X|]."""
        ...


@dataclass(frozen=True)
class Fitted:
    """A fitted distribution.

    Attributes:
        distribution: float64[|X|], not negative, with the sum 1 up to rounding.
        answers: the distribution's answers, float64[k], as fractions of the records.
        loss: L, to be compared with k/2.
        steps: the number of steps.
    """

    distribution: NDArray[np.float64]
    answers: NDArray[np.float64]
    loss: float
    steps: int


def fit(
    workload: Queries,
    measured: NDArray[np.float64],
    variances: NDArray[np.float64],
    within: float = math.inf,
    most_steps: int = MAX_STEPS,
    start: NDArray[np.float64] | None = None,
) -> Fitted:
    """Fit a distribution to noisy answers. Needs about `6 x 8 |X|` bytes besides the result.

    Args:
        workload: the queries.
        measured: the noisy answers, float64[k], as fractions of the records, not clipped.
        variances: of the noise in these units, float64[k], above 0; infinite where nothing was measured.
        within: the fit goes on while an answer is further than this from the measured one.
        most_steps: the largest number of steps.
        start: the distribution that it starts from, float64[|X|], above 0, of any sum; None: the uniform one.

    Raises:
        ValueError: an array has another shape, or a number out of range.

    Method. Weights a_j with sum A_j; z_j moves by mirror steps of size a_j from the gradient at the mean y of z
    and x, and x is the mean of all z weighted by a. With t the step size, a solves `a^2 = t (A + a)`, and a step
    is taken if `t ||q(z') - q(z)||^2 / 2 <= KL(z' || z)` in the norm of L, which is what the bound above needs.
    Where L rises the momentum is dropped: z and A start anew from x (O'Donoghue & Candes 2015).
    """
    _check(workload, measured, variances)
    size = workload.size
    logs = np.full(size, -math.log(size)) if start is None else np.log(start / start.sum())  # of z
    mean = np.exp(logs)  # x
    at_mean = workload.expectations(mean)
    at_point = at_mean  # q(z)
    losses = [_loss(at_mean, measured, variances)]
    step = 1.0 / max(1.0, float(np.max(1 / variances, initial=0.0)))
    total = 0.0
    enough = math.sqrt(np.count_nonzero(np.isfinite(variances)) / 2)
    for _ in range(most_steps):
        slow = len(losses) > WINDOW and losses[-1 - WINDOW] - losses[-1] <= enough
        if slow and float(np.max(np.abs(at_mean - measured), initial=0.0)) <= within:
            break
        for _ in range(HALVINGS):
            weight = (step + math.sqrt(step * (step + 4 * total))) / 2
            part = weight / (total + weight)
            between = at_mean + part * (at_point - at_mean)
            moved = workload.combination((measured - between) / variances)
            moved *= weight
            moved += logs
            moved -= float(moved.max())
            point = np.exp(moved)
            mass = float(point.sum())
            point /= mass
            moved -= math.log(mass)
            reached = workload.expectations(point)
            divergence = float(np.dot(point, moved - logs))
            curvature = step * _loss(reached, at_point, variances)
            if curvature <= divergence or divergence < RESOLUTION:
                break
            step /= 2
        logs, at_point = moved, reached
        mean += part * (point - mean)
        at_mean = at_mean + part * (at_point - at_mean)
        total += weight
        losses.append(_loss(at_mean, measured, variances))
        if losses[-1] > losses[-2]:
            total, at_point = 0.0, at_mean
            logs = np.log(np.maximum(mean, MIN_MEAN))
        if curvature < SPARE * divergence:
            step *= GROWTH
    return Fitted(mean, at_mean, losses[-1], len(losses) - 1)


def _loss(answers: NDArray[np.float64], measured: NDArray[np.float64], variances: NDArray[np.float64]) -> float:
    return float(np.sum((answers - measured) ** 2 / variances)) / 2


def _check(workload: Queries, measured: NDArray[np.float64], variances: NDArray[np.float64]) -> None:
    shape = (workload.query_count,)
    if measured.shape != shape or variances.shape != shape:
        raise ValueError(f"measured and variances must have {workload.query_count} numbers each")
    if not (np.isfinite(measured).all() and (variances > 0).all()):
        raise ValueError("measured must be finite, and variances above 0")
