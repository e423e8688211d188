"""Sessions in epochs that are asked sums, on both neighbour relations: exact laws, against what is charged.

The universe has three records, which weigh 0, a half and 1: sums are rounded down for every second table. Mutants
are put in from here; each must exceed what the shipped session is charged.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache

import numpy as np
import pytest
from harness.exact_game import Law, hockey_stick, renyi, schema
from numpy.typing import NDArray
from statistical.epochs_cases import (
    ALWAYS,
    NAT,
    RECORD,
    SETTING,
    AnalystCase,
    analyst_parameters,
    parameters,
)
from statistical.exact_epochs import EnumeratedEpochs, session_law

from equipoise.accounting import PrivacyEvent
from equipoise.queries.axis_weights import WHOLE
from equipoise.queries.predicates import attribute
from equipoise.queries.statements import Statement, Sum
from equipoise.queries.workload_compiler import CompiledWorkload, compile_single
from equipoise_server.datasets.dense_counts import DenseCounts
from equipoise_server.mechanisms.epochs.cost import Session, data_parts
from equipoise_server.mechanisms.epochs.epochs import EpochParameters
from equipoise_server.mechanisms.epochs.question import LinearQuestion, Question
from equipoise_server.mechanisms.noise_calibration import GaussianNoise

SIZE = 3
TOTAL = Sum("x")
HALVES = Sum("x", where=attribute("x") != "2")
TABLES = [each for each in itertools.product(range(4), repeat=SIZE) if sum(each) == 3]
NEIGHBOURS = [
    (a, b) for a, b in itertools.permutations(TABLES, 2) if sum(abs(x - y) for x, y in zip(a, b, strict=True)) == 2
]


def asked(statement: Statement) -> CompiledWorkload:
    return compile_single(statement, schema(SIZE))


class InHalves(LinearQuestion):
    """The mutant that does not round: it counts half records, and says that one record moves a sum by 1."""

    def truth(self) -> NDArray[np.int64]:
        return self.queries.compiled.unit_transpose(np.ones(1, np.int64)) @ self.data.dense()[:, None] * 2 // WHOLE


class Doubled(LinearQuestion):
    """The mutant whose directions are twice as long."""

    def direction(self, signs: NDArray[np.int64]) -> NDArray[np.int64]:
        return 2 * super().direction(signs)


@dataclass(frozen=True)
class SumCase:
    """A session of sums, and its data: every table of three records."""

    parameters: EpochParameters
    statements: tuple[Sum, ...]

    def questions(self, table: tuple[int, ...], kind: type[LinearQuestion]) -> list[Question | None]:
        data = DenseCounts(np.array(table, dtype=np.int64))
        return [kind(asked(each), data, sum(table)) for each in self.statements]

    @cache  # noqa: B019
    def laws(self, kind: type[LinearQuestion] = LinearQuestion) -> dict[tuple[int, ...], Law]:
        return {each: session_law(self.parameters, SIZE, self.questions(each, kind)) for each in TABLES}

    def parts(self) -> list[PrivacyEvent]:
        count = len(self.statements)
        return data_parts(SETTING, Session(SIZE, self.parameters.scale, 2, count, count, count), self.parameters)

    def used(self, order: float, kind: type[LinearQuestion] = LinearQuestion) -> float:
        """The largest divergence of neighbours as a part of what is charged."""
        charged = sum(float(part.divergence(Fraction(order))[0]) for part in self.parts())
        laws = self.laws(kind)  # type: ignore[arg-type]
        return max(renyi(laws[near], laws[far], order) for near, far in NEIGHBOURS) / charged


WHOLE_SESSION = SumCase(parameters(), (TOTAL, HALVES))
ANSWERS = SumCase(
    parameters(threshold=ALWAYS, test_epsilon=Fraction(1, 10**6), noise=GaussianNoise(Fraction(1, 4))), (TOTAL,)
)


@pytest.mark.thin(2)
@pytest.mark.parametrize(("case", "fraction"), [(ANSWERS, 0.9), (WHOLE_SESSION, 0.3)], ids=["answers", "whole"])
def test_a_record_costs_at_most_its_charge(case: SumCase, fraction: float) -> None:
    for law in case.laws().values():
        assert sum(law.values()) == pytest.approx(1, abs=1e-6)
    found = [case.used(order) for order in (1.5, 2.0, 3.0)]
    assert fraction <= max(found) <= 1


def test_a_sum_that_is_not_rounded_to_whole_records_is_caught() -> None:
    assert ANSWERS.used(2.0, InHalves) > 1


# The data lie at both ends, so that the sum pulls to one end, and the count of the lowest to the other.
DATA = np.array([8, 0, 12], dtype=np.int64)
COMMON = Sum("x", where=attribute("x") != "1")
PULLING = (TOTAL, attribute("x") == "0")


@dataclass(frozen=True)
class SumAnalystCase(AnalystCase):
    """A session in which the first statement, a sum, is replaced by a count."""

    question: type[LinearQuestion] = LinearQuestion

    @cache  # noqa: B019
    def law(
        self,
        first: int,
        kind: type[EnumeratedEpochs] = EnumeratedEpochs,
        played: EpochParameters | None = None,
    ) -> Law:
        data, records = DenseCounts(DATA), int(DATA.sum())
        questions: list[Question | None] = [self.question(asked(PULLING[first]), data, records)]
        questions += [LinearQuestion(asked(COMMON), data, records)] * self.others
        return session_law(played or self.parameters, SIZE, questions, hidden=0, kind=kind)


DRAWN = SumAnalystCase(analyst_parameters(target=4, cap=4, step=NAT // 2, threshold=ALWAYS, records=2), others=3)


def test_an_analyst_s_sum_shows_at_most_what_is_charged() -> None:
    laws = [DRAWN.law(first) for first in range(2)]
    for epsilon in (0.5, 1.0, 2.0):
        lost = max(hockey_stick(one, two, epsilon) for one, two in itertools.permutations(laws, 2))
        assert lost <= DRAWN.charged(epsilon) + 1e-7


def test_a_sum_that_pulls_twice_as_far_is_caught() -> None:
    rho = float(DRAWN.parts()[1].amounts()[0])
    laws, doubled = ([each.law(first) for first in (0, 1)] for each in (DRAWN, replace(DRAWN, question=Doubled)))
    assert renyi(laws[0], laws[1], 2.0) <= 2 * rho
    assert renyi(doubled[0], doubled[1], 2.0) > 2 * rho


def test_directions_have_the_range_that_is_charged_for() -> None:
    for statement in (TOTAL, HALVES, COMMON):
        question = LinearQuestion(asked(statement), DenseCounts(DATA), int(DATA.sum()))
        for sign in (1, -1):
            direction = sign * question.direction(np.array([sign], dtype=np.int64))
            assert 0 <= direction.min() <= direction.max() <= WHOLE
    assert RECORD == WHOLE
