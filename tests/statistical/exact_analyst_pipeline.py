"""The exact law of what the whole `equilibrium` releases on a tiny instance where whole analysts are protected.

As in `exact_pipeline`, all that is shipped runs, once for every outcome of its random choices. Analysts who have a
place are answered from streams of their own, so the laws of their answers multiply.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import pairwise
from unittest.mock import patch

import numpy as np
from harness.answers import flat, some_answers
from harness.exact_game import Law, released_law
from numpy.typing import NDArray
from statistical.exact_pipeline import SEED, Choices, ChosenStream, Histogram, Workloads, clipped_noise, every_run
from statistical.exact_repair_places import places_law
from statistical.exact_sparse_vector import at_least

from equipoise.model.results import Answers
from equipoise.model.synopsis import Synopsis
from equipoise.queries.joined_workloads import concatenate
from equipoise_server.game.equilibrium import Game
from equipoise_server.mechanisms.equilibrium.mechanism import repair_all, units_of
from equipoise_server.mechanisms.equilibrium.parameters import EquilibriumParameters
from equipoise_server.mechanisms.interface import PublicParameters
from equipoise_server.mechanisms.repair import analyst_repair, private_weights
from equipoise_server.mechanisms.repair.analyst_repair import (
    AnalystRepairParameters,
    Served,
    answer_with_fresh_noise,
)
from equipoise_server.mechanisms.repair.private_weights import SCORE_ROUNDING, PrivateWeights
from equipoise_server.mechanisms.repair.repair_places import RepairPlaces
from equipoise_server.mechanisms.repair.statement_repair import (
    SCORE_BITS,
    SynopsisCounts,
    half_width_on_grid,
    score,
)
from equipoise_server.mechanisms.repair.weights_hypothesis import starting_weights
from equipoise_server.randomness.discrete_laplace import DiscreteLaplace
from equipoise_server.randomness.stream import KeyedStream

RECORD = 1 << SCORE_BITS
AFRESH = 255  # stands for answers whose law is enumerated apart


@lru_cache(maxsize=4096)
def grants(places: RepairPlaces, positive: tuple[bool, ...]) -> Law:
    """The law of the count test: one number a grant, bit `i` for slot `i`."""
    return places_law(places, positive, list(range(len(positive))))


def key_of(answers: Answers) -> tuple[int, ...]:
    """What an analyst gets."""
    return flat(answers)


def analyst_pipeline_law(
    setting: PublicParameters,
    parameters: EquilibriumParameters,
    histogram: Histogram,
    workloads: Workloads,
    viewers: Sequence[str],
) -> Law:
    """The joint law of the synopsis and of what `viewers` get: values, methods, and intervals in coarse bins."""
    present = {share.analyst: workloads[share.analyst] for share in setting.shares if share.analyst in workloads}
    together = concatenate(list(present.values()))
    counts = together.counts(histogram)
    game = Game(
        parameters.played, together, units_of(setting, together, list(present.values())), counts, setting.records
    )
    law: Law = {}
    known: dict[tuple[int, ...], Law] = {}
    for records, chance in released_law(game, setting.universe_size).items():
        kind = tuple(sorted(records))
        if kind not in known:
            known[kind] = repair_law(setting, parameters, present, counts, np.array(kind), viewers)
        for answers, part in known[kind].items():
            law[records + answers] = chance * part
    return law


def repair_law(
    setting: PublicParameters,
    parameters: EquilibriumParameters,
    workloads: Workloads,
    counts: NDArray[np.int64],
    records: NDArray[np.int64],
    viewers: Sequence[str],
) -> Law:
    """The law of what the viewers get, given the synopsis's records; `counts` of all queries in order."""
    repair = parameters.repair
    assert isinstance(repair, AnalystRepairParameters)
    synopsis = SynopsisCounts(concatenate(list(workloads.values())).record_counts(records), len(records))
    start = starting_weights(Synopsis.of_cells(records, setting.axes), setting.universe_size)
    afresh, begin = dict[str, Law](), 0
    for name, workload in workloads.items():
        own = slice(begin, begin := begin + workload.query_count)
        if name in viewers:
            served = Served(workload, counts[own], replace(synopsis, counts=synopsis.counts[own]))
            afresh[name] = answers_law(repair, name, served, setting.records, start)

    def program(choices: Choices) -> Mapping[str, Answers]:
        def is_positive(_: object, name: str, own: Served, records: int, seed: bytes) -> bool:  # noqa: ARG001
            largest = int(score(own.counts, records, own.synopsis).max())
            chance = at_least(repair.test_noise, repair.threshold - largest)
            return bool(choices.choose([1 - chance, chance]))

        def granted(places: RepairPlaces, positive: NDArray[np.bool_], _: object) -> NDArray[np.bool_]:
            if places.epsilon == 0:
                return positive & (places.cap >= len(positive))
            law = grants(places, tuple(positive.tolist()))
            (code,) = list(law)[choices.choose(list(law.values()))]
            return np.array([bool(code >> slot & 1) for slot in range(len(positive))])

        def marked(*_: object) -> Answers:
            return some_answers(np.zeros(1, np.int64), AFRESH)

        with (
            patch.object(KeyedStream, "derive", lambda *_: ChosenStream(choices)),
            patch.object(analyst_repair, "is_positive", is_positive),
            patch.object(RepairPlaces, "granted", granted),
            patch.object(analyst_repair, "answer_with_fresh_noise", marked),
        ):
            return repair_all(setting, parameters, workloads, counts, synopsis, start, SEED, lambda *_: None)

    law: Law = {}
    for answers, chance in every_run(program):
        joint: Law = {(): chance}
        for name in viewers:
            seen_by_one = key_of(answers[name])
            options = afresh[name] if AFRESH in answers[name].methods else {seen_by_one: 1.0}
            joint = {seen + key: mass * part for seen, mass in joint.items() for key, part in options.items()}
        for key, mass in joint.items():
            law[key] = law.get(key, 0.0) + mass
    return law


