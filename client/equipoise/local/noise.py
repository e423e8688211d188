"""Noise like a round's, for trials: independent Gaussian noise on every answer.

It protects nobody: the random numbers are those of a seed, and are not exact. A trial's table is one's own.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from equipoise.errors import InvalidArgument
from equipoise.model.results import AnswerMethod, Answers
from equipoise.model.synopsis import Synopsis
from equipoise.queries.compiled_workload import CompiledWorkload
from equipoise.queries.fixed_point import ONE


@dataclass(frozen=True)
class Noise:
    """How much is added.

    Attributes:
        epsilon: of the people in the table; what a round's `data_budget` would have.
        delta: the same budget's.
        beta: with probability `1 - beta` all intervals of one workload hold at once.
        seed: the same one gives the same answers.
    """

    epsilon: float = 1.0
    delta: float = 1e-9
    beta: float = 0.05
    seed: int = 0

    def __post_init__(self) -> None:
        if not (0 < self.epsilon < math.inf):
            raise InvalidArgument("epsilon", "must be above 0")
        for name in ("delta", "beta"):
            if not 0 < getattr(self, name) < 1:
                raise InvalidArgument(name, "must be between 0 and 1")

    def deviation(self, workload: CompiledWorkload) -> float:
        """Returns the standard deviation of each count's noise, in records.

        Counts that move by at most `s` together, in the L2 norm, are `rho`-zCDP with noise of `s / sqrt(2 rho)`.
        That is (epsilon, delta)-differential privacy for `epsilon = rho + 2 sqrt(rho ln(1 / delta))` (Bun and
        Steinke 2016, propositions 1.6 and 1.3). A round's conversion is a little better, and its mechanism may be.
        """
        _, moves, _ = workload.sensitivities()
        log = math.log(1 / self.delta)
        return moves / (math.sqrt(2) * (math.sqrt(log + self.epsilon) - math.sqrt(log)))

    def mean_error(self, workload: CompiledWorkload) -> float:
        """Returns the mean error of each count, in records: that of a normal distribution."""
        return self.deviation(workload) * math.sqrt(2 / math.pi)

    def half_width(self, workload: CompiledWorkload) -> float:
        """Returns how far every interval reaches to either side, in records: by a union bound over the answers."""
        return self.deviation(workload) * math.sqrt(2 * math.log(2 * max(1, workload.query_count) / self.beta))

    def answers(self, workload: CompiledWorkload, table: Synopsis) -> Answers:
        """Returns noisy answers with intervals, as a round gives them."""
        counts = table.counts(workload).astype(np.float64)
        deviation, half = self.deviation(workload), self.half_width(workload)
        noisy = counts + np.random.default_rng(self.seed).normal(0.0, deviation, len(counts))
        unit = ONE / len(table)
        lows, highs = np.floor((noisy - half) * unit), np.ceil((noisy + half) * unit)
        return Answers(
            np.rint(noisy * unit).astype(np.int64),
            np.full(len(counts), AnswerMethod.GAUSSIAN, dtype=np.uint8),
            np.clip(lows, 0, ONE).astype(np.int64),
            np.clip(highs, 0, ONE).astype(np.int64),
            np.full(len(counts), math.ceil(deviation * unit), dtype=np.int64),
        )


def exact_answers(workload: CompiledWorkload, table: Synopsis) -> Answers:
    """Returns the truths in the form of answers, with intervals of no width: for comparisons on one's own table."""
    values = table.answers(workload)
    methods = np.full(len(values), AnswerMethod.GAUSSIAN, dtype=np.uint8)
    return Answers(values, methods, values, values, np.zeros_like(values))
