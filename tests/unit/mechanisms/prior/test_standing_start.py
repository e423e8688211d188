"""A prior from the dataset's standing measurement: what is planned, charged, refused and answered from it."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import cache
from hashlib import sha256
from typing import Any

import numpy as np
import pytest
from harness.answers import to_bytes
from numpy.typing import NDArray

from equipoise.accounting import Cost, charge_of, events_from_json
from equipoise.errors import InvalidArgument
from equipoise.model.accounts import Budget
from equipoise.model.results import AnswerMethod
from equipoise.model.rounds import Share
from equipoise.queries.predicates import attribute
from equipoise.queries.schema import Schema
from equipoise.queries.statements import Marginal
from equipoise.queries.workload_compiler import compile_single, compile_workload
from equipoise.residuals.released import ReleasedMeasurement
from equipoise.residuals.variances import cell_variances
from equipoise_server.conversion import epsilon_for
from equipoise_server.datasets.dense_counts import DenseCounts
from equipoise_server.mechanisms.equilibrium.mechanism import Equilibrium
from equipoise_server.mechanisms.explanation import why
from equipoise_server.mechanisms.interface import PublicParameters
from equipoise_server.mechanisms.online.interface import linear
from equipoise_server.mechanisms.online.mechanism import Online
from equipoise_server.mechanisms.online_private.mechanism import OnlinePrivate
from equipoise_server.mechanisms.planner import compare, without_choice
from equipoise_server.mechanisms.prior.forecast import expected_mean
from equipoise_server.mechanisms.prior.plan import PriorParameters, standing_prior
from equipoise_server.mechanisms.registry import MECHANISMS, PLANNERS, may_start_from_measurement, mechanism
from equipoise_server.mechanisms.residuals.measurement import measure
from equipoise_server.mechanisms.standing.family import planned_noise
from equipoise_server.mechanisms.standing.mechanism import ToldStanding
from equipoise_server.mechanisms.standing.released import named_measurement

SCHEMA = Schema.from_json('{"a": 4, "b": 3, "c": 2, "d": 5}')
RECORDS, UNIVERSE, LENGTH = 20_000, 120, 40
SEED = b"\x09" * 32
ROUND = "e" * 32
NAMES: dict[str, Equilibrium | Online | OnlinePrivate] = {
    "equilibrium": Equilibrium(),
    "online": Online(),
    "online_private": OnlinePrivate(),
}
GENEROUS, MEAGRE = Budget(8.0, 1e-9), Budget(0.01, 1e-9)
a, b, c, d = (attribute(name) for name in "abcd")
PAIR = compile_single(Marginal(("d", "a")), SCHEMA)


def counts() -> NDArray[np.int64]:
    weights = np.arange(UNIVERSE) ** 2 * (np.arange(UNIVERSE) % 7 > 0)
    cells: NDArray[np.int64] = weights * RECORDS // weights.sum()
    cells[-1] += RECORDS - cells.sum()
    return cells


@cache
def released(budget: Budget = GENEROUS, family: str | tuple[tuple[str, ...], ...] = "pairs") -> tuple[Any, bytes]:
    """What names a measurement in options, and its numbers."""
    noise = planned_noise({"family": family}, SCHEMA, budget)
    numbers = measure(DenseCounts(counts(), SCHEMA.sizes), noise, SEED, "measurement").to_bytes()
    return ReleasedMeasurement(ROUND, sha256(numbers).digest(), noise).as_option(), numbers


def setting(name: str, measured: Any = None, **options: object) -> PublicParameters:
    """Of a round or a session in which a measurement is known, if one is given."""
    named = {} if measured is None else {"standing": measured[0]}
    analysts = Budget(math.inf, 0.0) if name == "online" else Budget(1.0, 1e-6)
    length = {} if name == "equilibrium" else {"length": LENGTH}
    return PublicParameters(
        records=RECORDS,
        universe_size=UNIVERSE,
        shares=(Share("AA", LENGTH, 20 * LENGTH), Share("BB", LENGTH, 20 * LENGTH)),
        unit="query",
        data_budget=Budget(1.0, 1e-9),
        analyst_budget=analysts,
        beta=0.05,
        options={**options, **named, **length},
        attributes=SCHEMA.sizes,
        measured=b"" if measured is None else measured[1],
    )


class OnlyCounted(DenseCounts):
    """A table of which no marginal can be had, as nothing is measured."""

    def marginals(self, *_: Any) -> Any:
        raise AssertionError("the table was measured")


class Unread(OnlyCounted):
    """A table that nothing can be asked of."""

    def count(self, *_: Any) -> Any:
        raise AssertionError("the table was read")


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_the_measurement_is_named_and_not_charged_and_all_of_the_budget_is_left(name: str) -> None:
    own = NAMES[name].plan(setting(name, prior="own"))
    plan = NAMES[name].plan(setting(name, released(), prior="standing"))
    assert [event.name for event in events_from_json(own.data_events)].count("prior") == 1
    events = events_from_json(plan.data_events)
    assert "prior" not in {event.name for event in events}
    assert charge_of(events) == plan.data_cost
    assert 0.7 < epsilon_for(plan.data_cost, 1e-9) <= 1
    assert f'"round":"{ROUND}"' in plan.parameters
    assert ROUND not in own.parameters


@pytest.mark.thin(2)
@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_a_plan_starts_from_it_where_that_is_expected_to_err_least(name: str) -> None:
    asked = NAMES[name]
    assert may_start_from_measurement(name)
    starts = asked.starts(setting(name, released()))
    assert starts[0].prior == "standing"
    assert {each.prior for each in starts} == {"standing", "own", "none"}
    assert [each.plan.expected_error for each in starts] == sorted(each.plan.expected_error for each in starts)
    assert asked.plan(setting(name, released())) == starts[0].plan
    assert asked.starts(setting(name, released(MEAGRE)))[0].prior != "standing"
    assert {each.prior for each in asked.starts(setting(name))} == {"own", "none"}
    comparison = without_choice(asked, setting(name, released()))
    assert comparison.from_measurement
    assert why(comparison).startswith("It starts from the standing measurement, expected to err by ")
    assert "from a measurement of its own" in why(comparison)
    meagre = without_choice(asked, setting(name, released(MEAGRE)))
    assert (meagre.from_measurement, why(meagre)) == (False, "")


@pytest.mark.parametrize("name", NAMES)
def test_what_cannot_be_started_from_is_refused(name: str) -> None:
    plan = NAMES[name].plan
    with pytest.raises(InvalidArgument, match=r"^options.standing: must name a measurement of the dataset"):
        plan(setting(name, prior="standing"))
    with pytest.raises(InvalidArgument, match=r"^options.standing: belongs to prior standing, and prior is own"):
        plan(setting(name, released(), prior="own"))
    with pytest.raises(InvalidArgument, match=r"^options.standing: does not name a released measurement"):
        plan(setting(name, ({"round": ROUND}, b""), prior="standing"))
    with pytest.raises(InvalidArgument, match=r"^options.standing: names a measurement of other attributes"):
        plan(replace(setting(name, released(), prior="standing"), attributes=(4, 6, 5)))


@pytest.mark.slow
def test_a_planner_gives_the_measurement_to_whoever_can_start_from_it_and_says_so() -> None:
    many = replace(
        setting("equilibrium", released()), shares=(Share("AA", 20_000, 20_000),), data_budget=Budget(0.05, 1e-9)
    )
    comparison = compare(many, MECHANISMS)
    assert comparison.from_measurement
    assert comparison.plan.mechanism == "equilibrium"
    assert "It starts from the standing measurement" in why(comparison)
    without = compare(replace(many, options={}, measured=b""), MECHANISMS)
    assert without.plan.expected_error > comparison.plan.expected_error
    # One that nobody starts from changes nothing: a plan without it is the same.
    meagre = compare(replace(many, options={"standing": released(MEAGRE)[0]}), MECHANISMS)
    assert not meagre.from_measurement
    assert meagre.plan == without.plan
    assert why(meagre) == why(without)


def asking_little(family: str | tuple[tuple[str, ...], ...] = "pairs", *ways: int) -> PublicParameters:
    """A round of a small budget, beside a measurement of a large one."""
    shares = tuple(Share(f"analyst-{number}", 5, 60, ways=each) for number, each in enumerate(ways))
    case = setting("equilibrium", released(GENEROUS, family))
    return replace(case, shares=shares, data_budget=Budget(0.1, 1e-9))


@pytest.mark.full
@pytest.mark.slow
def test_auto_answers_from_the_measurement_where_that_errs_least_and_charges_nobody() -> None:
    case = asking_little("pairs", 2, 1)
    for rule in ("auto", "auto_by_promise"):
        comparison = PLANNERS[rule].compare(case)
        assert (comparison.plan.mechanism, comparison.from_measurement) == ("standing", True)
        assert (comparison.plan.data_cost, comparison.plan.analyst_cost) == (Cost(), Cost())
        assert why(comparison).startswith("standing ")
        least = min(each.plan.expected_error for each in comparison.candidates if each.plan)
        assert comparison.plan.expected_error == least
        assert comparison.plan == mechanism("standing").plan(case)
    # Of a meagre measurement nobody wants anything, and the choice is as if there were none.
    meagre = PLANNERS["auto"].compare(replace(case, options={"standing": released(MEAGRE)[0]}))
    without = PLANNERS["auto"].compare(replace(case, options={}))
    assert (meagre.plan, meagre.chosen) == (without.plan, without.chosen)
    # What it would answer is shown.
    assert [each.mechanism for each in without.candidates] == [*MECHANISMS]
    assert [each.mechanism for each in meagre.candidates] == [*MECHANISMS, "standing"]
    assert [each.plan for each in meagre.candidates[:-1]] == [each.plan for each in without.candidates]
    shown = meagre.candidates[-1].plan
    assert shown is not None
    assert shown.data_cost == Cost()
    assert shown.expected_error > meagre.plan.expected_error


@pytest.mark.thin(2)
@pytest.mark.slow
@pytest.mark.parametrize(
    ("family", "ways", "told"),
    [
        ("pairs", (2, 2), True),
        ("pairs", (2, 3), False),
        ("pairs", (2, 0), False),
        ("triples", (3, 2), True),
        ((("a", "b"), ("c",), ("d",)), (1, 1), True),
        ((("a", "b"), ("c",), ("d",)), (1, 2), False),
        ((("a", "b", "c", "d"),), (0, 4), True),
        ((("a", "b"),), (1, 1), False),
    ],
)
def test_auto_answers_from_the_measurement_only_if_it_refuses_no_statement_that_shares_allow(
    family: str | tuple[tuple[str, ...], ...], ways: tuple[int, ...], told: bool
) -> None:
    case = asking_little(family, *ways)
    if told:
        assert PLANNERS["auto"].compare(case).plan == ToldStanding().plan(case)
    else:
        comparison = PLANNERS["auto"].compare(case)
        assert comparison.plan.mechanism != "standing"
        (shown,) = (each for each in comparison.candidates if each.mechanism == "standing")
        assert "the standing measurement tells all that are about" in str(shown.refusal)
        with pytest.raises(InvalidArgument, match=r"^shares\[\d\].ways: allows statements about "):
            ToldStanding().plan(case)
        assert mechanism("standing").plan(case).mechanism == "standing"  # by name it may refuse some


def test_the_error_expected_of_a_measurement_is_that_of_the_tables_that_a_share_may_ask_about() -> None:
    noise = named_measurement(asking_little("pairs", 1)).noise
    for ways in (1, 2):
        tables = tuple(axes for axes in noise.family.sets if len(axes) == ways)
        errors = [
            math.sqrt(2 * variance / math.pi)
            for axes in tables
            for variance in np.broadcast_to(
                cell_variances(noise, axes), [SCHEMA.sizes[axis] for axis in axes]
            ).ravel()
        ]
        expected = ToldStanding().plan(asking_little("pairs", ways)).expected_error
        assert expected == pytest.approx(float(np.mean(errors)) / RECORDS, rel=1e-5)


def test_less_is_expected_of_a_measurement_that_holds_less() -> None:
    errors = [
        expected_mean(standing_prior(setting("equilibrium", released(GENEROUS, family))), setting("equilibrium"))
        for family in ("pairs", (("a", "b"), ("c",), ("d",)), (("a", "b"),))
    ]
    assert errors == sorted(errors)
    assert errors[1] > 2 * errors[0]
    assert errors[2] > 2 * errors[1]


def test_a_round_that_starts_from_it_measures_nothing_and_its_intervals_hold() -> None:
    public = setting("equilibrium", released(), prior="standing")
    plan = Equilibrium().plan(public)
    workload = compile_workload([Marginal(("a", "d")), (a == "1") & (b == "2") & (d == "3")], SCHEMA)
    data = OnlyCounted(counts(), SCHEMA.sizes)
    outcome = Equilibrium().run(public, plan, data, {"AA": workload}, SEED, lambda *_: None)
    answers = outcome.answers["AA"]
    assert not answers.misses(workload.counts(counts()) / RECORDS).any()
    assert answers.certified.all()
    assert plan.analyst_cost == Cost()
    other = Equilibrium().run(public, plan, data, {}, bytes(32), lambda *_: None)
    assert np.array_equal(other.synopsis.cells, outcome.synopsis.cells)
    with pytest.raises(ValueError, match="not those of the measurement"):
        Equilibrium().run(replace(public, measured=bytes(8)), plan, data, {"AA": workload}, SEED, lambda *_: None)


@pytest.mark.parametrize("name", ["online", "online_private"])
def test_a_session_answers_what_the_measurement_tells_from_it_alone(name: str) -> None:
    public = setting(name, released(), prior="standing")
    mechanism = NAMES[name]
    assert isinstance(mechanism, Online | OnlinePrivate)
    plan = mechanism.plan(public)
    session = mechanism.start(public, plan, Unread(counts(), SCHEMA.sizes), SEED)
    again = mechanism.start(public, plan, Unread(counts(), SCHEMA.sizes), bytes(32))
    for slot in range(3):
        answers = session.answer(slot, PAIR)
        assert set(answers.methods.tolist()) == {AnswerMethod.MEASURED}
        assert not answers.misses(linear(PAIR).counts(counts()) / RECORDS).any()
        assert to_bytes(again.answer(slot, PAIR)) == to_bytes(answers)
    with pytest.raises(AssertionError, match="was read"):
        session.answer(3, compile_single((a == "1") & (b == "2") & (c == "1"), SCHEMA))
    with pytest.raises(ValueError, match="not those of the measurement"):
        mechanism.start(replace(public, measured=bytes(8)), plan, Unread(counts(), SCHEMA.sizes), SEED)


def test_parameters_say_which_numbers_and_charge_nothing() -> None:
    parameters = standing_prior(setting("equilibrium", released()))
    assert parameters.released is not None
    assert parameters.released.digest == sha256(released()[1]).digest()
    own = PriorParameters.of(parameters.noise)
    assert parameters.rho == parameters.truncation() == 0
    assert not parameters.events()
    assert own.rho > 0
    assert parameters.seconds() < own.seconds()
