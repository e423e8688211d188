"""What answers to be beaten look like: the uniform guess, and independent Gaussian noise."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri

from equipoise.accounting import RHO_UNIT
from equipoise.workload import CompiledWorkload
from equipoise_server.mechanisms.budgets import usable_rho
from equipoise_server.mechanisms.interface import Budget, Setting
from equipoise_server.simulation.measure import Errors

MEAN_NORMAL = math.sqrt(2 / math.pi)  # of the absolute value of a standard normal


def uniform_guess(workload: CompiledWorkload) -> NDArray[np.float64]:
    """Answers float64[k] as if all records of the universe were equally many."""
    universe = math.prod(workload.schema_sizes)
    return workload.counts(np.ones(universe, dtype=np.int64)) / universe


def gaussian_deviation(moved: int, records: int, budget: Budget) -> float:
    """The standard deviation, as a fraction of the records, of independent Gaussian noise on every answer.

    Noise of deviation s on counts of joint sensitivity l2 costs l2^2 / (2 s^2) zCDP (Bun & Steinke 2016,
    Proposition 1.6). The square of l2 is `moved`, by how many records all counts together may move in sum.
    """
    rho = usable_rho(budget) / RHO_UNIT
    return math.inf if rho == 0 else math.sqrt(moved / (2 * rho)) / records


def gaussian_errors(setting: Setting, answers: int) -> Errors | None:
    """What so many answers would be expected to err by, with noise for all that the shares declare, asked or not.

    None where the budget allows nothing.
    """
    moved = sum(share.moved for share in setting.shares)
    deviation = gaussian_deviation(moved, setting.records, setting.data_budget)
    if math.isinf(deviation):
        return None
    return Errors(deviation * largest_of_normals(answers), deviation * float(ndtri(0.995)), deviation * MEAN_NORMAL)


def largest_of_normals(count: int) -> float:
    """The mean of the largest of `count` absolute values of standard normals: the integral of 1-(2 Phi(x)-1)^k."""
    points, step = np.linspace(0, 12, 12_001, retstep=True)
    return float(step * np.sum(1 - (2 * ndtr(points) - 1) ** count))
