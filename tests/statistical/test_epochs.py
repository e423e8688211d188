"""Sessions in epochs on both neighbour relations: exact laws of the shipped class, against what is charged.

Mutants are put in from here; each must exceed what the shipped one is charged.
"""

from __future__ import annotations

import itertools
from dataclasses import replace
from fractions import Fraction
from unittest.mock import patch

import numpy as np
import pytest
from harness.exact_game import hockey_stick, renyi
from numpy.typing import NDArray
from statistical.epochs_cases import (
    ALWAYS,
    ANSWERS,
    BOTH,
    ENDS,
    NAT,
    RECORDS,
    TABLES,
    TESTS,
    WHOLE,
    AnalystCase,
    DataCase,
    parameters,
)
from statistical.exact_epochs import BEYOND, EnumeratedEpochs

from equipoise.accounting import ThresholdTests, repair_places_delta
from equipoise.model.results import Answers
from equipoise.queries.fixed_point import ONE, on_grid
from equipoise_server.conversion import delta_of_rho
from equipoise_server.mechanisms.epochs.epochs import EpochParameters, pulls
from equipoise_server.mechanisms.epochs.question import LinearQuestion, Question, Scale
from equipoise_server.mechanisms.noise_calibration import GaussianNoise
from equipoise_server.randomness.discrete_laplace import DiscreteLaplace


@pytest.mark.nightly
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


@pytest.mark.full
def test_answers_below_0_and_above_all_records_are_outcomes_of_their_own() -> None:
    for law in itertools.chain.from_iterable(ANSWERS.laws()):
        told = {shown[0] for shown in law}
        assert (
            len([value for value in told if value < 0]) == len([value for value in told if value > ONE]) == BEYOND
        )


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


@pytest.mark.nightly
def test_noise_too_small_by_a_tenth_is_caught() -> None:
    assert TESTS.used(2.0, played=replace(TESTS.parameters, test_epsilon=Fraction(1, 9))) > 1
    assert ANSWERS.used(2.0, played=replace(ANSWERS.parameters, noise=GaussianNoise(Fraction(81, 400)))) > 1


def test_half_the_sensitivity_is_caught() -> None:
    halved = property(lambda each: DiscreteLaplace(each.test_epsilon / (1 << 15)))
    with patch.object(EpochParameters, "test_noise", halved):
        assert replace(TESTS, masks=TESTS.masks[1:]).used(2.0) > 1


@pytest.mark.full
def test_the_norm_of_a_column_for_a_marginal_is_caught() -> None:
    with patch.object(LinearQuestion, "l1_sensitivity", property(lambda _: 1)):
        assert TABLES.used(2.0, played=replace(TABLES.parameters, guard=1)) > 1  # laws are kept by what is played


@pytest.mark.nightly
def test_a_charge_for_the_target_instead_of_the_cap_is_caught() -> None:
    late = parameters(
        epochs=1, cap=2, ending_epsilon=Fraction(1), scale=Scale(6, 1), threshold=ALWAYS,
        test_epsilon=Fraction(1, 10**6), noise=GaussianNoise(Fraction(1, 2)),
    )  # fmt: skip
    case = DataCase(late, (1, 1), 2)
    assert case.used(8.0) <= 1
    realised = replace(case, parameters=replace(late, cap=1))
    assert realised.used(8.0, played=late) > 1


@pytest.mark.full
def test_learning_from_true_answers_is_caught() -> None:
    """The record of the second hypothesis tells on which side of the first one the truth is."""
    told = parameters(
        scale=Scale(1, 1), threshold=ALWAYS, test_epsilon=Fraction(1, 10**6), noise=GaussianNoise(Fraction(9)),
        step=2 * NAT,
    )  # fmt: skip
    case = DataCase(told, (1, 1), 2)
    assert case.used(2.0) <= 1
    assert case.used(2.0, LearnsTruth) > 1


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
