"""Faults of `online`, and the checks that catch them. See `test_online`.

A threshold that is not drawn again after a positive is not among them: with noise of the same scale, one draw for
all costs less, not more (Lyu, Su & Li 2017).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from unittest.mock import patch

import numpy as np
import pytest
from harness.exact_game import Law, masks_workload, table_workload
from numpy.typing import NDArray
from statistical.exact_noise import ORDERS, renyi
from statistical.exact_online import online_law
from statistical.exact_pipeline import Pair
from statistical.exact_sparse_vector import first_positive_law

from equipoise.accounting import RHO_UNIT, PrivacyEvent
from equipoise.model.accounts import Budget
from equipoise.model.results import Answers
from equipoise.model.rounds import MechanismPlan, Share
from equipoise.queries.workload_compiler import CompiledStatement
from equipoise_server.datasets.dense_counts import DenseCounts
from equipoise_server.mechanisms.answers import answers_within, noisy_on_grid
from equipoise_server.mechanisms.hypothesis import Hypothesis
from equipoise_server.mechanisms.interface import PublicParameters
from equipoise_server.mechanisms.noise_calibration import AnswerNoise, GaussianNoise, fresh_answers
from equipoise_server.mechanisms.online import mechanism as online
from equipoise_server.mechanisms.online import plan as online_plan
from equipoise_server.mechanisms.online.mechanism import Online
from equipoise_server.mechanisms.online.parameters import OnlineParameters
from equipoise_server.mechanisms.repair.statement_repair import UNCERTIFIED
from equipoise_server.mechanisms.sparse_vector import SequentialSparseVector, SparseVector
from equipoise_server.randomness.discrete_gaussian import DiscreteGaussian
from equipoise_server.randomness.discrete_laplace import DiscreteLaplace
from equipoise_server.randomness.stream import KeyedStream

DELTA = 0.01
ONLINE = Online()
TINY = 1e-9


@dataclass(frozen=True)
class Case:
    """Neighbouring tables over a universe of three records, and statements: masks, 0 for the whole marginal."""

    data: tuple[list[int], list[int]]
    masks: tuple[int, ...]
    setting: PublicParameters

    @property
    def statements(self) -> list[CompiledStatement]:
        """Compiled one by one."""
        return [masks_workload([mask], 3) if mask else table_workload([], 3) for mask in self.masks]

    def histogram(self, side: int) -> NDArray[np.int64]:
        """One of the two tables."""
        return np.array(self.data[side], dtype=np.int64)

    def laws(self, plan: MechanismPlan) -> tuple[Law, Law]:
        """Of everything told, on either table."""
        one, two = (online_law(self.setting, plan, self.histogram(side), self.statements) for side in (0, 1))
        return one, two


def case(data: tuple[list[int], list[int]], masks: tuple[int, ...], epsilon: float, **options: object) -> Case:
    """A session of so many statements of one analyst."""
    cells = sum(1 if mask else 3 for mask in masks)
    return Case(
        data,
        masks,
        PublicParameters(
            records=sum(data[0]),
            universe_size=3,
            shares=(Share("a", len(masks), cells),),
            unit="query",
            data_budget=Budget(epsilon, DELTA),
            analyst_budget=Budget(math.inf, 0.0),
            beta=0.1,
            options={"length": len(masks), **options},
        ),
    )


# Both statements are answered, and tell nearly all that is charged: the noise is small against the counts.
CLEAR = case(([2, 1, 1], [1, 2, 1]), (1, 2), 8.0, answers="gaussian")
MIXED = case(([2, 1, 1], [1, 2, 1]), (1, 2), 8.0, updates=2, threshold=0, answers="gaussian")
CASES = {
    "both answered": CLEAR,
    "laplace": case(([3, 2, 1], [2, 3, 1]), (1, 2), 4.0, updates=2, threshold=0, answers="laplace"),
    "a table": case(([2, 0, 0], [1, 1, 0]), (0, 1, 0), 4.0, updates=1, threshold=0, answers="gaussian"),
    "the same again": case(([3, 0, 0], [2, 0, 1]), (1, 1, 1), 4.0, updates=2, threshold=0, answers="gaussian"),
    "far below the threshold": case(([1, 1, 1], [0, 2, 1]), (1, 2, 6, 4), 8.0, updates=2, threshold=0.3),
    "one that ends it": case(([3, 0, 0], [2, 1, 0]), (4, 1, 2, 3), 8.0, updates=1, threshold=0.1),
}


def used(laws: tuple[Law, Law], plan: MechanismPlan) -> float:
    """What part of its charge a session's law uses, at the order that shows most."""
    both = ((laws[0], laws[1]), (laws[1], laws[0]))
    if any(chance > 1e-15 and not other.get(key) for one, other in both for key, chance in one.items()):
        return math.inf
    pair = Pair.of(*laws)
    return max(renyi(pair, order) / order for order in ORDERS) * RHO_UNIT / plan.data_cost.rho


