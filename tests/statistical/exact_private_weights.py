"""The exact law of the transcript of private multiplicative weights, and how much of its charge it leaks."""

from __future__ import annotations

from collections import defaultdict
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from harness.exact_game import Law, masks_workload, renyi
from harness.exponential_law import exponential_law
from numpy.typing import NDArray

from equipoise import accounting
from equipoise.queries.workload_compiler import CompiledWorkload
from equipoise_server.mechanisms.repair.private_weights import (
    PrivateWeights,
    answer_scores,
    measured_answer,
    selection_exponents,
)
from equipoise_server.mechanisms.repair.weights_hypothesis import Fit

ORDERS = (1.25, 2.0, 4.0, 16.0)
UNIFORM = np.ones(3)


def transcript_law(weights: PrivateWeights, workload: CompiledWorkload, histogram: NDArray[np.int64]) -> Law:
    """The law of what is selected and measured: query and answer of every round."""
    noise = [(z, float(p)) for z, p in weights.measure_noise.law().items() if p > 0]
    counts, records = workload.counts(histogram), int(histogram.sum())
    measured: list[dict[int, float]] = [defaultdict(float) for _ in counts]
    for query, z_mass in product(range(len(counts)), noise):
        measured[query][measured_answer(int(counts[query]), z_mass[0], records)] += z_mass[1]
    law: Law = {(): 1.0}
    for _ in range(weights.rounds):
        longer: dict[tuple[int, ...], float] = defaultdict(float)
        for past, chance in law.items():
            fit = Fit(workload, UNIFORM, weights.guard)
            for query, answer in zip(past[::2], past[1::2], strict=True):
                fit.measured(query, answer)
            scores = answer_scores(counts, records, fit.answers())
            chosen = exponential_law(selection_exponents(scores, weights.select_step))
            for query, part in enumerate(chosen):
                for answer, mass in measured[query].items():
                    longer[(*past, query, answer)] += chance * float(part) * mass
        law = dict(longer)
    return law


def worst_use(weights: PrivateWeights, rho: float, orders: tuple[float, ...] = ORDERS) -> float:
    """The largest divergence over neighbouring data, as a part of the charge `order rho`."""
    choose = np.random.default_rng(11)
    worst = 0.0
    for _ in range(6):
        workload = masks_workload(choose.integers(1, 7, 3).tolist(), 3)
        data = np.bincount(choose.integers(0, 3, 2), minlength=3).astype(np.int64)
        moved = int(choose.choice(np.flatnonzero(data)))
        other = data.copy()
        other[moved] -= 1
        other[(moved + 1) % 3] += 1
        law, near = transcript_law(weights, workload, data), transcript_law(weights, workload, other)
        assert sum(law.values()) == pytest.approx(1, abs=1e-9)
        for order in orders:
            worst = max(worst, renyi(law, near, order) / (order * rho), renyi(near, law, order) / (order * rho))
    return worst


def charge(weights: PrivateWeights) -> float:
    """What the rounds cost, without the final test."""
    return float(
        accounting.private_weights_rho(
            weights.select_epsilon, weights.measure_epsilon, Fraction(0), weights.rounds, places=1
        )
    )
