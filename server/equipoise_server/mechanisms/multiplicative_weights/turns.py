"""The turns of `multiplicative_weights`: select what the hypothesis serves worst, measure it, and learn from it."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from equipoise.queries.weighed_queries import WeighedQueries
from equipoise_server.mechanisms.fitting import fit
from equipoise_server.mechanisms.hypothesis import Hypothesis, gain_slack, linear_reach
from equipoise_server.mechanisms.interface import GRID_BITS
from equipoise_server.mechanisms.noise_calibration import GaussianNoise
from equipoise_server.mechanisms.repair.private_weights import (
    answer_scores,
    rounding_error,
    selection_exponents,
    selection_step,
)
from equipoise_server.randomness.stream import KeyedStream
from equipoise_server.randomness.weighted import draw_exponential


class Turns(Protocol):
    """What turns need of a plan's parameters."""

    @property
    def rounds(self) -> int:
        """How many turns each analyst has."""
        ...

    @property
    def select_epsilon(self) -> Fraction:
        """Of one selection."""
        ...

    @property
    def noise(self) -> GaussianNoise:
        """Of one measured statement."""
        ...

    @property
    def reach(self) -> int:
        """How far measured fractions may be from the truth, in units of 2^-40."""
        ...


@dataclass(frozen=True, eq=False)
class Learnt:
    """What one analyst's turns measured, and what their hypotheses answered: published, or functions of it.

    `fractions`, `variances`: float64[k], the weighted means of the measured fractions and their variances, infinite
    where nothing was measured. `total`: int64[k], the sum of all hypotheses' answers, in units of 2^-40.
    """

    fractions: NDArray[np.float64]
    variances: NDArray[np.float64]
    total: NDArray[np.int64]

    def fitted(self, queries: WeighedQueries, start: NDArray[np.float64] | None = None) -> NDArray[np.int64]:
        """Return the answers of one fit to all measurements: int64[k], in units of 2^-40, from 0 to 1.

        `queries`: what was learnt from. `start`: the public distribution that the fit starts from, float64[size of
        their list of records]; None: the uniform one.
        """
        answers = fit(queries, self.fractions, self.variances, start=start).answers
        return np.rint(np.clip(answers, 0, 1) * 2.0**GRID_BITS).astype(np.int64)


def learn_in_turns(
    turns: Turns,
    queries: WeighedQueries,
    counts: NDArray[np.int64],
    records: int,
    potential: NDArray[np.int64],
    stream: KeyedStream,
) -> Learnt:
    """Learn from one analyst's statements.

    Args:
        turns: the public parameters.
        queries: the analyst's, k of them, over the records that hypotheses give weights.
        counts: int64[k], the true counts.
        records: `n`, how many records the table has.
        potential: log-weights of the public distribution that is the first hypothesis, one for each record of the
            list: int64.
        stream: the analyst's own.
    """
    starts = queries.statement_offsets
    hypothesis = Hypothesis(potential, gain_slack(rounding_error(records, len(potential))))
    # For each query: the sum of 1 / variance, and the sum of the measured fractions with these weights.
    precision, weighted = np.zeros(len(counts)), np.zeros(len(counts))
    total = np.zeros(len(counts), dtype=np.int64)
    step = selection_step(turns.select_epsilon)
    for _ in range(turns.rounds):
        expected = hypothesis.answers(queries)
        total += expected
        scores = np.maximum.reduceat(answer_scores(counts, records, expected), starts[:-1])
        chosen = int(draw_exponential(selection_exponents(scores, step), 1, stream)[0])
        cells = slice(int(starts[chosen]), int(starts[chosen + 1]))
        law = turns.noise.law(queries.compiled.statement_sensitivity(chosen))
        noisy = (counts[cells] + law.draw(cells.stop - cells.start, stream)) / records
        sums = bool(queries.compiled.weighted[cells].any())
        hypothesis.measured(queries, chosen, noisy, linear_reach(turns.reach / 2.0**GRID_BITS, sums, records))
        weight = records**2 / float(turns.noise.variance * queries.compiled.statement_sensitivity(chosen))
        precision[cells] += weight
        weighted[cells] += weight * noisy
    variances = np.divide(1.0, precision, out=np.full(len(counts), np.inf), where=precision > 0)
    measured = np.divide(weighted, precision, out=np.zeros(len(counts)), where=precision > 0)
    return Learnt(measured, variances, total)
