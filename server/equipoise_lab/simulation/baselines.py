"""The baselines of a simulation: the uniform guess, and independent noise."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from equipoise.accounting import RHO_UNIT
from equipoise.model.accounts import Budget
from equipoise.queries.workload_compiler import CompiledWorkload
from equipoise.residuals.product_terms import product_terms
from equipoise_lab.simulation.measure import Errors
from equipoise_server.mechanisms.budget_rounding import usable_rho

POINTS = 12_001
BLOCK = 1 << 13  # boxes of queries that are treated at once


@dataclass(frozen=True)
class Noise:
    """A symmetric distribution of scale 1.

    `tail`: the probability above each point, from 0; `mean`: of its absolute value. Beyond `farthest` the tail is
    below 10^-20.
    """

    tail: Callable[[NDArray[np.float64]], NDArray[np.float64]]
    mean: float
    farthest: float


def uniform_guess(workload: CompiledWorkload) -> NDArray[np.float64]:
    """Return the answers, float64[k], of the uniform distribution over the universe."""
    parts = np.zeros(workload.query_count)
    for terms in product_terms(workload):
        for start in range(0, len(terms.queries), BLOCK):
            rows = np.arange(start, min(start + BLOCK, len(terms.queries)))
            own = terms.coefficients[rows].astype(np.float64)
            for taken in terms.factors(rows):
                own *= taken.mean(axis=1)
            np.add.at(parts, terms.queries[rows], own)
    return parts


def gaussian_deviation(l1_sensitivity: int, records: int, budget: Budget) -> float:
    """Return the standard deviation, as a fraction of the records, of independent Gaussian noise on every answer.

    Noise of deviation s on counts of joint sensitivity l2 costs l2^2 / (2 s^2) zCDP (Bun & Steinke 2016,
    Proposition 1.6).

    Args:
        l1_sensitivity: by how many records all counts together may move in sum; the square of l2.
        records: of the table.
        budget: what all answers may cost together.

    Returns:
        The deviation; infinity where the budget is too small for any noise.
    """
    rho = usable_rho(budget) / RHO_UNIT
    return math.inf if rho == 0 else math.sqrt(l1_sensitivity / (2 * rho)) / records


def gaussian_errors(deviation: float, queries: int) -> Errors:
    """Return the expected errors of answers with independent Gaussian noise.

    Args:
        deviation: of each answer's noise, as a fraction of the records.
        queries: how many answers.
    """
    return noise_errors(GAUSSIAN, np.full(queries, deviation))


def noise_errors(noise: Noise, scales: NDArray[np.float64]) -> Errors:
    """Return the expected errors of answers with independent noise, which is not cut at 0 or 1.

    The largest error is at most x where no answer errs by more. The percentile is where the mean tail of both sides
    is a hundredth; of few answers it is the largest, as it is where they are measured.

    Args:
        noise: the distribution of scale 1.
        scales: float64[k], of each answer's noise, as fractions of the records.
    """
    points, step = np.linspace(0, noise.farthest * float(scales.max()), POINTS, retstep=True)
    none_beyond, expected = np.ones(POINTS), np.zeros(POINTS)
    for scale, count in zip(*np.unique(scales, return_counts=True), strict=True):
        tail = 2 * noise.tail(points / scale)
        none_beyond *= (1 - tail) ** count
        expected += count * tail
    largest = float(step * np.sum(1 - none_beyond))
    percentile = float(points[np.argmax(expected <= 0.01 * len(scales))])
    return Errors(max=largest, p99=min(percentile, largest), mean=float(noise.mean * scales.mean()))


GAUSSIAN = Noise(lambda points: ndtr(-points), math.sqrt(2 / math.pi), 12.0)
LAPLACE = Noise(lambda points: np.exp(-points) / 2, 1.0, 46.0)
