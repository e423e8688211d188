"""What questions of a grant that depend on earlier answers show, by exact enumeration, against what was paid.

The shipped session is run once for every outcome of its noise, over all tables of a few records of two categories.
A neighbour has one record replaced, or one record more. Nothing here is random, so there are no false alarms.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from fractions import Fraction
from hashlib import sha256
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from harness.exact_game import Law
from numpy.typing import NDArray
from statistical.exact_pipeline import SEED, Choices, clipped_noise, every_run
from statistical.extreme_games import both_ways

from equipoise.accounting import RHO_UNIT, PrivacyFilter
from equipoise.errors import BudgetExhausted
from equipoise.model.accounts import Budget
from equipoise.model.rounds import STANDING_OPTION, Share
from equipoise.queries.grant_account import GrantAccount, Wanted
from equipoise.queries.meanings import Meaning, meaning_of
from equipoise.queries.predicates import attribute
from equipoise.queries.schema import Attribute, Schema
from equipoise.queries.statements import Marginal, Statement, Sum
from equipoise.queries.workload_compiler import compile_single
from equipoise.residuals.noise import ResidualNoise
from equipoise.residuals.released import ReleasedMeasurement
from equipoise_server.datasets.dense_counts import DenseCounts
from equipoise_server.mechanisms.grant.fits import Fits
from equipoise_server.mechanisms.grant.mechanism import GrantMechanism, GrantSession
from equipoise_server.mechanisms.interface import PublicParameters
from equipoise_server.mechanisms.residuals.measurement import Measured
from equipoise_server.randomness.discrete_gaussian import DiscreteGaussian
from equipoise_server.randomness.stream import KeyedStream

SCHEMA = Schema((Attribute("colour", ("red", "green")),))
RED, GREEN = attribute("colour") == "red", attribute("colour") == "green"
TABLE = Marginal(("colour",))
RECORDS = 2  # which is public, also where one record more is counted
ORDERS = (1.5, 2.0, 4.0)
TINY = 1e-9
WHOLE = 10**6
REFUSED = -(10**9)
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
    """The first cell's value in millionths of a record; `REFUSED` where it is."""
    try:
        told = session.answer(0, compile_single(statement, schema), repr(statement).encode(), rho)
    except BudgetExhausted:
        return REFUSED
    return round(int(told.values[0]) * RECORDS / 2.0**40 * WHOLE)


def on_what_was_seen(session: GrantSession) -> Iterator[int]:
    """Which question comes second, and for how much, is said by the first answer."""
    first = asked(session, RED, HALF)
    yield first
    if first > RECORDS // 2 * WHOLE:
        yield asked(session, GREEN, TOTAL - HALF)
    else:
        yield asked(session, TABLE, TOTAL - HALF)
    yield asked(session, GREEN, HALF)


def greedily(session: GrantSession) -> Iterator[int]:
    """All of the grant for one question, and then as much again for others."""
    for statement in (RED, TABLE):
        yield asked(session, statement, TOTAL)