def answers_law(
    parameters: AnalystRepairParameters, name: str, served: Served, records: int, start: NDArray[np.float64]
) -> Law:
    """The law of one analyst's answers by private multiplicative weights; the final test is seen in bins."""
    edges = bin_edges(parameters, records)
    answer = PrivateWeights.answer

    def program(choices: Choices) -> Answers:
        def select(exponents: NDArray[np.int64], *_: object) -> NDArray[np.int64]:
            weights = np.exp((exponents - exponents.max()) / 2.0**48)
            return np.array([choices.choose((weights / weights.sum()).tolist())])

        def draw(noise: DiscreteLaplace, count: int, _: object) -> NDArray[np.int64]:
            if noise == parameters.weights.certify_noise:
                return np.zeros(count, dtype=np.int64)  # its noise is added below
            values, law = clipped_noise(noise, records)
            return np.array([values[choices.choose(law)] for _ in range(count)], dtype=np.int64)

        def tested(weights: PrivateWeights, *rest: object) -> tuple[NDArray[np.int64], int]:
            values, largest = answer(weights, *rest)  # type: ignore[arg-type]
            reached = [1.0, *(at_least(weights.certify_noise, edge - largest) for edge in edges), 0.0]
            place = choices.choose([low - high for low, high in pairwise(reached)])
            return values, edges[max(0, place - 1)] - (place == 0)

        with (
            patch.object(KeyedStream, "derive", lambda *_: None),
            patch.object(private_weights, "draw_exponential", select),
            patch.object(DiscreteLaplace, "draw", draw),
            patch.object(PrivateWeights, "answer", tested),
        ):
            return answer_with_fresh_noise(parameters, name, served, records, start, SEED)

    law: Law = {}
    for answers, chance in every_run(program):
        law[key_of(answers)] = law.get(key_of(answers), 0.0) + chance
    return law


def bin_edges(parameters: AnalystRepairParameters, records: int) -> list[int]:
    """Where bins of the final test's noisy score begin: every half record, and where answers are not certified."""

    def bound(noisy: int) -> int:
        tested = noisy + parameters.certify_margin + SCORE_ROUNDING
        return min(parameters.weights_half_width, half_width_on_grid(tested, records << SCORE_BITS))

    low = -parameters.certify_margin
    halves = range(low, low + (records + 1) * RECORD, RECORD // 2)
    uncertified = bisect_right(range(low, low + 2 * records * RECORD), parameters.weights_limit, key=bound) + low
    return sorted({*halves, uncertified})