def answers_hide_a_record() -> bool:
    """What is told of a moved record is most of what is charged, and no more."""
    plan = ONLINE.plan(CLEAR.setting)
    return 0.9 < used(CLEAR.laws(plan), plan) <= 1 + TINY


def the_hypothesis_hides_a_record() -> bool:
    """The same where an answer from the hypothesis follows, which moves, and must by nothing but what was told."""
    each = case(([60, 0, 0], [59, 1, 0]), (1, 2), 20.0, updates=1, threshold=0.1, answers="gaussian")
    plan = ONLINE.plan(each.setting)
    laws = each.laws(plan)
    held = {key[5] for key in laws[0] if key[3] == UNCERTIFIED}
    return len(held) > 1 and used(laws, plan) <= 1 + TINY


def scaled_noise(patches: pytest.MonkeyPatch) -> None:
    """Answers whose noise is nine tenths of what is charged."""
    patches.setattr(GaussianNoise, "law", lambda noise, moved: DiscreteGaussian(noise.variance * moved * 81 / 100))


def realised_charge(patches: pytest.MonkeyPatch) -> None:
    """One update charged, as if only one were ever made."""
    parts = online_plan.data_parts

    def of_one(setting: PublicParameters, parameters: OnlineParameters) -> list[PrivacyEvent]:
        return parts(setting, replace(parameters, updates=1))

    patches.setattr(online, "data_parts", of_one)


def true_answer_learnt(patches: pytest.MonkeyPatch) -> None:
    """The hypothesis is told the truth, and the analyst a noisy answer."""
    seen: list[NDArray[np.float64]] = []

    def fresh(
        noise: AnswerNoise,
        moved: int,
        counts: NDArray[np.int64],
        records: int,
        half_width: int,
        stream: KeyedStream,
    ) -> Answers:
        seen.append(counts / records)
        return fresh_answers(noise, moved, counts, records, half_width, stream)

    measured = Hypothesis.measured
    patches.setattr(online, "fresh_answers", fresh)
    patches.setattr(
        Hypothesis,
        "measured",
        lambda held, workload, statement, _, reach: measured(held, workload, statement, seen[-1], reach),
    )


def a_table_hides_a_record() -> bool:
    """A whole table's answer tells no more of a moved record than is charged."""
    each = case(([2, 1, 0], [1, 2, 0]), (0,), 8.0, answers="gaussian")
    plan = ONLINE.plan(each.setting)
    return 0.9 < used(each.laws(plan), plan) <= 1 + TINY


def column_norm(patches: pytest.MonkeyPatch) -> None:
    """The norm of a table's column: a record added or removed, not replaced."""
    patches.setattr(type(masks_workload([1], 3)), "statement_sensitivity", lambda workload, statement: 1)


# Of three records with shares of two fifths, two fifths and a fifth, one moves from the second to the first: the
# errors of statements on the first grow by a record, and of those on the second fall by one.
TESTED = case(([200, 200, 100], [201, 199, 100]), (1,) * 7 + (2,), 3.0, updates=1)


def tests_hide_a_record() -> bool:
    """One record moves seven scores up and one down: all tests together tell no more than their epsilon."""
    plan = ONLINE.plan(TESTED.setting)
    epsilon = float(OnlineParameters.from_json(plan.parameters).test_epsilon)
    laws = []
    for side in (0, 1):
        scores: list[int] = []
        vectors: list[SparseVector] = []

        def negative(
            tests: SequentialSparseVector,
            _: int,
            score: int,
            scores: list[int] = scores,
            vectors: list[SparseVector] = vectors,
        ) -> bool:
            scores.append(score)
            vectors.append(tests.vector)
            return False

        with patch.object(SequentialSparseVector, "positive", negative):
            session = ONLINE.start(TESTED.setting, plan, DenseCounts(TESTED.histogram(side)), bytes(32))
            for slot, statement in enumerate(TESTED.statements):
                session.answer(slot, statement)
        # With thresholds around the scores, of which some show most.
        levels = [replace(vectors[0], threshold=step << 16) for step in range(20, 47, 2)]
        laws.append([first_positive_law(level, tuple(scores)) for level in levels])
    losses = [
        abs(math.log(one / two))
        for first, second in zip(*laws, strict=True)
        for one, two in zip(first, second, strict=True)
        if min(one, two) > 1e-7
    ]
    return 0.9 * epsilon < max(losses) <= epsilon + 1e-6


