"""Sessions in epochs to be enumerated, on both neighbour relations.

Data: a record is replaced, and everything is seen. Analysts: one statement is replaced, and all but its own answer
is seen.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache

import numpy as np
from harness.exact_game import Law, hockey_stick, masks_workload, renyi, schema
from statistical.exact_epochs import EnumeratedEpochs, session_law

from equipoise.accounting import ApproximateDpEvent, PrivacyEvent, ZcdpEvent
from equipoise.model.accounts import Budget
from equipoise.model.rounds import Share
from equipoise.queries.statements import Marginal
from equipoise.queries.workload_compiler import compile_single
from equipoise_server.conversion import delta_of_rho
from equipoise_server.datasets.dense_counts import DenseCounts
from equipoise_server.mechanisms.epochs.cost import Session, analyst_parts, data_parts
from equipoise_server.mechanisms.epochs.epochs import EpochParameters
from equipoise_server.mechanisms.epochs.question import LinearQuestion, Question, Scale
from equipoise_server.mechanisms.interface import PublicParameters
from equipoise_server.mechanisms.noise_calibration import GaussianNoise

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


def one_epoch(**changed: object) -> EpochParameters:
    """The same in one epoch whose candidates stay as they are."""
    return parameters(**({"epochs": 1, "records": 0, "step": 0} | changed))


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
