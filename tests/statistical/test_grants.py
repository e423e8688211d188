"""What questions of a grant that depend on earlier answers show, by exact enumeration, against what was paid.

The shipped session is run once for every outcome of its noise, over all tables of a few records of two categories.
A neighbour has one record replaced, or one record more. Nothing here is random, so there are no false alarms.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from unittest.mock import patch

import numpy as np
import pytest
from harness.exact_game import Law
from numpy.typing import NDArray
from statistical.exact_pipeline import SEED, Choices, clipped_noise, every_run
from statistical.extreme_games import both_ways

from equipoise.accounting import RHO_UNIT, Offer, PrivacyFilter
from equipoise.errors import BudgetExhausted
from equipoise.model.accounts import Budget
from equipoise.model.rounds import Share
from equipoise.queries.fixed_point import on_grid
from equipoise.queries.predicates import attribute
from equipoise.queries.schema import Attribute, Schema
from equipoise.queries.statements import Marginal, Statement, Sum
from equipoise.queries.workload_compiler import compile_single
from equipoise_server.datasets.dense_counts import DenseCounts
from equipoise_server.mechanisms import answers
from equipoise_server.mechanisms.grant.mechanism import GrantMechanism, GrantSession
from equipoise_server.mechanisms.interface import PublicParameters
from equipoise_server.randomness.discrete_gaussian import DiscreteGaussian
from equipoise_server.randomness.stream import KeyedStream

SCHEMA = Schema((Attribute("colour", ("red", "green")),))
RED, GREEN = attribute("colour") == "red", attribute("colour") == "green"
TABLE = Marginal(("colour",))
RECORDS = 2  # which is public, also where one record more is counted
ORDERS = (1.5, 2.0, 4.0)
TINY = 1e-9
REFUSED = -1
TOTAL = RHO_UNIT // 2
HALF = TOTAL // 2
GRANT = GrantMechanism()
SETTING = PublicParameters(
    records=RECORDS,
    universe_size=2,
    shares=(Share("ann", 100, 100),),
    unit="query",
    data_budget=Budget(5.0, 1e-5),
    analyst_budget=Budget(1e-9, 1e-9),
    beta=0.05,
    options={"length": 100},
    attributes=(2,),
)
AMOUNTS = Schema((Attribute("amount", ("0", "1", "2")),))
REPLACED = [([a, RECORDS - a], [b, RECORDS - b]) for a, b in itertools.pairwise(range(RECORDS + 1))]
ADDED = [([1, 0], [2, 0]), ([1, 0], [1, 1]), ([0, 1], [1, 1])]


def asked(session: GrantSession, statement: Statement, rho: int, schema: Schema = SCHEMA) -> int:
    """The first cell's value in whole records; `REFUSED` where it is."""
    try:
        told = session.answer(0, compile_single(statement, schema), repr(statement).encode(), rho)
    except BudgetExhausted:
        return REFUSED
    return round(int(told.values[0]) * RECORDS / 2.0**40)


def on_what_was_seen(session: GrantSession) -> Iterator[int]:
    """Which question comes second, and for how much, is said by the first answer."""
    first = asked(session, RED, HALF)
    yield first
    if first > RECORDS // 2:
        yield asked(session, GREEN, TOTAL - HALF)
    else:
        yield asked(session, TABLE, TOTAL - HALF)
    yield asked(session, GREEN, HALF)


def greedily(session: GrantSession) -> Iterator[int]:
    """All of the grant for one question, and then as much again for others."""
    for statement in (RED, GREEN):
        yield asked(session, statement, TOTAL)


