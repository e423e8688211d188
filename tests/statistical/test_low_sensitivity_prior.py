"""`low_sensitivity` from a prior: exact laws on both neighbour relations, and mutants.

Three records in two bins, both of which are measured. Statistics are tested against what the fitted distribution
says of them, and conditions are answered by the measurement. Data: the law of the measurement and of everything
after it. Analysts: one statement is replaced, and all but its own answer is seen.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import cache

import numpy as np
import pytest
from harness.exact_game import Law, hockey_stick
from numpy.typing import NDArray
from statistical.epochs_cases import SURE, one_epoch
from statistical.exact_epochs import session_law
from statistical.exact_statistics import MIDDLE, RECORDS, SCHEMA, SPREAD, TABLES, session_of
from statistical.measured_attribute import ORDERS, WIDE, divergence, known_from, measured_numbers, prior_of

from equipoise.accounting import ZcdpEvent
from equipoise.queries.predicates import attribute
from equipoise.queries.statistics import CompiledStatistic, Databases
from equipoise.queries.workload_compiler import compile_single
from equipoise_server.datasets.dense_counts import DenseCounts
from equipoise_server.mechanisms.epochs.cost import data_parts
from equipoise_server.mechanisms.epochs.epochs import EpochParameters
from equipoise_server.mechanisms.epochs.question import Question
from equipoise_server.mechanisms.low_sensitivity import database_question
from equipoise_server.mechanisms.low_sensitivity.database_question import (
    DatabaseQuestion,
    database_of,
    scale_for,
    statistic_of,
)
from equipoise_server.mechanisms.low_sensitivity.prior_database import PriorDatabases
from equipoise_server.mechanisms.noise_calibration import GaussianNoise
from equipoise_server.mechanisms.prior.known_answers import MeasuredPrior

VARIANCE = Fraction(1, 2)
PRIOR = prior_of(SCHEMA.sizes, VARIANCE)
MEASURED = statistic_of(compile_single(attribute("x") < 1.0, SCHEMA))
LEFT_OUT = 1e-5  # the probability of the measured integers that are left out
Chosen = Callable[[CompiledStatistic], Databases]


@pytest.fixture(autouse=True)
def coarse(monkeypatch: pytest.MonkeyPatch) -> None:
    """A scale of which a record moves one unit, so that there are few outcomes."""
    monkeypatch.setattr(database_question, "SENSITIVITY", 1)


def parameters(**changed: object) -> EpochParameters:
    scale = scale_for(MIDDLE.sensitivity(RECORDS))
    return one_epoch(**({"scale": scale, "noise_half_widths": (1,)} | changed))


@cache
def fitted_from(numbers: tuple[int, int]) -> MeasuredPrior:
    return known_from(PRIOR, RECORDS, numbers)


def databases(known: MeasuredPrior) -> Chosen:
    return PriorDatabases.of(known.prior, SCHEMA.sizes, RECORDS).database


def asked_of(
    histogram: NDArray[np.int64],
    asked: Sequence[CompiledStatistic | None],
    known: MeasuredPrior,
    candidates: Chosen,
    scale: EpochParameters,
) -> list[Question | None]:
    data = database_of(SCHEMA.sizes, DenseCounts(histogram))
    return [
        None if each is None else DatabaseQuestion(each, candidates(each), data, scale.scale, (known, WIDE))
        for each in asked
    ]


def law(histogram: NDArray[np.int64], asked: Sequence[CompiledStatistic], from_data: bool = False) -> Law:
    """Of what was measured, and of all answers."""
    found = dict[tuple[int, ...], float]()
    for numbers, chance in measured_numbers(histogram, VARIANCE):
        known = fitted_from(numbers)
        candidates: Chosen = databases(known)
        if from_data:
            candidates = lambda _: database_of(SCHEMA.sizes, DenseCounts(histogram))  # noqa: E731
        questions = asked_of(histogram, asked, known, candidates, parameters())
        for answers, part in session_law(parameters(), 1, questions).items():
            found[*numbers, *answers] = found.get((*numbers, *answers), 0.0) + chance * part
    assert math.fsum(found.values()) == pytest.approx(1, abs=LEFT_OUT)
    return found


def charged(asked: int, order: float) -> float:
    """For the measurement, and for the tests and answers of so many statements."""
    rest = data_parts(*session_of(asked), parameters())
    return sum(float(part.divergence(Fraction(order))[0]) for part in (*PRIOR.events(), *rest))


@pytest.mark.nightly
def test_a_moved_record_shows_no_more_than_measurement_tests_and_answers_are_charged() -> None:
    laws = [law(table, (MIDDLE, MEASURED)) for table in TABLES]
    for one, other in itertools.pairwise(laws):
        for order in ORDERS:
            assert max(divergence(one, other, order), divergence(other, one, order)) <= charged(2, order)


def test_a_prior_that_is_not_charged_is_caught() -> None:
    """What the measurement answers is all that is seen, and most of its charge shows."""
    laws, prior = (law(TABLES[1], (MEASURED,)), law(TABLES[2], (MEASURED,))), PRIOR.events()[0]
    assert isinstance(prior, ZcdpEvent)
    assert all(0.9 * order * prior.rho <= divergence(*laws, order) <= 1.001 * order * prior.rho for order in ORDERS)


@pytest.mark.full
def test_a_database_that_is_laid_out_from_the_data_is_caught() -> None:
    """Its values are seen without noise wherever a test passes."""
    one, other = (law(table, (SPREAD,), from_data=True) for table in TABLES[:2])
    assert divergence(one, other, 2.0) > charged(1, 2.0)


FAR = TABLES[0]  # the prior of numbers 0 has two of three records in the other bin
KNOWN = fitted_from((0, 0))
FIRST: tuple[CompiledStatistic | None, ...] = (MEASURED, MIDDLE, SPREAD, None)


def seen_by_others(first: CompiledStatistic | None, candidates: Chosen) -> Law:
    ends = parameters(
        cap=99,
        ending_epsilon=Fraction(1),
        test_epsilon=SURE,
        noise=GaussianNoise(Fraction(1, 10**6)),
    )
    questions = asked_of(FAR, [first, MIDDLE, MEASURED, MIDDLE], KNOWN, candidates, ends)
    return session_law(ends, 1, questions, hidden=0)


def test_a_statement_shows_no_more_than_the_end_of_the_epoch() -> None:
    laws = [seen_by_others(first, databases(KNOWN)) for first in FIRST]
    assert max(hockey_stick(one, other, 1.0) for one, other in itertools.permutations(laws, 2)) <= 1e-7
    assert max(hockey_stick(one, other, 0.5) for one, other in itertools.permutations(laws, 2)) > 0.01
    # Whether the measurement answers a statement is not seen: it is like one that is never positive or never asked.
    assert hockey_stick(laws[0], laws[2], 0.0) <= 1e-12
    assert hockey_stick(laws[0], laws[3], 0.0) <= 1e-12


def test_a_prior_that_depends_on_a_statement_is_caught() -> None:
    learnt = databases(fitted_from((-3, 3)))
    one, other = seen_by_others(MEASURED, databases(KNOWN)), seen_by_others(MIDDLE, learnt)
    assert max(hockey_stick(one, other, 5.0), hockey_stick(other, one, 5.0)) > 0.5
