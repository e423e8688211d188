"""Repair: find the statements that the synopsis serves badly, and answer those afresh, with noise.

Mechanisms section 5 for unit = query. Everything here is done for one analyst with streams, thresholds and a
cut-off of its own: nothing in detection may couple analysts.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from equipoise.model.results import NO_ANSWERS, AnswerMethod, Answers
from equipoise.queries.fixed_point import GRID_BITS, on_grid
from equipoise.queries.workload_compiler import CompiledWorkload
from equipoise.records.codec import COUNT, FRACTION, INTEGER, canonical_object, key, mapping_of
from equipoise_server.mechanisms.answers import answers_within, uncertified, with_answers
from equipoise_server.mechanisms.noise_calibration import NOISE, NOISE_HALF_WIDTHS, AnswerNoise, fresh_answers
from equipoise_server.mechanisms.sparse_vector import SparseVector
from equipoise_server.randomness.stream import KeyedStream

SCORE_BITS = 16  # scores are errors in units of 2^-16 records: one record changed moves a score by 2^16
SYNOPSIS, UNCERTIFIED = AnswerMethod.SYNOPSIS, AnswerMethod.UNCERTIFIED


@canonical_object
class RepairParameters:
    """Public parameters of all repairs of a round.

    `threshold`: a score, in units of 2^-16 records. `test_epsilon`: of one AboveThreshold. `noise`: of statements
    answered afresh. `cut_offs`: repair places of each analyst. `certified_half_width`: in units of 2^-40, of
    certified synopsis answers, for all at once; `noise_half_widths`: of answers with noise, by how much the
    statement's counts move (1: predicates, 2: marginals).
    """

    threshold: int = key("threshold", INTEGER)
    test_epsilon: Fraction = key("test_epsilon", FRACTION)
    noise: AnswerNoise = key("noise", NOISE)
    cut_offs: Mapping[str, int] = key("cut_offs", mapping_of(COUNT))
    certified_half_width: int = key("certified_half_width", COUNT)
    noise_half_widths: tuple[int, int] = key("noise_half_widths", NOISE_HALF_WIDTHS)


@dataclass(frozen=True)
class SynopsisCounts:
    """Counts of one analyst's queries on a synopsis of `size` records: int64[k] between 0 and `size`."""

    counts: NDArray[np.int64]
    size: int


def repair(
    parameters: RepairParameters,
    analyst: str,
    workload: CompiledWorkload,
    counts: NDArray[np.int64],
    records: int,
    synopsis: SynopsisCounts,
    seed: bytes,
) -> Answers:
    """Return one analyst's answers.

    Formal guarantees: given the synopsis, what another analyst sees does not depend on this analyst's
    workload at all; the cost for the data is `cut_off test_epsilon^2 / 2 + noise.rho(cut_off)` in zCDP.

    Args:
        parameters: of the plan.
        analyst: the analyst's name.
        workload: the analyst's statements, of k queries.
        counts: int64[k], the true counts.
        records: the public number of records.
        synopsis: its counts of the same queries.
        seed: of the round, 32 bytes.
    """
    if workload.query_count == 0:
        return NO_ANSWERS
    starts, sizes = workload.statement_offsets[:-1], np.diff(workload.statement_offsets)
    scores = np.maximum.reduceat(score(counts, records, synopsis), starts)
    vector = SparseVector(
        parameters.test_epsilon, 1 << SCORE_BITS, parameters.threshold, parameters.cut_offs[analyst]
    )
    order = KeyedStream.derive(seed, "repair/order", analyst).permutation(len(scores))
    positive, tested = vector.detect(scores, order, KeyedStream.derive(seed, "repair/detection", analyst))

    values, certified = on_grid(synopsis.counts, synopsis.size), np.repeat(tested, sizes)
    within = answers_within(values, SYNOPSIS, parameters.certified_half_width)
    answers = with_answers(uncertified(values), certified, within[certified])
    afresh = [NO_ANSWERS]
    stream = KeyedStream.derive(seed, "repair/answers", analyst)
    for statement in np.flatnonzero(positive):
        cells = slice(int(starts[statement]), int(starts[statement] + sizes[statement]))
        l1_sensitivity = workload.statement_sensitivity(int(statement))
        half_width = parameters.noise_half_widths[l1_sensitivity - 1]
        afresh.append(fresh_answers(parameters.noise, l1_sensitivity, counts[cells], records, half_width, stream))
    return with_answers(answers, np.repeat(positive, sizes), Answers.join(afresh))


def score(counts: NDArray[np.int64], records: int, synopsis: SynopsisCounts) -> NDArray[np.int64]:
    """Return `|K q(D) - round(K q(Dhat))|` with `K = records 2^16`, int64[k]: integers of sensitivity 2^16.

    Args:
        counts: int64[k], the true counts.
        records: the public number of records.
        synopsis: its counts of the same queries.
    """
    # `K count / size` in a whole part and a rest: each product stays far below 2^63 for any size that is allowed.
    whole, rest = divmod(records << SCORE_BITS, synopsis.size)
    rounded = whole * synopsis.counts + (2 * rest * synopsis.counts + synopsis.size) // (2 * synopsis.size)
    distance: NDArray[np.int64] = np.abs((counts << SCORE_BITS) - rounded)
    return distance


def half_width_on_grid(amount: int, scale: int) -> int:
    """Return `amount / scale` in units of 2^-40, rounded up, and a unit for the rounding of the answer itself.

    `amount`: of error. `scale`: in the unit of the amount, what makes up all records. The result is at most 1: no
    answer, lying between 0 and 1 like the truth, is further from it.
    """
    return min(1 << GRID_BITS, math.ceil(Fraction(amount << GRID_BITS, scale)) + 1)
