"""What answers to be beaten look like: the uniform guess, and independent Gaussian noise."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from equipoise.accounting import RHO_UNIT
from equipoise.workload import CompiledWorkload
from equipoise_server.ledger.conversion import largest_rho
from equipoise_server.mechanisms.interface import Budget


def uniform_guess(workload: CompiledWorkload) -> NDArray[np.float64]:
    """Answers float64[k] as if all records of the universe were equally many."""
    universe = math.prod(workload.schema_sizes)
    return workload.counts(np.ones(universe, dtype=np.int64)) / universe


def gaussian_deviation(workload: CompiledWorkload, records: int, budget: Budget) -> float:
    """The standard deviation, as a fraction of the records, of independent Gaussian noise on every query.

    Noise of deviation s on counts of joint sensitivity l2 costs l2^2 / (2 s^2) zCDP (Bun & Steinke 2016,
    Proposition 1.6).
    """
    rho = largest_rho(budget.epsilon, budget.delta) / RHO_UNIT
    return math.inf if rho == 0 else workload.sensitivities()[1] / math.sqrt(2 * rho) / records


def largest_of_normals(count: int) -> float:
    """The mean of the largest of `count` absolute values of standard normals: the integral of 1-(2 Phi(x)-1)^k."""
    points, step = np.linspace(0, 12, 12_001, retstep=True)
    return float(step * np.sum(1 - (2 * ndtr(points) - 1) ** count))
