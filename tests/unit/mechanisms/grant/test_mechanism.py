"""`grant`: what it allows, what a statement's price buys, and that the same question has the same answer."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from harness.answers import half_widths
from numpy.typing import NDArray

from equipoise.accounting import RHO_UNIT, Cost
from equipoise.errors import BudgetExhausted, InvalidArgument
from equipoise.model.accounts import Budget
from equipoise.model.grants import ANALYSTS
from equipoise.model.results import AnswerMethod, Answers
from equipoise.model.rounds import Share
from equipoise.queries.grant_account import Wanted
from equipoise.queries.grant_costs import account_after, grant_costs
from equipoise.queries.grant_price import standard_error
from equipoise.queries.grant_reach import FITTED, SINGLE, TOPPED, part_of
from equipoise.queries.meanings import meaning_of
from equipoise.queries.predicates import attribute
from equipoise.queries.schema import Attribute, Schema
from equipoise.queries.session_workload import SessionWorkload
from equipoise.queries.statements import Marginal, Statement, Sum
from equipoise.queries.workload_compiler import compile_single
from equipoise_server.conversion import epsilon_for
from equipoise_server.datasets.dense_counts import DenseCounts
from equipoise_server.mechanisms.grant.fits import Fits
from equipoise_server.mechanisms.grant.mechanism import GrantMechanism, GrantSession
from equipoise_server.mechanisms.interface import PublicParameters
from equipoise_server.mechanisms.online.interface import check_asked, linear
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


@pytest.mark.parametrize("persons", [1, 4])
def test_a_dry_run_says_how_far_intervals_will_reach(persons: int) -> None:
    """The first noise of a meaning, then more of it, of a table and of a condition, in turn with one another."""
    session, account = started(replace(SETTING, person_records=persons)), account_after([])
    for statement, rho in ((TABLE, PRICE), (ZERO, PRICE), (TABLE, 3 * PRICE), (ZERO, 5 * PRICE), (ZERO, PRICE)):
        answers = asked(session, statement, rho)
        encoded = repr(statement).encode()
        wanted = Wanted(meaning_of(linear(compile_single(statement, SCHEMA)), encoded), rho)
        (told,) = grant_costs(account, 0, [wanted], persons, SETTING.beta).statements
        account.pay(wanted)
        reached = half_widths(answers).max() * RECORDS
        assert told.half_width is not None
        assert reached < 1.01 * told.half_width + 2  # the server's noise and its quantiles are whole numbers
        if answers.methods[0] == AnswerMethod.GAUSSIAN and account.asked == 1:
            assert reached == pytest.approx(told.half_width, rel=0.01, abs=2)


@pytest.mark.full
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
    asked(other, attribute("b") == "0", 3 * PRICE)
    later = asked(other, ZERO, PRICE, slot=7)
    assert first.values.tolist() == later.values.tolist()
    assert half_widths(later).max() > half_widths(first).max()  # it is the second that is paid for
    asked(one, TABLE, 3 * PRICE)
    again, cheaper = asked(one, ZERO, PRICE, slot=1), asked(one, ZERO, PRICE // 2, slot=2)
    for repeated in (again, cheaper):
        assert [each.tolist() for each in repeated.columns] == [each.tolist() for each in first.columns]
    assert asked(one, ZERO, 2 * PRICE, slot=3).values.tolist() != first.values.tolist()
    assert asked(started(seed=bytes([1]) * 32), ZERO, PRICE).values.tolist() != first.values.tolist()


def test_another_spelling_is_the_same_question() -> None:
    session = started()
    first, turned = asked(session, TABLE, PRICE), asked(session, Marginal(("b", "a")), PRICE)
    assert turned.values.reshape(2, 3).T.tolist() == first.values.reshape(3, 2).tolist()
    some = asked(session, attribute("a") != "0", 2 * PRICE)
    rest = asked(session, (attribute("a") == "0") & ((attribute("b") == "0") | (attribute("b") == "1")), 2 * PRICE)
    assert rest.values[0] == 2**40 - some.values[0]
    assert (rest.lows[0], rest.highs[0]) == (2**40 - some.highs[0], 2**40 - some.lows[0])
    assert session._account.filter.payments == 2


def test_what_earlier_answers_tell_is_their_sum_and_costs_nothing() -> None:
    session = started()
    cells = asked(session, TABLE, 8 * PRICE).values.reshape(3, 2)
    told: dict[Statement, NDArray[np.int64]] = {
        Marginal(("a",)): cells.sum(axis=1),
        Marginal(("b",)): cells.sum(axis=0),
        ZERO & (attribute("b") == "1"): cells[0, 1:],
        Marginal(("b",), where=ZERO): cells[0],
    }
    for statement, expected in told.items():
        answers = asked(session, statement, PRICE)
        assert np.abs(answers.values - expected).max() <= 4  # cells and sums are rounded
        assert (answers.lows <= answers.values).all()
    assert session._account.filter.spent == 8 * PRICE


def test_more_precision_costs_what_is_missing_and_buys_all_of_it() -> None:
    session = started()
    course: list[tuple[int, Statement]] = [(1, ZERO), (3, ZERO), (2, TABLE), (6, TABLE)]
    for times, statement in course:
        rho = times * PRICE
        answers = asked(session, statement, rho)
        expected = standard_error(statement, 1, rho) * 2.0**40 / RECORDS
        assert answers.standard_errors.max() == pytest.approx(expected, rel=1e-6)
    assert session._account.filter.spent == 9 * PRICE
    # The table's cells have 3 PRICE, so that two of them have half of it; and the condition has 3 by itself.
    one = asked(session, ZERO, 5 * PRICE)
    assert session._account.filter.spent == 9 * PRICE + PRICE // 2
    assert one.standard_errors[0] == pytest.approx(standard_error(ZERO, 1, 5 * PRICE) * 2.0**40 / RECORDS, rel=1e-6)


def test_a_second_payment_draws_noise_of_its_own() -> None:
    session = started()
    errors = [asked(session, ZERO, times * PRICE).values[0] for times in (1, 2)]
    assert errors[0] != errors[1]


@pytest.mark.nightly
def test_fits_are_unbiased_have_their_standard_errors_and_hold_together() -> None:
    """100 grants of overlapping questions that are asked again for more: values, errors and all intervals."""
    course: list[tuple[Statement, int]] = [
        (TABLE, PRICE),
        (Marginal(("a",)), 2 * PRICE),
        (ZERO, 3 * PRICE),
        (TABLE, 4 * PRICE),
        (ZERO & (attribute("b") == "1"), 4 * PRICE),
        (Marginal(("b",)), PRICE // 2),
    ]
    runs, missed, errors, told = 100, 0, [], []
    for number in range(runs):
        session = started(replace(SETTING, beta=0.5), seed=number.to_bytes(32))
        held = True
        for statement, rho in course:
            answers = asked(session, statement, rho)
            truth = compile_single(statement, SCHEMA).counts(np.array([1000] * 6)) / RECORDS * 2.0**40
            held = held and bool(((answers.lows <= truth) & (truth <= answers.highs)).all())
        missed += not held
        errors.append((answers.values - truth) / answers.standard_errors)
        told.append(answers.standard_errors.max())
    every = np.concatenate(errors)
    # Five standard errors of a mean and of a root mean square of as many normal numbers.
    assert abs(every.mean()) < 5 / math.sqrt(len(every))
    assert abs(np.std(every) - 1) < 5 / math.sqrt(2 * len(every))
    assert len(set(told)) == 1
    assert missed <= runs * 0.5


def test_what_rounding_may_have_moved_is_in_the_interval_of_a_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    widths, fitted = [], Fits.counts
    for slack in (0.0, 50.0):
        monkeypatch.setattr(Fits, "counts", lambda *told, moved=slack: fitted(*told)._replace(slack=moved))
        session = started()
        asked(session, TABLE, PRICE)
        widths.append(float(half_widths(asked(session, ZERO, 1))[0]) * RECORDS)
    assert widths[1] - widths[0] == pytest.approx(50)
    asked(session, ZERO, PRICE)  # and noise of its own does not hide it
    meaning = meaning_of(compile_single(ZERO, SCHEMA), b"")
    known, _ = session._estimate_fitted(meaning, session._fits.drawn(meaning))
    assert session._fits.drawn(meaning) is not None
    assert known.slack[0] >= 50


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
    """The j-th meaning has 4 / ((j + 3) (j + 4)) of eight tenths of beta, for both sides of all its counts."""
    session = started(replace(SETTING, beta=0.5))
    spent = Fraction(0)
    meanings: list[Statement] = [*(attribute("a") == each for each in "012"), attribute("b") == "0", TABLE]
    for place, statement in enumerate(meanings):
        rho = PRICE // 10 + place
        answers = asked(session, statement, rho)
        cells = len(answers.values)
        deviation = standard_error(statement, 1, rho)
        width = float(half_widths(answers).max()) * RECORDS
        spent += Fraction(math.erfc(width / deviation / math.sqrt(2))) * cells
    # What is proven of a quantile takes up to a sixth of it, the more the larger the part is.
    assert 5 / 6 * 0.8 * 0.5 * (1 - 4 / 9) < spent < 0.8 * 0.5 * (1 - 4 / 9)
    assert sum(part_of(place, 0.5) for place in range(1, 1000)) == Fraction(1, 2) * (1 - Fraction(4, 1003))
    assert SINGLE + TOPPED + FITTED == 1


def test_a_workload_without_prices_is_not_of_a_grant() -> None:
    plan = GRANT.plan(SETTING)
    unpaid = SessionWorkload(np.array([0]), (compile_single(ZERO, SCHEMA),))
    with pytest.raises(ValueError, match="what a statement may cost"):
        check_asked(GRANT, SETTING, plan, {"ann": unpaid})


def test_another_price_draws_other_noise_under_one_seed() -> None:
    """A restored copy may be asked the same at another price: the two answers must not share their noise.

    These two prices buy noise of one law, as variances are rounded: what differs is the draw alone.
    """
    told = [asked(started(), TABLE, rho) for rho in (PRICE, PRICE, PRICE + 1)]
    first, again, dearer = (each.values.tolist() for each in told)
    assert len({int(each.standard_errors[0]) for each in told}) == 1
    assert first == again
    assert all(one != other for one, other in zip(first, dearer, strict=True))