def halved_sensitivity(patches: pytest.MonkeyPatch) -> None:
    """Tests that believe that a record moves a score by half a record."""
    patches.setattr(
        online,
        "SequentialSparseVector",
        lambda vectors, *rest: SequentialSparseVector(
            [replace(vector, sensitivity=vector.sensitivity // 2) for vector in vectors], *rest
        ),
    )


def answers_are_free_of_test_noise() -> bool:
    """Other noise in the tests, that finds the same statements, gives the same answers."""
    plan, found = ONLINE.plan(MIXED.setting), dict[tuple[int, ...], set[tuple[int, ...]]]()
    derive = KeyedStream.derive
    for run in range(40):

        def other_tests(seed: bytes, *labels: str, run: int = run) -> KeyedStream:
            return derive(seed, *labels, *([str(run)] if labels[1] == "tests" else []))

        with patch.object(KeyedStream, "derive", other_tests):
            session = ONLINE.start(MIXED.setting, plan, DenseCounts(MIXED.histogram(0)), bytes(32))
            told = [session.answer(slot, statement) for slot, statement in enumerate(MIXED.statements)]
        methods = tuple(int(answer.methods[0]) for answer in told)
        found.setdefault(methods, set()).add(tuple(int(answer.values[0]) for answer in told))
    return len(found) > 1 and all(len(values) == 1 for values in found.values())


def answers_from_test_noise(patches: pytest.MonkeyPatch) -> None:
    """What a positive test saw is given as the answer."""
    draw, kept = DiscreteLaplace.draw, list[NDArray[np.int64]]()

    def keep(noise: DiscreteLaplace, count: int, stream: KeyedStream) -> NDArray[np.int64]:
        kept.append(draw(noise, count, stream) >> 16)
        return kept[-1] << 16

    def reused(
        noise: AnswerNoise,
        moved: int,
        counts: NDArray[np.int64],
        records: int,
        half_width: int,
        stream: KeyedStream,
    ) -> Answers:
        del moved, stream
        return answers_within(noisy_on_grid(counts + kept[-1], records), noise.method, half_width)

    patches.setattr(DiscreteLaplace, "draw", keep)
    patches.setattr(online, "fresh_answers", reused)


def nothing_is_read_after_the_last_update() -> bool:
    """Updates are made twice; then the table could be any other."""
    plan = ONLINE.plan(CLEAR.setting)
    statements = CLEAR.statements * 10
    for run in range(10):
        told = []
        for table in ([2, 1, 1], [0, 0, 4]):
            histogram = CLEAR.histogram(0)
            session = ONLINE.start(CLEAR.setting, plan, DenseCounts(histogram), run.to_bytes(32))
            answers: list[Answers] = []
            for slot, statement in enumerate(statements):
                if sum(int(answer.methods[0]) == GaussianNoise.method for answer in answers) == 2:
                    histogram[:] = table
                answers.append(session.answer(slot, statement))
            told.append([(answer.methods.tolist(), answer.values.tolist()) for answer in answers])
        if told[0] != told[1]:
            return False
    return True


def cut_off_not_enforced(patches: pytest.MonkeyPatch) -> None:
    """Tests and answers go on after the last update, as in the last stage."""
    start = online.OnlineSession
    patches.setattr(online, "OnlineSession", lambda setting, stages, *rest: start(setting, 10 * stages, *rest))


def every_place_has_a_stream_of_its_own() -> bool:
    """No two draws of a session read the same words."""
    plan, derived = ONLINE.plan(CLEAR.setting), list[tuple[str, ...]]()
    derive = KeyedStream.derive

    def noted(seed: bytes, *labels: str) -> KeyedStream:
        derived.append(labels)
        return derive(seed, *labels)

    with patch.object(KeyedStream, "derive", noted):
        session = ONLINE.start(CLEAR.setting, plan, DenseCounts(CLEAR.histogram(0)), bytes(32))
        for slot, statement in enumerate(CLEAR.statements * 10):
            session.answer(slot, statement)
    return len(derived) > 5 and len(set(derived)) == len(derived)


def stream_reused_between_slots(patches: pytest.MonkeyPatch) -> None:
    """The same noise in every test."""
    patches.setattr(
        SequentialSparseVector,
        "_stream",
        lambda _, purpose, __: KeyedStream.derive(bytes(32), "online", purpose),
    )


Check = Callable[[], bool]
Switch = Callable[[pytest.MonkeyPatch], None]
MUTANTS: tuple[tuple[str, Check, Switch], ...] = (
    ("noise scale x 0.9", answers_hide_a_record, scaled_noise),
    ("realised instead of capped charge", answers_hide_a_record, realised_charge),
    ("hypothesis moved by the true answer", the_hypothesis_hides_a_record, true_answer_learnt),
    ("column norm used for replace-one", a_table_hides_a_record, column_norm),
    ("sensitivity halved", tests_hide_a_record, halved_sensitivity),
    ("answer from the test's noise", answers_are_free_of_test_noise, answers_from_test_noise),
    ("cut-off not enforced", nothing_is_read_after_the_last_update, cut_off_not_enforced),
    ("stream reused between slots", every_place_has_a_stream_of_its_own, stream_reused_between_slots),
)
