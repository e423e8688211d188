"""A distribution over a list of records that learns from noisy counts: each tilt brings it nearer to the data.

The distribution is `exp(potential)`, normalised. Let a statement's cells be measured as `y`, within `reach` of the
truth `t`, and be held as `h`. Adding `l_c` to the potential of every record in cell `c` lowers the divergence
KL(data || distribution) by `sum_c l_c t_c - log sum_c h_c exp(l_c)`, which is at least

    G(l) = sum_c l_c y_c - reach sum_c |l_c| - log sum_c h_c exp(l_c),

a function of what was measured. The best of several `l` is taken if its G is positive. One of them moves a single
cell, the one whose distance `d = |y_c - h_c| - reach` is largest, by `4 d`: by Hoeffding's lemma its G is at least
`2 d^2`. If the list is the universe X and the distribution starts uniform, the divergence starts at `log|X|` at
most, and all gains together never exceed that. (Ascent in the dual of the largest entropy within `reach` of all
that was measured: Dudik, Phillips & Schapire 2007.) What it starts from may be any function of what was published:
`prior`.

Sums. A record x has a weight w(x) in [0, 1] in its cell, and the potential moves by `l_c w(x)`. As exp is convex,
`exp(l w) <= 1 - w + w exp(l)`, so with `t_c` and `h_c` for the sums of weights G is a bound on what is gained, as
above, and so is `2 d^2`. Published sums are rounded down to whole records, the `t_c` of the proof are not: what was
measured is up to one record further from it than from the truth that is told (`linear_reach`).

Later selections depend on the distribution, so it must be the same on every machine: exponents and weights are
integers, sums are exact or rounded once, and logarithms are decimal.
"""

from __future__ import annotations

import math
from collections import deque
from decimal import Decimal

import numpy as np
from numpy.typing import NDArray

from equipoise.queries.axis_weights import WEIGHT_BITS, whole_and_rest
from equipoise.queries.weighed_queries import WeighedQueries
from equipoise_server.mechanisms.repair.weights_hypothesis import MAX_GAP, rounded_weights
from equipoise_server.randomness.exponential import UNIT_BITS, exponentials, precise

STEP_BITS = 28  # tilts are integers in units of 2^-28 nats
MAX_NATS = 4  # of one tilt: what the proof needs, as no distance exceeds 1
SCALES = tuple(2.0**power for power in range(-1, 14))
AGAIN = 24  # measurements used in each round
SINGLE = 4.0  # of one cell's distance: what the proof needs
# A cell's number is read in two digits, whose sums over 2^20 cells keep to the limit of `unit_transpose`.
DIGIT_BITS = 10
_STEP_SHIFT = UNIT_BITS - STEP_BITS
_CONTEXT = precise(30)

# Queries, statement's index, its cells' fractions, and how far these may be from the truth.
Measured = tuple[WeighedQueries, int, NDArray[np.float64], float]


