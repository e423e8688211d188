"""`grant`: what it allows, what a statement's price buys, and that the same question has the same answer."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from harness.answers import half_widths

from equipoise.accounting import RHO_UNIT, Cost
from equipoise.errors import BudgetExhausted, InvalidArgument
from equipoise.model.accounts import Budget
from equipoise.model.grants import ANALYSTS
from equipoise.model.results import AnswerMethod, Answers
from equipoise.model.rounds import Share
from equipoise.queries.grant_price import standard_error
from equipoise.queries.predicates import attribute
from equipoise.queries.schema import Attribute, Schema
from equipoise.queries.session_workload import SessionWorkload
from equipoise.queries.statements import Marginal, Statement, Sum
from equipoise.queries.workload_compiler import compile_single
from equipoise_server.conversion import epsilon_for
from equipoise_server.datasets.dense_counts import DenseCounts
from equipoise_server.mechanisms.grant.mechanism import GrantMechanism, GrantSession
from equipoise_server.mechanisms.interface import PublicParameters
from equipoise_server.mechanisms.online.interface import check_asked
from equipoise_server.mechanisms.persons import planned_starts

SCHEMA = Schema((Attribute("a", ("0", "1", "2")), Attribute("b", ("0", "1"))))
TABLE, ZERO = Marginal(("a", "b")), attribute("a") == "0"
RECORDS = 6000
GRANT = GrantMechanism()
SETTING = PublicParameters(
    records=RECORDS,
    universe_size=6,
    shares=(Share("ann", 1 << 20, 1 << 30),),
    unit="query",
    data_budget=Budget(1.0, 1e-6),
    analyst_budget=ANALYSTS,
    beta=0.05,
    options={"length": 1 << 20},
    attributes=(3, 2),
)
DATA = DenseCounts(np.array([1000] * 6), (3, 2))
PRICE = RHO_UNIT // 1000


def started(setting: PublicParameters = SETTING, seed: bytes = bytes(32)) -> GrantSession:
    return GRANT.start(setting, planned_starts(GRANT, setting)[0].plan, DATA, seed)


def asked(session: GrantSession, statement: Statement, rho: int, slot: int = 0) -> Answers:
    return session.answer(slot, compile_single(statement, SCHEMA), repr(statement).encode(), rho)


def test_a_grant_allows_all_of_its_budget_and_costs_analysts_nothing() -> None:
    plan = GRANT.plan(SETTING)
    assert 0.999 < epsilon_for(plan.data_cost, 1e-6) <= 1.0
    assert (plan.analyst_cost, plan.max_uncertified, plan.max_half_width) == (Cost(), 0, 1.0)
    with pytest.raises(BudgetExhausted):
        GRANT.plan(replace(SETTING, data_budget=Budget(1e-6, 1e-15)))


@pytest.mark.parametrize("persons", [1, 4])
def test_a_price_buys_its_standard_error(persons: int) -> None:
    session = started(replace(SETTING, person_records=persons))
    for statement in (ZERO, TABLE, Sum("a"), Sum("a", ("b",))):
        answers = asked(session, statement, PRICE)
        expected = standard_error(statement, persons, PRICE)
        assert set(answers.methods) == {AnswerMethod.GAUSSIAN}
        assert answers.standard_errors * (RECORDS / 2.0**40) == pytest.approx(expected, rel=1e-6)


def test_sums_lie_in_their_intervals() -> None:
    """By hand: of the records a third has the middle value, which weighs a half, and a third the highest one."""
    session = started()
    whole, by_b = asked(session, Sum("a"), PRICE), asked(session, Sum("a", ("b",)), PRICE)
    assert not whole.misses(np.array([0.5])).any()
    assert not by_b.misses(np.array([0.25, 0.25])).any()
    assert half_widths(whole).max() < half_widths(by_b).max() < 0.1


def test_noise_has_the_variance_that_was_paid_for() -> None:
    errors = [
        (asked(started(seed=number.to_bytes(32)), TABLE, PRICE).values / 2.0**40 - 1 / 6) * RECORDS
        for number in range(400)
    ]
    expected = math.sqrt(2 * RHO_UNIT / (2 * PRICE))
    # 2,400 normal numbers: five standard errors of their root mean square, and of their mean.
    assert abs(np.std(errors) / expected - 1) < 5 / math.sqrt(2 * 2400)
    assert abs(np.mean(errors)) < 5 * expected / math.sqrt(2400)


def test_the_same_question_has_the_same_answer_whatever_came_between() -> None:
    one, other = started(), started()
    first = asked(one, ZERO, PRICE)
    asked(other, TABLE, 3 * PRICE)
    later = asked(other, ZERO, PRICE, slot=7)
    assert first.values.tolist() == later.values.tolist()
    assert half_widths(later).max() > half_widths(first).max()  # it is the second that is paid for
    again, cheaper = asked(one, ZERO, PRICE, slot=1), asked(one, ZERO, PRICE // 2, slot=2)
    for repeated in (again, cheaper):
        assert [each.tolist() for each in repeated.columns] == [each.tolist() for each in first.columns]
    assert asked(one, ZERO, 2 * PRICE, slot=3).values.tolist() != first.values.tolist()
    assert asked(started(seed=bytes([1]) * 32), ZERO, PRICE).values.tolist() != first.values.tolist()


def test_what_is_beyond_the_grant_is_refused_before_the_table_is_read() -> None:
    plan = GRANT.plan(SETTING)
    session = GRANT.start(SETTING, plan, DATA, bytes(32))
    asked(session, ZERO, plan.data_cost.rho)
    session._data = None  # type: ignore[assignment]
    with pytest.raises(BudgetExhausted):
        asked(session, TABLE, 1)
    with pytest.raises(InvalidArgument, match=r"statement\.rho"):
        asked(session, TABLE, 0)


def test_all_intervals_share_beta() -> None:
    """The j-th payment has beta / (j (j + 1)), for both sides of all its cells."""
    session = started(replace(SETTING, beta=0.5))
    spent = Fraction(0)
    for place in range(1, 9):
        statement = TABLE if place % 2 else ZERO
        answers = asked(session, statement, PRICE + place)
        cells = len(answers.values)
        deviation = standard_error(statement, 1, PRICE + place)
        width = float(half_widths(answers).max()) * RECORDS
        spent += Fraction(math.erfc(width / deviation / math.sqrt(2))) * cells
    assert 0.85 * 0.5 * (1 - 1 / 9) < spent < 0.5 * (1 - 1 / 9)


def test_a_workload_without_prices_is_not_of_a_grant() -> None:
    plan = GRANT.plan(SETTING)
    unpaid = SessionWorkload(np.array([0]), (compile_single(ZERO, SCHEMA),))
    with pytest.raises(ValueError, match="what a statement may cost"):
        check_asked(GRANT, SETTING, plan, {"ann": unpaid})
