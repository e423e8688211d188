"""Repair where the protected unit is a whole analyst: test each once, answer the badly served ones alone.

Mechanisms section 5 for unit = analyst. Each analyst's largest error is tested against a public threshold with
noise of its own; who then gets a place is decided by a count test that hides one analyst from another; the
answers come from private multiplicative weights on that analyst's workload alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from equipoise.model.results import AnswerMethod, Answers
from equipoise.queries.fixed_point import on_grid
from equipoise.queries.workload_compiler import CompiledWorkload
from equipoise.records.codec import COUNT, FRACTION, INTEGER, canonical_object, codec_of, key
from equipoise_server.mechanisms.answers import answers_within, uncertified
from equipoise_server.mechanisms.interface import GRID_BITS
from equipoise_server.mechanisms.repair.private_weights import PrivateWeights, tested_half_width
from equipoise_server.mechanisms.repair.repair_places import RepairPlaces
from equipoise_server.mechanisms.repair.statement_repair import (
    SCORE_BITS,
    SYNOPSIS,
    SynopsisCounts,
    score,
)
from equipoise_server.randomness.discrete_laplace import DiscreteLaplace
from equipoise_server.randomness.stream import KeyedStream

MULTIPLICATIVE_WEIGHTS = AnswerMethod.MULTIPLICATIVE_WEIGHTS


@canonical_object
class AnalystRepairParameters:
    """Public parameters of all repairs of a round.

    `threshold`: a score, in units of 2^-16 records. `test_epsilon`: of one analyst's test. `certified_half_width`:
    in units of 2^-40, of all synopsis answers whose analyst tested negative; `weights_half_width`:
    the proven error of all answers by multiplicative weights; `weights_limit`: beyond it such answers are not
    certified; `certify_margin`: score units added to a noisy largest score so that the true one is no larger.
    """

    threshold: int = key("threshold", INTEGER)
    test_epsilon: Fraction = key("test_epsilon", FRACTION)
    places: RepairPlaces = key("places", codec_of(RepairPlaces))
    weights: PrivateWeights = key("weights", codec_of(PrivateWeights))
    certified_half_width: int = key("certified_half_width", COUNT)
    weights_half_width: int = key("weights_half_width", COUNT)
    weights_limit: int = key("weights_limit", COUNT)
    certify_margin: int = key("certify_margin", INTEGER)

    @property
    def test_noise(self) -> DiscreteLaplace:
        """The distribution of the noise on an analyst's largest score."""
        return DiscreteLaplace(self.test_epsilon / (1 << SCORE_BITS))


@dataclass(frozen=True)
class Served:
    """One analyst's private workload, its true counts int64[k], and its counts on the synopsis."""

    workload: CompiledWorkload
    counts: NDArray[np.int64]
    synopsis: SynopsisCounts


def repair_analysts(
    parameters: AnalystRepairParameters,
    analysts: Sequence[str],
    served: Mapping[str, Served],
    records: int,
    start: NDArray[np.float64],
    seed: bytes,
) -> dict[str, Answers]:
    """Return the answers of all analysts in `served`. `analysts`: all public places, present or not.

    `start`: float64[|X|], the public hypothesis from which repair starts. Formal guarantees: given the synopsis,
    what all others see of one analyst is epsilon-DP with the places' epsilon, up to the cap's delta; the cost
    for the data is `accounting.analyst_tests_rho` for all places and `private_weights_rho` for the cap.

    Args:
        parameters: of the plan.
        analysts: all public places, present or not.
        served: what each present analyst asked, and how the synopsis answers it.
        records: the public number of records.
        start: float64[|X|], the public hypothesis from which repair starts.
        seed: of the round, 32 bytes.
    """
    order = KeyedStream.derive(seed, "repair/slots").permutation(len(analysts))
    slots = [analysts[slot] for slot in order.tolist()]
    positive = np.array(
        [name in served and is_positive(parameters, name, served[name], records, seed) for name in slots], np.bool_
    )
    granted = parameters.places.granted(positive, KeyedStream.derive(seed, "repair/places"))
    answers = {}
    for slot, name in enumerate(slots):
        if name in served:
            own = served[name]
            if granted[slot]:
                answers[name] = answer_with_fresh_noise(parameters, name, own, records, start, seed)
            else:
                answers[name] = from_synopsis(parameters, own.synopsis, certified=not positive[slot])
    return {name: answers[name] for name in served}


def is_positive(
    parameters: AnalystRepairParameters, analyst: str, served: Served, records: int, seed: bytes
) -> bool:
    """Return whether the synopsis serves this analyst badly, up to the test's noise.

    Args:
        parameters: of the plan.
        analyst: the analyst's name.
        served: what the analyst asked, and how the synopsis answers it.
        records: the public number of records.
        seed: of the round, 32 bytes.
    """
    if served.workload.query_count == 0:
        return False
    largest = int(score(served.counts, records, served.synopsis).max())
    noise = parameters.test_noise.draw(1, KeyedStream.derive(seed, "repair/detection", analyst))
    return largest + int(noise[0]) >= parameters.threshold


def from_synopsis(parameters: AnalystRepairParameters, synopsis: SynopsisCounts, certified: bool) -> Answers:
    """Return the synopsis's answers, with the intervals of a negative test or without any."""
    values = on_grid(synopsis.counts, synopsis.size)
    return answers_within(values, SYNOPSIS, parameters.certified_half_width) if certified else uncertified(values)


def answer_with_fresh_noise(
    parameters: AnalystRepairParameters,
    analyst: str,
    served: Served,
    records: int,
    start: NDArray[np.float64],
    seed: bytes,
) -> Answers:
    """Answer by private multiplicative weights, with the half-width that their own final test gives them.

    Or the one that is proven without it, where that is smaller or the test is seen to have failed; without
    intervals where neither is within the limit.

    Args:
        parameters: of the plan.
        analyst: the analyst's name.
        served: what the analyst asked, and how the synopsis answers it.
        records: the public number of records.
        start: float64[|X|], the public hypothesis to start from.
        seed: of the round, 32 bytes.
    """
    values, noisy = parameters.weights.answer(
        served.workload, served.counts, records, start, KeyedStream.derive(seed, "repair/weights", analyst)
    )
    tested = tested_half_width(noisy, parameters.certify_margin, values, records)
    half_width = min(parameters.weights_half_width, tested)
    if half_width > parameters.weights_limit:
        return uncertified(values)
    return answers_within(values, MULTIPLICATIVE_WEIGHTS, half_width)


MAX_HALF_WIDTH = 1 << GRID_BITS  # no answer between 0 and 1 errs by more