def again_and_again(session: GrantSession) -> Iterator[int]:
    """The same question, for as much and for less, which tells nothing new."""
    yield asked(session, RED, HALF)
    yield asked(session, RED, HALF)
    yield asked(session, RED, HALF // 2)
    yield asked(session, TABLE, TOTAL - HALF)


def of_sums(session: GrantSession) -> Iterator[int]:
    """A sum in which a record may weigh a half; what it tells says whether it is asked again, or by cells."""
    first = asked(session, Sum("amount"), HALF, AMOUNTS)
    yield first
    if first > 0:
        yield asked(session, Sum("amount", where=attribute("amount") == "1"), TOTAL - HALF, AMOUNTS)
    else:
        yield asked(session, Sum("amount", low=1), TOTAL - HALF, AMOUNTS)


Strategy = Callable[[GrantSession], Iterator[int]]
STRATEGIES: list[Strategy] = [on_what_was_seen, greedily, again_and_again]


HISTOGRAMS = [list(each) for each in itertools.product(range(RECORDS + 1), repeat=3) if sum(each) == RECORDS]
OF_AMOUNTS = [
    (one, other)
    for one, other in itertools.combinations(HISTOGRAMS, 2)
    if sum(map(abs, np.subtract(one, other))) == 2  # one record is replaced
]


@contextmanager
def chosen_noise(choices: Choices) -> Iterator[None]:
    """Each stream's noise is chosen once, by its law. Counts are told between 0 and all records."""
    drawn: dict[object, NDArray[np.int64]] = {}

    def draw(noise: DiscreteGaussian, count: int, stream: object) -> NDArray[np.int64]:
        values, chances = clipped_noise(noise, RECORDS)
        if stream not in drawn:
            drawn[stream] = np.array([values[choices.choose(chances)] for _ in range(count)], dtype=np.int64)
        return drawn[stream]

    with (
        patch.object(KeyedStream, "derive", lambda *labels: labels),
        patch.object(DiscreteGaussian, "draw", draw),
        patch.object(DiscreteGaussian, "quantile", lambda *_: 1),
        patch.object(answers, "on_grid", lambda counts, total: on_grid(np.clip(counts, 0, total), total)),
    ):
        yield


def law(table: list[int], strategy: Strategy) -> Law:
    """Of all answers and refusals."""
    plan = GRANT.plan(SETTING)
    plan = replace(plan, data_cost=replace(plan.data_cost, rho=TOTAL))

    def program(choices: Choices) -> tuple[int, ...]:
        size = len(table)
        setting = replace(SETTING, universe_size=size, attributes=(size,))
        with chosen_noise(choices):
            return tuple(strategy(GrantSession(setting, plan, DenseCounts(np.array(table), (size,)), SEED)))

    found: Law = {}
    for outcome, chance in every_run(program):
        found[outcome] = found.get(outcome, 0.0) + chance
    return found


def leak(strategy: Strategy, pairs: list[tuple[list[int], list[int]]]) -> float:
    """The largest divergence, as a part of what the grant allows."""
    laws = {tuple(table): law(table, strategy) for pair in pairs for table in pair}
    return max(
        both_ways(laws[tuple(one)], laws[tuple(other)], order) / (order * TOTAL / RHO_UNIT)
        for one, other in pairs
        for order in ORDERS
    )


@pytest.mark.parametrize("pairs", [REPLACED, ADDED], ids=["replaced", "added"])
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_questions_chosen_by_earlier_answers_show_no_more_than_the_grant(
    strategy: Strategy, pairs: list[tuple[list[int], list[int]]]
) -> None:
    shown = leak(strategy, pairs)
    assert shown <= 1 + TINY
    assert shown > 0.3  # the charge is not idle


def test_sums_of_weights_show_no_more_than_the_grant() -> None:
    shown = leak(of_sums, OF_AMOUNTS)
    assert shown <= 1 + TINY
    assert shown > 0.3


def test_a_filter_that_forgets_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(PrivacyFilter, "check", lambda *_: None)
    assert leak(greedily, REPLACED) > 1.5


def test_fresh_noise_for_the_same_question_would_be_caught() -> None:
    """The second answer for nothing is safe only because it is the first one again."""

    def twice(session: GrantSession) -> Iterator[int]:
        yield asked(session, RED, TOTAL)
        session._seed = bytes([1]) * 32
        yield asked(session, RED, TOTAL)

    assert leak(twice, REPLACED) > 1.5


def test_what_is_returned_is_never_what_was_spent() -> None:
    """For every course of three offers: the sum of what was new, and nothing of what was refused."""
    questions = [b"one", b"two"]
    offers = [Offer(question, rho) for question in questions for rho in (1, 2, 4)]
    for course in itertools.product(offers, repeat=3):
        account, best, spent = PrivacyFilter(5), dict.fromkeys(questions, 0), 0
        for offer in course:
            new = offer.rho if offer.rho > best[offer.question] else 0
            if spent + new > 5:
                with pytest.raises(BudgetExhausted):
                    account.pay(offer)
                continue
            assert account.pay(offer) == new
            spent, best[offer.question] = spent + new, max(best[offer.question], offer.rho)
        assert (account.spent, account.left) == (spent, 5 - spent)
