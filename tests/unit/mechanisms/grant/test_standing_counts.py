"""A grant's answers together with the dataset's standing measurement: what they cost, say and promise."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from functools import cache
from hashlib import sha256

import numpy as np
import pytest
from harness.answers import half_widths

from equipoise.accounting import RHO_UNIT
from equipoise.errors import InvalidArgument, VerificationFailed
from equipoise.model.accounts import Budget
from equipoise.model.grants import ANALYSTS
from equipoise.model.results import Answers
from equipoise.model.rounds import STANDING_OPTION, Share
from equipoise.queries.grant_account import Wanted
from equipoise.queries.grant_costs import StatementCost, account_after, grant_costs
from equipoise.queries.grant_price import standard_error
from equipoise.queries.meanings import Meaning, meaning_of
from equipoise.queries.own_precision import MeasuredPrecision
from equipoise.queries.predicates import attribute
from equipoise.queries.schema import Attribute, Schema
from equipoise.queries.statements import Marginal, Statement, Sum
from equipoise.queries.workload_compiler import compile_single
from equipoise.residuals.noise import ResidualNoise
from equipoise.residuals.reach import log_chance
from equipoise.residuals.released import ReleasedMeasurement
from equipoise.residuals.told_counts import StandingNoise
from equipoise_server.datasets.dense_counts import DenseCounts
from equipoise_server.mechanisms.grant.mechanism import GrantMechanism, GrantSession
from equipoise_server.mechanisms.grant.plan import GrantParameters
from equipoise_server.mechanisms.interface import PublicParameters
from equipoise_server.mechanisms.online.interface import linear
from equipoise_server.mechanisms.persons import planned_starts
from equipoise_server.mechanisms.residuals.measurement import Measured, measure
from equipoise_server.mechanisms.standing.answering import answers_of
from equipoise_server.mechanisms.standing.family import planned_noise

# The pairs of a, b and c are measured, and d is not; b has an order, and no power of two of categories.
SCHEMA = Schema(
    (
        Attribute("a", ("0", "1", "2")),
        Attribute("b", ("0", "1", "2"), ordered=True),
        Attribute("c", ("0", "1")),
        Attribute("d", ("0", "1")),
    )
)
A, B, C, D = (attribute(name) for name in "abcd")
TABLE = Marginal(("b", "a"))
TOLD: list[Statement] = [
    TABLE,
    A == "0",
    (B != "1") & (C == "0"),
    Marginal(("c",), where=B == "2"),
    Sum("b", ("c",)),
]
RECORDS, CELLS = 7200, 36
COUNTS = np.array([50 * (1 + number % 7) for number in range(CELLS - 1)])
COUNTS = np.append(COUNTS, RECORDS - COUNTS.sum())
DATA = DenseCounts(COUNTS, SCHEMA.sizes)
UNIT = RECORDS / 2.0**40
GRANT = GrantMechanism()
PRICE = RHO_UNIT // 1000


@cache
def noise_of() -> ResidualNoise:
    family = {"family": [["a", "b"], ["b", "c"], ["a", "c"]]}
    return planned_noise(family, SCHEMA, Budget(0.5, 1e-9))


@cache
def measured(seed: bytes = bytes(32)) -> Measured:
    return measure(DATA, noise_of(), seed, "measurement")


def setting_with(numbers: Measured | None, beta: float = 0.05, persons: int = 1) -> PublicParameters:
    data = b"" if numbers is None else numbers.to_bytes()
    named = ReleasedMeasurement("r-1", sha256(data).digest(), noise_of())
    return PublicParameters(
        records=RECORDS,
        universe_size=CELLS,
        shares=(Share("ann", 1 << 20, 1 << 30),),
        unit="query",
        data_budget=Budget(20.0, 1e-6),
        analyst_budget=ANALYSTS,
        beta=beta,
        options={"length": 1 << 20} | ({} if numbers is None else {STANDING_OPTION: named.as_option()}),
        attributes=SCHEMA.sizes,
        ordered=SCHEMA.ordered,
        measured=data,
        person_records=persons,
    )


def started(
    numbers: Measured | None, seed: bytes = bytes(32), beta: float = 0.05, persons: int = 1
) -> GrantSession:
    setting = setting_with(numbers, beta, persons)
    return GRANT.start(setting, planned_starts(GRANT, setting)[0].plan, DATA, seed)


def asked(session: GrantSession, statement: Statement, rho: int) -> Answers:
    return session.answer(0, compile_single(statement, SCHEMA), repr(statement).encode(), rho)


def meaning(statement: Statement) -> Meaning:
    return meaning_of(linear(compile_single(statement, SCHEMA)), repr(statement).encode())


def tells(statement: Statement, persons: int = 1) -> MeasuredPrecision | None:
    standing = StandingNoise(noise_of(), persons)
    return standing.tells(linear(compile_single(statement, SCHEMA)), meaning(statement))


def alone(statement: Statement, numbers: Measured) -> Answers:
    """What the measurement by itself answers."""
    return answers_of(linear(compile_single(statement, SCHEMA)), numbers, log_chance(0.05))


@pytest.mark.parametrize("statement", TOLD)
def test_what_the_measurement_tells_costs_nothing_and_is_its_own_answer(statement: Statement) -> None:
    session, told = started(measured()), tells(statement)
    assert told is not None
    known = math.floor(meaning(statement).moved * min(told.precisions))
    answers, expected = asked(session, statement, known), alone(statement, measured())
    assert session._account.filter.spent == 0
    assert answers.values.tolist() == expected.values.tolist()
    assert answers.standard_errors.tolist() == expected.standard_errors.tolist()
    bought = standard_error(statement, 1, known)
    assert answers.standard_errors.max() * UNIT == pytest.approx(bought, rel=1e-6)


@pytest.mark.parametrize("statement", TOLD)
def test_what_is_missing_is_paid_and_combined_by_inverse_variance(statement: Statement) -> None:
    """The noise that is paid for is that of a grant without a measurement that pays as much for the statement."""
    session, told = started(measured()), tells(statement)
    assert told is not None
    known = meaning(statement).moved * min(told.precisions)
    wanted = math.ceil(3 * known)
    answers = asked(session, statement, wanted)
    cost = session._account.filter.spent
    assert cost == math.ceil(wanted - known)
    own, free = asked(started(None), statement, cost), alone(statement, measured())
    weights = 1 / (own.standard_errors * UNIT) ** 2, 1 / (free.standard_errors * UNIT) ** 2
    expected = (own.values * weights[0] + free.values * weights[1]) / sum(weights)
    assert np.abs(answers.values - expected).max() * UNIT < 1e-3
    assert answers.standard_errors * UNIT == pytest.approx(1 / np.sqrt(sum(weights)), rel=1e-5)
    assert answers.standard_errors.max() * UNIT <= standard_error(statement, 1, wanted) * (1 + 1e-6)
    assert (half_widths(answers) <= half_widths(own) + 1e-9).all()
    # More of it again pays for what is missing now, and no more.
    asked(session, statement, 2 * wanted)
    assert session._account.filter.spent == cost + wanted


def test_a_fit_of_own_tables_is_combined_with_the_measurement() -> None:
    session, own, red = started(measured()), started(None), A == "0"
    for each in (session, own):
        asked(each, Marginal(("a", "d")), 4 * PRICE)  # which the measurement does not tell: all of it is paid
        assert each._account.filter.spent == 4 * PRICE
    part = StandingNoise(noise_of(), 1).parts[0,]
    paid = PRICE  # two cells of the table have half of its precision, which is 2 PRICE
    known = math.floor((paid + part) * 3 / 2)  # how many records there are is known, and so a third of the variance
    answers = asked(session, red, known)
    assert session._account.filter.spent == 4 * PRICE
    fitted, free = asked(own, Marginal(("a",)), 1), alone(Marginal(("a",)), measured())
    weight = float(paid / (paid + part))
    both = fitted.values * weight + free.values * (1 - weight)
    expected = 2.0**40 / 3 + (both - both.mean())[0]
    assert abs(answers.values[0] - expected) * UNIT < 1e-3
    error = math.sqrt(RHO_UNIT / 2 / known)
    assert answers.standard_errors[0] * UNIT == pytest.approx(error, rel=1e-3)
    assert (half_widths(answers) < half_widths(asked(own, red, 1))).all()
    asked(session, red, known + PRICE)
    assert session._account.filter.spent == 5 * PRICE


@pytest.mark.parametrize("statement", [D == "0", Marginal(("a", "b", "c")), Marginal(("a",), where=D == "1")])
def test_what_the_measurement_does_not_tell_is_paid_in_full(statement: Statement) -> None:
    with_one, without = started(measured()), started(None)
    first, second = asked(with_one, statement, PRICE), asked(without, statement, PRICE)
    told = tells(statement)
    assert told is None or not any(told.precisions)
    assert with_one._account.filter.spent == PRICE
    if isinstance(statement, Marginal) and statement.where is None:  # its sums are measured, and no cell
        assert (first.standard_errors < second.standard_errors).all()
        assert (half_widths(first) <= half_widths(second)).all()
    else:
        assert [each.tolist() for each in first.columns] == [each.tolist() for each in second.columns]


@pytest.mark.parametrize("persons", [1, 4])
def test_a_dry_run_says_what_is_charged_and_how_far_intervals_reach(persons: int) -> None:
    session, account = started(measured(), persons=persons), account_after([])
    for statement, rho in ((TABLE, PRICE), (A == "0", 40 * PRICE), (TABLE, 60 * PRICE), (D == "0", PRICE)):
        wanted = Wanted(meaning(statement), rho * persons**2, tells(statement, persons))
        (told,) = grant_costs(account, 0, [wanted], persons, 0.05).statements
        before = session._account.filter.spent
        answers = asked(session, statement, rho * persons**2)
        assert session._account.filter.spent - before == account.pay(wanted) == told.cost
        assert answers.standard_errors.max() * UNIT <= told.standard_error * (1 + 1e-5)
        assert (told.measured is None) is (statement == (D == "0"))
        _check_reach(told, answers)
    assert account.filter.spent < 160 * PRICE * persons**2


def _check_reach(told: StatementCost, answers: Answers) -> None:
    if told.half_width is None:  # other tables have a part in it
        return
    # The server's quantiles are whole numbers, and intervals of both parts overlap.
    assert half_widths(answers).max() * RECORDS < 1.01 * told.half_width + 3


def test_precisions_are_those_of_the_least_precise_count() -> None:
    for statement in TOLD:
        told, free = tells(statement, persons=3), alone(statement, measured())
        assert told is not None
        largest = (free.standard_errors.max() * UNIT) ** 2
        assert float(min(told.precisions)) == pytest.approx(9 * RHO_UNIT / 2 / largest, rel=1e-6)


def test_a_measurement_of_another_table_is_refused() -> None:
    setting = setting_with(measured())
    with pytest.raises(InvalidArgument, match=r"options\.standing: names a measurement of other attributes"):
        GRANT.plan(replace(setting, attributes=(3, 3, 2), universe_size=18))
    with pytest.raises(InvalidArgument, match=r"options\.prior: unknown; there is standing"):
        GRANT.plan(replace(setting, options={**setting.options, "prior": "none"}))
    with pytest.raises(ValueError, match="not those of the measurement that the plan names"):
        GRANT.start(replace(setting, measured=bytes(len(setting.measured))), GRANT.plan(setting), DATA, bytes(32))
    named = setting.options[STANDING_OPTION]
    assert isinstance(named, dict)
    with pytest.raises(VerificationFailed, match="the record: names a measurement of other attributes"):
        StandingNoise.of(named, (3, 3, 2), 1, "the record")
    assert StandingNoise.of(None, SCHEMA.sizes, 1) is None


def test_the_plan_names_the_measurement_and_charges_nothing_for_it() -> None:
    with_one, without = GRANT.plan(setting_with(measured())), GRANT.plan(setting_with(None))
    named = GrantParameters.from_json(with_one.parameters).measurement
    assert named is not None
    assert (named.round_id, named.digest) == ("r-1", sha256(measured().to_bytes()).digest())
    assert GrantParameters.from_json(without.parameters).measurement is None
    assert with_one.data_cost == without.data_cost


@pytest.mark.nightly
def test_answers_are_unbiased_have_their_standard_errors_and_hold_together() -> None:
    """100 measurements with a grant each, whose analyst asks for more where the measurement seems to err."""
    runs, missed, errors = 100, 0, []
    most = Fraction(1, 2)
    for number in range(runs):
        numbers = measured(number.to_bytes(32, "big"))
        session = started(numbers, seed=number.to_bytes(32, "little"), beta=float(most))
        free = alone(TABLE, numbers)
        seen = free.values / 2.0**40 - linear(compile_single(TABLE, SCHEMA)).counts(COUNTS) / RECORDS
        worst = int(np.argmax(seen))  # who knew the truth would ask here; nobody can choose worse
        cell = (attribute("b") == str(worst // 3)) & (attribute("a") == str(worst % 3))
        held = True
        course: list[tuple[Statement, int]] = [
            (cell, 8 * PRICE),
            (TABLE, 20 * PRICE),
            (Marginal(("a",)), 9 * PRICE),
            (cell, 40 * PRICE),
        ]
        for statement, rho in course:
            answers = asked(session, statement, rho)
            truth = linear(compile_single(statement, SCHEMA)).counts(COUNTS) / RECORDS * 2.0**40
            held = held and bool(((answers.lows <= truth) & (truth <= answers.highs)).all())
            if statement is not cell:  # what is chosen by its error is biased, and only its interval holds
                errors.append((answers.values - truth) / answers.standard_errors)
        missed += not held
    every = np.concatenate(errors)
    # Five standard errors of a mean and of a root mean square of as many normal numbers as there are runs: those of
    # one run depend on one another.
    assert abs(every.mean()) < 5 / math.sqrt(runs)
    assert abs(np.std(every) - 1) < 5 / math.sqrt(2 * runs)
    assert missed <= runs * most
