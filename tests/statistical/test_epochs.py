"""Sessions in epochs on both neighbour relations: exact laws of the shipped class, against what is charged.

Data: a record is replaced, and everything is seen. Analysts: one statement is replaced, and all but its own answer
is seen. Mutants are put in from here; each must exceed what the shipped one is charged.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache
from unittest.mock import patch

import numpy as np
import pytest
from harness.audit_size import AuditSize
from harness.exact_game import Law, hockey_stick, masks_workload, renyi, schema
from numpy.typing import NDArray
from statistical.exact_epochs import EnumeratedEpochs, Remembered, session_law

from equipoise.accounting import ApproximateDpEvent, PrivacyEvent, ThresholdTests, ZcdpEvent, repair_places_delta
from equipoise.model.accounts import Budget
from equipoise.model.results import Answers
from equipoise.model.rounds import Share
from equipoise.queries.fixed_point import on_grid
from equipoise.queries.statements import Marginal
from equipoise.queries.workload_compiler import compile_single
from equipoise_lab.audit.clopper_pearson import Sampler, certify
from equipoise_server.conversion import delta_of_rho, epsilon_of_rho
from equipoise_server.datasets.dense_counts import DenseCounts
from equipoise_server.mechanisms.epochs.cost import Session, analyst_parts, data_parts
from equipoise_server.mechanisms.epochs.epochs import EpochParameters, Epochs, pulls
from equipoise_server.mechanisms.epochs.question import LinearQuestion, Question, Scale
from equipoise_server.mechanisms.interface import PublicParameters
from equipoise_server.mechanisms.noise_calibration import GaussianNoise
from equipoise_server.randomness.discrete_laplace import DiscreteLaplace
from equipoise_server.randomness.stream import KeyedStream

RECORD = 1 << 16  # as a score
NAT = 1 << 32  # the step with which a whole direction moves an exponent by 1
ALWAYS = -(1 << 50)  # a threshold that every score exceeds
SURE = Fraction(200)  # noise of this rate is 0
SETTING = PublicParameters(20, 4, (Share("a", 9, 9),), "query", Budget(5.0, 0.01), Budget(2.0, 0.01), 0.05, {})

Kind = type[EnumeratedEpochs]


TABLE = compile_single(Marginal(("x",)), schema(2))


@dataclass(frozen=True)
class DataCase:
    """A session, and its data: every histogram of so many records over two or more. Mask 0: the whole marginal."""

    parameters: EpochParameters
    masks: tuple[int, ...]
    universe: int

    @property
    def session(self) -> Session:
        asked = len(self.masks)
        return Session(self.universe, self.parameters.scale, 2, asked, asked, asked)

    def questions(self, histogram: tuple[int, ...]) -> list[Question | None]:
        data, records = np.array(histogram, dtype=np.int64), sum(histogram)
        asked = [masks_workload([mask], self.universe) if mask else TABLE for mask in self.masks]
        return [LinearQuestion(statement, DenseCounts(data), records) for statement in asked]

    @cache  # noqa: B019
    def laws(self, kind: Kind = EnumeratedEpochs, played: EpochParameters | None = None) -> list[tuple[Law, Law]]:
        """Of all neighbours with two kinds of records, in both orders."""
        records, made = self.parameters.scale.units, played or self.parameters
        histograms = [(first, records - first) for first in range(records + 1)]
        found = [session_law(made, self.universe, self.questions(each), kind=kind) for each in histograms]
        pairs = list(itertools.pairwise(found))
        return [*pairs, *((far, near) for near, far in pairs)]

    def used(self, order: float, kind: Kind = EnumeratedEpochs, played: EpochParameters | None = None) -> float:
        """The largest divergence as a part of what is charged."""
        charged = sum(float(part.divergence(Fraction(order))[0]) for part in self.parts())
        return max(renyi(near, far, order) for near, far in self.laws(kind, played)) / charged  # type: ignore[arg-type]

    def parts(self) -> list[PrivacyEvent]:
        return data_parts(SETTING, self.session, self.parameters)


def parameters(**changed: object) -> EpochParameters:
    """A session of three records with sure count tests, but for what is changed."""
    usual = EpochParameters(
        scale=Scale(3, 1),
        epochs=2,
        target=1,
        cap=1,
        ending_epsilon=SURE,
        records=1,
        step=NAT,
        threshold=RECORD,
        test_epsilon=Fraction(1),
        noise=GaussianNoise(Fraction(2)),
        guard=0,
        certified_half_width=1,
        noise_half_widths=(1, 1),
    )
    return replace(usual, **changed)  # type: ignore[arg-type]


WHOLE = DataCase(parameters(), (1, 2, 1), 2)
# Tests alone: many of them before the one positive, and an answer that tells next to nothing.
TESTS = DataCase(
    parameters(epochs=1, scale=Scale(2, 1), test_epsilon=Fraction(1, 10), noise=GaussianNoise(Fraction(10**4))),
    (1,) * 14,
    2,
)
# Answers alone: every test is positive, with noise that tells next to nothing.
ANSWERS = DataCase(
    parameters(
        scale=Scale(6, 1), threshold=ALWAYS, test_epsilon=Fraction(1, 10**6), noise=GaussianNoise(Fraction(1, 4))
    ),
    (1, 1),
    2,
)
TABLES = replace(ANSWERS, masks=(0,))


@pytest.mark.parametrize(
    ("case", "fraction"),
    [(WHOLE, 0.4), (TESTS, 0.9), (ANSWERS, 0.9), (TABLES, 0.9)],
    ids=["whole", "tests", "answers", "tables"],
)
def test_a_record_costs_at_most_its_charge(case: DataCase, fraction: float) -> None:
    orders = [1.5, 2.0, 3.0]
    assert fraction <= max(case.used(order) for order in orders)
    assert max(case.used(order) for order in orders) <= 1
    amounts = [part.amounts() for part in case.parts()]
    rho, epsilon, delta = (float(sum(each)) for each in zip(*amounts, strict=True))
    for near, far in case.laws():
        assert sum(near.values()) == pytest.approx(1, abs=1e-6)
        for more in (0.1, 0.5, 2.0):
            assert hockey_stick(near, far, epsilon + more) <= delta_of_rho(rho, more) + delta + 1e-7


def test_which_way_tests_are_counted() -> None:
    assert any(isinstance(part, ThresholdTests) for part in TESTS.parts())
    assert not any(isinstance(part, ThresholdTests) for part in (*WHOLE.parts(), *ANSWERS.parts()))


class LearnsTruth(EnumeratedEpochs):
    """The mutant that learns from true answers."""

    def _tested(self, slot: int, question: Question, held: NDArray[np.int64]) -> Answers:
        before, afresh = self._learnt.copy(), self._afresh
        answers = super()._tested(slot, question, held)
        if self._afresh > afresh:
            gaps = on_grid(question.truth(), self._parameters.scale.units) - held
            self._learnt[:] = before + question.direction(pulls(gaps, self._parameters.guard))
        return answers


def test_noise_too_small_by_a_tenth_is_caught() -> None:
    assert TESTS.used(2.0, played=replace(TESTS.parameters, test_epsilon=Fraction(1, 9))) > 1
    assert ANSWERS.used(2.0, played=replace(ANSWERS.parameters, noise=GaussianNoise(Fraction(81, 400)))) > 1


def test_half_the_sensitivity_is_caught() -> None:
    halved = property(lambda each: DiscreteLaplace(each.test_epsilon / (1 << 15)))
    with patch.object(EpochParameters, "test_noise", halved):
        assert replace(TESTS, masks=TESTS.masks[1:]).used(2.0) > 1


def test_the_norm_of_a_column_for_a_marginal_is_caught() -> None:
    with patch.object(LinearQuestion, "l1_sensitivity", property(lambda _: 1)):
        assert TABLES.used(2.0, played=replace(TABLES.parameters, guard=1)) > 1  # laws are kept by what is played


def test_a_charge_for_the_target_instead_of_the_cap_is_caught() -> None:
    late = parameters(
        epochs=1, cap=2, ending_epsilon=Fraction(1), scale=Scale(6, 1), threshold=ALWAYS,
        test_epsilon=Fraction(1, 10**6), noise=GaussianNoise(Fraction(1, 2)),
    )  # fmt: skip
    case = DataCase(late, (1, 1), 2)
    assert case.used(8.0) <= 1
    realised = replace(case, parameters=replace(late, cap=1))
    assert realised.used(8.0, played=late) > 1


def test_learning_from_true_answers_is_caught() -> None:
    """The record of the second hypothesis tells on which side of the first one the truth is."""
    told = parameters(
        scale=Scale(1, 1), threshold=ALWAYS, test_epsilon=Fraction(1, 10**6), noise=GaussianNoise(Fraction(9)),
        step=2 * NAT,
    )  # fmt: skip
    case = DataCase(told, (1, 1), 2)
    assert case.used(2.0) <= 1
    assert case.used(2.0, LearnsTruth) > 1


# Statement 0 is replaced: the data lie in the first half of it and outside of the other, so that they pull apart.
DATA = np.array([6, 7, 0, 7], dtype=np.int64)
PULLING = masks_workload([0b0011], 4), masks_workload([0b0101], 4)
COMMON = masks_workload([0b1001], 4)
EVERYWHERE = masks_workload([0b1111], 4)  # never positive


def analyst_questions(first: int, others: int, empty: int = 0) -> list[Question | None]:
    """Slot 0 holds one of the two statements that pull apart, one that is never positive (2), or nothing (3)."""
    asked = [[*PULLING, EVERYWHERE, None][first], *([COMMON] * others), *([None] * empty)]
    return [None if each is None else LinearQuestion(each, DenseCounts(DATA), int(DATA.sum())) for each in asked]


def analyst_parameters(**changed: object) -> EpochParameters:
    """Tests and answers without noise: nothing but ends and records is random."""
    sure = {"scale": Scale(20, 1), "test_epsilon": SURE, "noise": GaussianNoise(Fraction(1, 10**6))}
    return parameters(**(sure | {"threshold": 2 * RECORD} | changed))


@dataclass(frozen=True)
class AnalystCase:
    """A session in which the first statement is replaced."""

    parameters: EpochParameters
    others: int
    empty: int = 0

    @cache  # noqa: B019
    def law(self, first: int, kind: Kind = EnumeratedEpochs, played: EpochParameters | None = None) -> Law:
        questions = analyst_questions(first, self.others, self.empty)
        return session_law(played or self.parameters, 4, questions, hidden=0, kind=kind)

    def parts(self) -> list[PrivacyEvent]:
        slots = 1 + self.others + self.empty
        return analyst_parts(SETTING, Session(4, self.parameters.scale, 2, slots, slots, slots), self.parameters)

    def charged(self, epsilon: float) -> float:
        """The delta at `epsilon` that is charged."""
        ends, drawn, slack = self.parts()
        assert isinstance(ends, ApproximateDpEvent)
        assert isinstance(drawn, ZcdpEvent)
        left = epsilon - float(ends.epsilon)
        rho = float(drawn.amounts()[0])
        spent = float(slack.amounts()[2])
        return 1.0 if left < 0 else min(1.0, (delta_of_rho(rho, left) if rho else 0.0) + spent)

    def lost(self, epsilon: float, kind: Kind = EnumeratedEpochs, played: EpochParameters | None = None) -> float:
        """The delta at `epsilon` that is lost, over all that the first statement may be."""
        laws = [self.law(first, kind, played) for first in range(4)]  # type: ignore[arg-type]
        return max(hockey_stick(one, two, epsilon) for one, two in itertools.permutations(laws, 2))


RECORDS = AnalystCase(analyst_parameters(target=21, cap=21, step=NAT // 4), others=20)
ENDS = AnalystCase(analyst_parameters(target=1, cap=99, ending_epsilon=Fraction(1), epochs=1), others=3)
BOTH = AnalystCase(analyst_parameters(target=2, cap=40, ending_epsilon=Fraction(2), epochs=2), others=2, empty=1)


def test_drawn_records_cost_a_statement_at_most_its_charge() -> None:
    rho = float(RECORDS.parts()[1].amounts()[0])
    laws = RECORDS.law(0), RECORDS.law(1)
    for order in (1.5, 2.0, 8.0):
        assert renyi(*laws, order) <= order * rho
    assert renyi(*laws, 2.0) >= 0.75 * 2 * rho


def test_an_epoch_s_end_costs_a_statement_at_most_its_epsilon() -> None:
    assert ENDS.lost(1.0) <= 1e-7
    assert ENDS.lost(0.7) > 0.01


def test_all_of_it_costs_a_statement_at_most_its_charge() -> None:
    for epsilon in (2.0, 2.5, 3.0, 4.0):
        assert BOTH.lost(epsilon) <= BOTH.charged(epsilon)
    assert BOTH.lost(1.5) > 1e-3


@pytest.mark.parametrize("beyond", [0, 1])
def test_hard_caps_cost_at_most_their_delta_and_are_not_free(beyond: int) -> None:
    capped = replace(ENDS.parameters, cap=ENDS.parameters.target + beyond, ending_epsilon=Fraction(2))
    case = AnalystCase(capped, others=3)
    assert 1e-7 < case.lost(2.0) <= repair_places_delta(Fraction(2), beyond, 2.0)


class OnlyAtPositives(EnumeratedEpochs):
    """The mutant that tests the count only after a positive."""

    @property
    def tested(self) -> bool:
        grown = self._afresh != self._counted
        self._counted = self._afresh
        return grown

    _counted = 0


class SureTarget(EnumeratedEpochs):
    """The mutant without noise on the target."""

    noisy_target = False


class WholeHypothesis(EnumeratedEpochs):
    """The mutant whose hypothesis is not drawn: the record that weighs most, always."""

    def _drawn_records(self) -> NDArray[np.int64]:
        return np.array([int(np.argmax(self._exponents))])


def test_a_count_tested_only_at_positives_is_caught() -> None:
    case = replace(ENDS, parameters=replace(ENDS.parameters, target=0, ending_epsilon=Fraction(2)))
    assert case.lost(2.0) <= 1e-7
    for epsilon in (2.0, 8.0):
        assert case.lost(epsilon, OnlyAtPositives) > 0.05


def test_a_target_without_noise_is_caught() -> None:
    case = replace(ENDS, parameters=replace(ENDS.parameters, ending_epsilon=Fraction(2)))
    assert case.lost(2.0) <= 1e-7
    assert case.lost(2.0, SureTarget) > 1e-3


@pytest.mark.parametrize(
    "change",
    [{"step": 2 * RECORDS.parameters.step}, {"records": 2 * RECORDS.parameters.records}],
    ids=["eta / (s / 2)", "records drawn once too often"],
)
def test_more_told_of_a_hypothesis_is_caught(change: dict[str, int]) -> None:
    rho = float(RECORDS.parts()[1].amounts()[0])
    played = replace(RECORDS.parameters, **change)  # type: ignore[arg-type]
    assert renyi(RECORDS.law(0, played=played), RECORDS.law(1, played=played), 2.0) > 2 * rho


def test_a_hypothesis_that_is_not_drawn_is_caught() -> None:
    case = replace(RECORDS, others=0, parameters=replace(RECORDS.parameters, target=1, cap=1))
    assert hockey_stick(case.law(0), case.law(1), 2.0) == 0
    assert hockey_stick(case.law(0, WholeHypothesis), case.law(1, WholeHypothesis), 2.0) == 1


def shipped_view(
    played: EpochParameters, universe: int, questions: list[Question | None], seed: bytes, hidden: int | None = None
) -> tuple[int, ...]:
    """What `session_law` is the law of, from the shipped session."""
    session = Epochs(played, universe, len(questions), seed)
    shown: list[int] = []
    for slot, question in enumerate(questions):
        if question is None:
            session.pass_to(slot + 1)
        else:
            answers = session.answer(slot, question)
            if slot != hidden:
                shown += [*answers.values.tolist(), int(answers.methods[0])]
        shown += [session._epoch, *session._multiset.tolist()]
    return tuple(shown)


def remembered(questions: list[Question | None]) -> list[Question | None]:
    """The same, each worked out once."""
    return [None if question is None else Remembered(question) for question in questions]


def seeds(label: str) -> Callable[[int], bytes]:
    """Seeds of a number of runs."""
    return lambda run: KeyedStream.derive(b"\x05" * 32, label, str(run)).words(4).tobytes()


@pytest.mark.parametrize("relation", ["data", "analysts"])
def test_the_shipped_draws_have_the_enumerated_law(relation: str) -> None:
    """False alarms: at most 1e-6 (Hoeffding, divided over both and their outcomes)."""
    runs, seed = 500, seeds(relation)
    if relation == "data":
        played, universe, questions, hidden = WHOLE.parameters, 2, remembered(WHOLE.questions((2, 1))), None
    else:
        played, universe, questions, hidden = BOTH.parameters, 4, remembered(analyst_questions(0, 2, 1)), 0
    law = session_law(played, universe, questions, hidden)
    seen = Counter(shipped_view(played, universe, questions, seed(run), hidden) for run in range(runs))
    allowed = math.sqrt(math.log(2 * 2 * len(law) / 1e-6) / (2 * runs))
    assert max(abs(seen[key] / runs - law.get(key, 0.0)) for key in {*law, *seen}) <= allowed
    # The comparison has power: without noise the law lies outside of it.
    sharper = replace(played, test_epsilon=SURE, ending_epsilon=SURE, step=9 * played.step)
    wrong = session_law(sharper, universe, questions, hidden)
    assert max(abs(wrong.get(key, 0.0) - law.get(key, 0.0)) for key in {*law, *wrong}) > 2 * allowed


def every_stream_is_derived_once() -> bool:
    """No two draws of a session read one stream."""
    derived: list[tuple[str, ...]] = []
    derive = KeyedStream.derive.__func__  # type: ignore[attr-defined]

    def spy(kind: type[KeyedStream], seed: bytes, *labels: str) -> KeyedStream:
        derived.append(labels)
        made: KeyedStream = derive(kind, seed, *labels)
        return made

    with patch.object(KeyedStream, "derive", classmethod(spy)):
        shipped_view(WHOLE.parameters, 2, WHOLE.questions((2, 1)), bytes(32))
    return len(derived) == len(set(derived)) > 6


def test_a_stream_used_again_is_caught() -> None:
    assert every_stream_is_derived_once()
    same = lambda session, purpose, number: session._streams.derive("epochs", str(number))  # noqa: E731
    with patch.object(Epochs, "_stream", same):
        assert not every_stream_is_derived_once()


def certified(
    parameters: EpochParameters, universe: int, sides: list[list[Question | None]], hidden: int | None, runs: int
) -> float:
    """The epsilon at delta 0.01 that runs of the shipped session prove; too large with a chance of 2.5e-7."""

    def sampler(side: int) -> Sampler:
        questions, seed = remembered(sides[side]), seeds(f"audit {side} {hidden}")
        return lambda run: shipped_view(parameters, universe, questions, seed(run), hidden)

    return certify(sampler(0), sampler(1), runs, 0.01, 1e-6 / 4).epsilon


def test_runs_certify_no_more_of_the_data_than_the_claim(audit_size: AuditSize) -> None:
    sides = [ANSWERS.questions((first, 6 - first)) for first in (2, 3)]
    rho = sum(float(part.amounts()[0]) for part in ANSWERS.parts())
    claim = epsilon_of_rho(rho, 0.01)
    assert certified(ANSWERS.parameters, 2, sides, None, audit_size.runs // 4) <= claim
    sharp = replace(ANSWERS.parameters, noise=GaussianNoise(Fraction(1, 100)))
    assert certified(sharp, 2, sides, None, 60) > 0.5


def test_runs_certify_no_more_of_a_statement_than_the_claim(audit_size: AuditSize) -> None:
    sides = [analyst_questions(first, 2, 1) for first in (0, 1)]
    assert BOTH.charged(7.0) <= 0.01
    assert certified(BOTH.parameters, 4, sides, 0, audit_size.runs // 4) <= 7.0
    sharp = replace(BOTH.parameters, step=12 * NAT)
    assert certified(sharp, 4, sides, 0, 60) > 0.3