class Hypothesis:
    """The distribution over the records of a list: the universe, or a support.

    `potential`: the log-weights that it starts from, int64[records] in units of 2^-48 nats, the largest of them 0;
    all 0 for the uniform distribution. `slack`: the nats by which rounding may reduce a gain (`gain_slack`); a tilt
    that does not gain more is skipped.
    """

    def __init__(self, potential: NDArray[np.int64], slack: float) -> None:
        self._slack = slack
        self._measured: deque[Measured] = deque(maxlen=AGAIN)
        self._potential = potential.copy()
        self._weights, self._unit = rounded_weights(exponentials(potential))

    def answers(self, workload: WeighedQueries) -> NDArray[np.int64]:
        """Return the distribution's answer to every query: int64[k] in units of 2^-40."""
        answers: NDArray[np.int64] = np.rint(workload.counts(self._weights) * self._unit).astype(np.int64)
        return answers

    def measured(
        self, workload: WeighedQueries, statement: int, fractions: NDArray[np.float64], reach: float
    ) -> None:
        """Learn from the noisy fractions of one statement's cells, then again from the latest earlier measurements.

        Args:
            workload: contains the statement.
            statement: the statement's index in the workload.
            fractions: the noisy fraction of each of its cells, float64[cells].
            reach: the largest error of such a fraction.
        """
        self._measured.append((workload, statement, fractions, reach))
        for earlier in reversed(self._measured):
            self._tilt(*earlier)

    def _tilt(self, workload: WeighedQueries, statement: int, measured: NDArray[np.float64], reach: float) -> None:
        first = int(workload.statement_offsets[statement])
        queries = np.arange(first, first + len(measured), dtype=np.int64)
        cells, units = _places(workload, queries)
        expected = self._expected(cells, units, len(measured))
        gaps = measured - expected[1:]
        distances = np.abs(gaps) - reach
        pulls = np.where(distances > 0, np.copysign(distances, gaps), 0.0)
        if not pulls.any():
            return
        alone = np.zeros_like(pulls)
        worst = int(np.argmax(distances))
        alone[worst] = pulls[worst]
        tilts = _units(np.stack([alone * SINGLE, *(pulls * scale for scale in SCALES)]))
        gains = _gains(tilts, measured, expected, reach)
        best = max(range(len(tilts)), key=gains.__getitem__)
        if gains[best] > self._slack:
            tilt = np.concatenate([[0], tilts[best]])[cells]
            self._potential += tilt << _STEP_SHIFT if units is None else tilt * units << _STEP_SHIFT - WEIGHT_BITS
            self._potential -= self._potential.max()
            # Weights more than `MAX_GAP` below the heaviest cell are too small to distinguish.
            np.maximum(self._potential, -MAX_GAP, out=self._potential)
            self._weights, self._unit = rounded_weights(exponentials(self._potential))

    def _expected(
        self, cells: NDArray[np.int64], units: NDArray[np.int64] | None, count: int
    ) -> NDArray[np.float64]:
        """Return the part outside of all cells, and that of each, by weight: float64[cells + 1]."""

        def summed(weights: NDArray[np.int64]) -> NDArray[np.int64]:
            return np.bincount(cells, weights=weights.astype(np.float64), minlength=count + 1).astype(np.int64)

        if units is None:
            # Integers below 2^52, so these sums are exact.
            sums = summed(self._weights)
            return np.asarray(sums / float(sums.sum()))
        whole, rest = whole_and_rest(lambda some: summed(some * units), self._weights, np.ones(count + 1, np.bool_))
        parts = (whole + rest / 2.0**WEIGHT_BITS) / float(self._weights.sum())
        parts[0] = 1 - math.fsum(parts[1:].tolist())
        return np.asarray(parts)


def linear_reach(reach: float, sums: bool, records: int) -> float:
    """Return how far measured fractions may be from what is linear in the records: a sum's, before it is rounded.

    Args:
        reach: how far they may be from the truth that is told, as a fraction of the records.
        sums: whether they are of sums.
        records: `n`, how many records the table has.
    """
    return reach + 1 / records if sums else reach


def _places(
    workload: WeighedQueries, queries: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64] | None]:
    """Return the cell of each record in one statement, from 1 on, and its weight in it: int64[records] each.

    The cell is 0 for records that are left out. Weights are in units of 2^-16; None where all are 1.
    """
    if not workload.compiled.weighted[queries[0]]:
        return workload.transpose_sparse(queries, np.arange(1, len(queries) + 1, dtype=np.int64)), None
    units = workload.unit_transpose_sparse(queries, np.ones_like(queries))
    cells = (units > 0).astype(np.int64)
    for shift in (0, DIGIT_BITS):
        digits = np.arange(len(queries), dtype=np.int64) >> shift & (1 << DIGIT_BITS) - 1
        if digits.any():
            cells += workload.unit_transpose_sparse(queries, digits) // np.maximum(units, 1) << shift
    return cells, units


def gain_slack(rounding: float) -> float:
    """Return the nats by which rounding may reduce a gain.

    The sum under the logarithm is at least `exp(-4)`, and its error is at most `exp(4) rounding`. Rounding tilts to
    2^-28 nats changes far less. `rounding`: the largest rounding error of the distribution's fractions.
    """
    return rounding * math.exp(2 * MAX_NATS)


def _gains(
    tilts: NDArray[np.int64], measured: NDArray[np.float64], expected: NDArray[np.float64], reach: float
) -> list[float]:
    """Compute G of each tilt, int64[tilts, cells], with the same few roundings on every machine."""
    nats = tilts / 2.0**STEP_BITS
    factors = np.ones((len(tilts), len(expected)))
    factors[:, 1:] = exponentials(tilts << (UNIT_BITS - STEP_BITS))
    totals, straight, lengths = (
        [math.fsum(row) for row in each.tolist()] for each in (expected * factors, nats * measured, np.abs(nats))
    )
    return [
        gained - reach * length - float(_CONTEXT.ln(Decimal(total)))
        for total, gained, length in zip(totals, straight, lengths, strict=True)
    ]


def _units(nats: NDArray[np.float64]) -> NDArray[np.int64]:
    cut = np.clip(nats, -MAX_NATS, MAX_NATS)
    units: NDArray[np.int64] = np.rint(cut * 2.0**STEP_BITS).astype(np.int64)
    return units