def again_and_again(session: GrantSession) -> Iterator[int]:
    """The same question, for as much and for less, which tells nothing new."""
    yield asked(session, RED, HALF)
    yield asked(session, RED, HALF)
    yield asked(session, RED, HALF // 2)
    yield asked(session, TABLE, TOTAL - HALF)


def more_and_more(session: GrantSession) -> Iterator[int]:
    """The same question for more where the first answer was small, and a table that is fitted with it."""
    first = asked(session, RED, HALF // 2)
    yield first
    if first < RECORDS // 2 * WHOLE:
        yield asked(session, GREEN, HALF)
    yield asked(session, TABLE, HALF)


def all_at_once(session: GrantSession) -> Iterator[int]:
    """A table, and then as much for its cells as they are known by: all of this is told already."""
    yield asked(session, TABLE, TOTAL)
    for statement in (RED, GREEN):
        yield asked(session, statement, HALF)


def of_sums(session: GrantSession) -> Iterator[int]:
    """A sum in which a record may weigh a half; what it tells says whether it is asked again, or by cells."""
    first = asked(session, Sum("amount"), HALF, AMOUNTS)
    yield first
    if first > 0:
        yield asked(session, Sum("amount", where=attribute("amount") == "1"), TOTAL - HALF, AMOUNTS)
    else:
        yield asked(session, Sum("amount", low=1), TOTAL - HALF, AMOUNTS)


def beside_a_measurement(session: GrantSession) -> Iterator[int]:
    """What the measurement lacks is paid, twice: by its numbers, which everybody knows, and by the first answer."""
    yield asked(session, TABLE, RHO_UNIT // 8)
    first = asked(session, RED, RHO_UNIT // 8 + HALF - 1)
    yield first
    if first > RECORDS // 2 * WHOLE:
        yield asked(session, GREEN, RHO_UNIT // 8 + TOTAL - 2)
    else:
        yield asked(session, TABLE, RHO_UNIT // 8 + HALF)


def measured_setting() -> PublicParameters:
    """With a public measurement of both colours, whose noise has a variance of 4 records squared in each."""
    noise = ResidualNoise((2,), (), ((0,),), (8 * 4096,))
    numbers = Measured(noise, RECORDS, {(0,): np.array([3, -1])}).to_bytes()
    named = ReleasedMeasurement("r", sha256(numbers).digest(), noise)
    return replace(SETTING, options=dict(SETTING.options) | {STANDING_OPTION: named.as_option()}, measured=numbers)


Strategy = Callable[[GrantSession], Iterator[int]]
STRATEGIES: list[Strategy] = [on_what_was_seen, greedily, again_and_again, more_and_more, all_at_once]


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
    learn = Fits.learn

    def clipped(fits: Fits, meaning: Meaning, cost: int, noisy: NDArray[np.int64], *rest: Any) -> None:
        learn(fits, meaning, cost, np.clip(noisy, 0, RECORDS), *rest)

    def draw(noise: DiscreteGaussian, count: int, stream: object) -> NDArray[np.int64]:
        values, chances = clipped_noise(noise, RECORDS)
        if stream not in drawn:
            drawn[stream] = np.array([values[choices.choose(chances)] for _ in range(count)], dtype=np.int64)
        return drawn[stream]

    with (
        patch.object(Fits, "learn", clipped),
        patch.object(KeyedStream, "derive", lambda *labels: labels),
        patch.object(DiscreteGaussian, "draw", draw),
        patch.object(DiscreteGaussian, "quantile", lambda *_: 1),
    ):
        yield


def law(table: list[int], strategy: Strategy, given: PublicParameters = SETTING) -> Law:
    """Of all answers and refusals."""
    plan = GRANT.plan(given)
    plan = replace(plan, data_cost=replace(plan.data_cost, rho=TOTAL))

    def program(choices: Choices) -> tuple[int, ...]:
        size = len(table)
        setting = replace(given, universe_size=size, attributes=(size,))
        with chosen_noise(choices):
            return tuple(strategy(GrantSession(setting, plan, DenseCounts(np.array(table), (size,)), SEED)))

    found: Law = {}
    for outcome, chance in every_run(program):
        found[outcome] = found.get(outcome, 0.0) + chance
    return found


def leak(strategy: Strategy, pairs: list[tuple[list[int], list[int]]], given: PublicParameters = SETTING) -> float:
    """The largest divergence, as a part of what the grant allows."""
    laws = {tuple(table): law(table, strategy, given) for pair in pairs for table in pair}
    return max(
        both_ways(laws[tuple(one)], laws[tuple(other)], order) / (order * TOTAL / RHO_UNIT)
        for one, other in pairs
        for order in ORDERS
    )


@pytest.mark.sparse(8)
@pytest.mark.thin(4)
@pytest.mark.parametrize(
    "pairs", [REPLACED, pytest.param(ADDED, marks=pytest.mark.full)], ids=["replaced", "added"]
)
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_questions_chosen_by_earlier_answers_show_no_more_than_the_grant(
    strategy: Strategy, pairs: list[tuple[list[int], list[int]]]
) -> None:
    shown = leak(strategy, pairs)
    assert shown <= 1 + TINY
    assert shown > 0.3  # the charge is not idle


def more_again(session: GrantSession) -> Iterator[int]:
    """All of the grant for one question, and as much again for the same."""
    yield asked(session, RED, TOTAL)
    yield asked(session, RED, 2 * TOTAL)


@pytest.mark.nightly
def test_a_measurement_beside_a_grant_shows_no_more_than_the_grant() -> None:
    """Given the numbers of the measurement, which were paid for when it was made."""
    shown = leak(beside_a_measurement, REPLACED, measured_setting())
    assert shown <= 1 + TINY
    assert shown > 0.3


def test_sums_of_weights_show_no_more_than_the_grant() -> None:
    shown = leak(of_sums, OF_AMOUNTS)
    assert shown <= 1 + TINY
    assert shown > 0.3


def test_a_filter_that_forgets_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(PrivacyFilter, "check", lambda *_: None)
    assert leak(more_again, REPLACED) > 1.5


def test_a_top_up_that_costs_less_than_the_difference_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """Noise for all of an offer, of which only a part is counted."""
    true = GrantAccount.cost
    monkeypatch.setattr(GrantAccount, "pay", lambda self, wanted: _underpaid(self, wanted, true(self, wanted)))
    assert leak(more_again, REPLACED) > 1.5


def _underpaid(account: GrantAccount, wanted: Wanted, cost: int) -> int:
    account.filter.pay(min(cost, account.filter.left))
    account.precision.learn(wanted.meaning, cost)
    return cost


def test_what_is_returned_is_never_what_was_spent() -> None:
    """For every course of three statements: the sum of what was missing, and nothing of what was refused."""
    table, red = (meaning_of(compile_single(each, SCHEMA), b"") for each in (TABLE, RED))
    for course in itertools.product([Wanted(each, rho) for each in (table, red) for rho in (1, 2, 4)], repeat=3):
        account, best, spent = GrantAccount(5), {table.key: 0, red.key: 0}, 0
        for wanted in course:
            # A table of two costs twice what a condition does; its cell is as well known as the condition.
            known = Fraction(best[wanted.meaning.key])
            if wanted.meaning is red:
                known = best[red.key] + Fraction(best[table.key], 2)
            missing = max(0, math.ceil(wanted.rho - known))
            if spent + missing > 5:
                with pytest.raises(BudgetExhausted):
                    account.pay(wanted)
                continue
            assert account.pay(wanted) == missing
            spent, best[wanted.meaning.key] = spent + missing, best[wanted.meaning.key] + missing
        assert (account.filter.spent, account.filter.left) == (spent, 5 - spent)
