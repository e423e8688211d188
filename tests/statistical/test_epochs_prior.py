"""`online_private` from a prior: exact laws on both neighbour relations, and mutants.

The universe has two attributes of two categories, and the measurement is of one of them. Data: the law of the
measurement and of everything after it. Analysts: one statement is replaced, and all but its own answer is seen.
"""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from functools import cache

import numpy as np
import pytest
from harness.exact_game import Law, hockey_stick
from numpy.typing import NDArray
from statistical.epochs_cases import SETTING, one_epoch
from statistical.epochs_from_prior import BOTH, DATA, ENDS, FIRST, MEASURED, SCHEMA, VARIANCE, starting_from
from statistical.exact_epochs import session_law
from statistical.measured_attribute import ORDERS, WIDE, divergence, known_from, measured_numbers, prior_of

from equipoise.accounting import ZcdpEvent
from equipoise.queries.predicates import Predicate
from equipoise.queries.workload_compiler import compile_single
from equipoise_server.datasets.dense_counts import DenseCounts
from equipoise_server.mechanisms.epochs.cost import Session, data_parts
from equipoise_server.mechanisms.epochs.question import LinearQuestion, Question, Scale

PRIOR = prior_of(SCHEMA.sizes, VARIANCE)
LEFT_OUT = 1e-6  # the probability of the measured integers that are left out


@cache
def law(histogram: tuple[int, ...], asked: tuple[Predicate, ...], places: tuple[int, ...] = ()) -> Law:
    """Of what was measured, and of all answers; `places`: of the support's records."""
    counts = np.array(histogram, dtype=np.int64)
    records, found = int(counts.sum()), dict[tuple[int, ...], float]()
    for numbers, chance in measured_numbers(counts.reshape(2, 2).sum(axis=1), VARIANCE):
        known = known_from(PRIOR, records, numbers, places)
        questions: list[Question | None] = [
            LinearQuestion(queries, DenseCounts(counts, SCHEMA.sizes), records, (known, WIDE))
            for queries in (known.support.queries(compile_single(each, SCHEMA)) for each in asked)
        ]
        kind = starting_from(known.prior.weights >> 12)
        for answers, part in session_law(one_epoch(), known.support.size, questions, kind=kind).items():
            key = (*numbers, *answers)
            found[key] = found.get(key, 0.0) + chance * part
    assert math.fsum(found.values()) == pytest.approx(1, abs=LEFT_OUT)
    return found


@pytest.mark.nightly
@pytest.mark.parametrize("places", [(), (0, 3, 3), (1,)])
def test_a_moved_record_shows_no_more_than_measurement_tests_and_answers_are_charged(
    places: tuple[int, ...],
) -> None:
    """Over the universe, and over supports that lack records of the table."""
    asked = (BOTH, MEASURED)
    session = Session(4, Scale(3, 1), 2, 2, 2, 2)
    rest = data_parts(SETTING, session, one_epoch())
    laws = law((2, 0, 1, 0), asked, places), law((1, 0, 2, 0), asked, places)
    assert laws[0].keys() == laws[1].keys()
    for order in ORDERS:
        charged = sum(float(part.divergence(Fraction(order))[0]) for part in (*PRIOR.events(), *rest))
        shown = max(divergence(*laws, order), divergence(laws[1], laws[0], order))
        assert 0.1 * charged <= shown <= charged


@pytest.mark.full
def test_a_prior_that_is_not_charged_is_caught() -> None:
    """What the measurement answers is all that is seen, and most of its charge shows."""
    laws, prior = (law((2, 0, 1, 0), (MEASURED,)), law((1, 0, 2, 0), (MEASURED,))), PRIOR.events()[0]
    assert isinstance(prior, ZcdpEvent)
    assert all(0.9 * order * prior.rho <= divergence(*laws, order) <= order * prior.rho for order in ORDERS)


KNOWN = known_from(PRIOR, int(DATA.sum()), (6, -6))
UNIFORM = np.ones(4, dtype=np.int64)


def seen_by_others(first: Predicate | None, start: NDArray[np.int64]) -> Law:
    asked = [first, BOTH, MEASURED, BOTH]
    data, records = DenseCounts(DATA, SCHEMA.sizes), int(DATA.sum())
    questions: list[Question | None] = [
        None if each is None else LinearQuestion(compile_single(each, SCHEMA), data, records, (KNOWN, WIDE))
        for each in asked
    ]
    return session_law(ENDS, 4, questions, hidden=0, kind=starting_from(start))


def test_a_statement_shows_no_more_than_the_end_of_the_epoch() -> None:
    laws = [seen_by_others(first, KNOWN.prior.weights >> 12) for first in FIRST]
    lost = max(hockey_stick(one, other, 1.0) for one, other in itertools.permutations(laws, 2))
    assert lost <= 1e-7
    assert max(hockey_stick(one, other, 0.5) for one, other in itertools.permutations(laws, 2)) > 0.01
    # Whether the measurement answers a statement is not seen: it is like one that is never positive.
    assert hockey_stick(laws[0], laws[3], 0.0) <= 1e-12


def test_a_prior_that_depends_on_a_statement_is_caught() -> None:
    one, other = seen_by_others(MEASURED, KNOWN.prior.weights >> 12), seen_by_others(BOTH, UNIFORM)
    assert max(hockey_stick(one, other, 5.0), hockey_stick(other, one, 5.0)) > 0.5
