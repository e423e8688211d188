"""What holds for every mechanism where a person has several records: the charge, the run, and what is refused."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import pytest
from harness.mechanism_cases import CASES, NAMES, SEED, UNITS, delivered, setting_for

from equipoise.accounting import (
    ApproximateDpEvent,
    Cost,
    Mixture,
    PureDpEvent,
    ThresholdTests,
    ZcdpEvent,
    events_from_json,
)
from equipoise.errors import InvalidArgument
from equipoise.model.accounts import Budget
from equipoise_server.conversion import epsilon_for
from equipoise_server.datasets.dense_counts import DenseCounts
from equipoise_server.mechanisms.budget_rounding import SAMPLERS
from equipoise_server.mechanisms.interface import PublicParameters
from equipoise_server.mechanisms.persons import person_events, planned_starts, record_budget
from equipoise_server.mechanisms.planner import compare, without_choice
from equipoise_server.mechanisms.registry import MECHANISMS, session_mechanism

every_mechanism = pytest.mark.parametrize("name", NAMES)
every_unit = pytest.mark.parametrize("unit", UNITS)
NUMBERS = pytest.mark.parametrize("records", [2, 4, 16])


def persons_setting(name: str, unit: str, records: int) -> PublicParameters:
    return replace(setting_for(name, "a table", unit), person_records=records)


@pytest.mark.thin(2)
@pytest.mark.slow
@every_mechanism
@every_unit
@NUMBERS
def test_a_person_is_charged_for_all_of_its_records_and_no_more_than_its_budget(
    name: str, unit: str, records: int
) -> None:
    setting = persons_setting(name, unit, records)
    plan = planned_starts(MECHANISMS[name], setting)[0].plan
    epsilon = epsilon_for(plan.data_cost, setting.data_budget.delta)
    assert 0.9 * setting.data_budget.epsilon < epsilon <= setting.data_budget.epsilon
    # The same noise for a budget of one record: the parameters are equal, and each part costs its multiple.
    alone = replace(setting, data_budget=record_budget(setting.data_budget, records), person_records=1)
    own = MECHANISMS[name].plan(alone)
    if own.parameters != plan.parameters:
        alone = replace(alone, data_budget=Budget(setting.data_budget.epsilon / records, setting.data_budget.delta))
        own = MECHANISMS[name].plan(alone)
    assert own.parameters == plan.parameters
    for part, person in zip(events_from_json(own.data_events), events_from_json(plan.data_events), strict=True):
        assert part.name == person.name
        if isinstance(part, ZcdpEvent):
            assert isinstance(person, ZcdpEvent)
            assert (person.rho, person.times) == (records**2 * part.rho, part.times)
        elif isinstance(part, PureDpEvent):
            assert isinstance(person, PureDpEvent)
            assert (person.epsilon, person.times) == (records * part.epsilon, part.times)
        else:
            assert isinstance(part, ApproximateDpEvent)
            assert isinstance(person, ApproximateDpEvent)
            assert person.epsilon == records * part.epsilon
            assert person.delta >= part.delta
    assert plan.analyst_events == own.analyst_events


@every_mechanism
def test_a_round_for_persons_is_that_of_its_noise(name: str) -> None:
    given, setting = CASES["a table"], persons_setting(name, "query", 4)
    plan = planned_starts(MECHANISMS[name], setting)[0].plan
    data = DenseCounts(given.histogram, setting.attributes)
    outcomes = [
        MECHANISMS[name].run(own, plan, data, given.workloads, SEED, lambda *_: None)
        for own in (setting, replace(setting, person_records=1))
    ]
    assert delivered(outcomes[0]) == delivered(outcomes[1])
    if name in {"gaussian", "projection", "pooled"}:
        # As much noise on a fraction as where each of as many persons has one record.
        fewer = replace(setting, records=setting.records // 4, person_records=1)
        assert plan.max_half_width == pytest.approx(MECHANISMS[name].plan(fewer).max_half_width, rel=0.05)


@every_mechanism
def test_one_record_a_person_is_planned_as_ever(name: str) -> None:
    setting = setting_for(name, "a table", "query")
    assert planned_starts(MECHANISMS[name], setting)[0].plan == MECHANISMS[name].plan(setting)


@pytest.mark.parametrize("name", ["online", "online_private"])
def test_sessions_keep_to_the_persons_budget(name: str) -> None:
    shares = CASES["a table"].setting.shares[:1] if name == "online" else CASES["a table"].setting.shares
    shares = tuple(replace(share, sensitivity=0, support=0) for share in shares)
    setting = replace(
        CASES["a table"].setting, shares=shares, options={"length": 6}, person_records=4, records=40_000
    )
    for start in planned_starts(session_mechanism(name), setting):
        assert 0.9 < epsilon_for(start.plan.data_cost, setting.data_budget.delta) <= 1


def test_threshold_tests_of_persons_are_those_of_larger_epsilons() -> None:
    part = ThresholdTests("tests", 10, Fraction(1, 1000), Fraction(1, 10**6), Fraction(1, 5), Fraction(1, 10**9))
    (person,) = person_events([part], 3, 1.0)
    assert isinstance(person, ThresholdTests)
    assert (person.test_epsilon, person.answer_rho) == (Fraction(3, 1000), Fraction(9, 10**6))
    assert (person.positives, person.delta) == (part.positives, part.delta)
    (alone,) = person_events([part], 1, 1.0)
    assert isinstance(alone, ThresholdTests)
    assert 2.5 < person.epsilon / alone.epsilon < 3.5


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 1.3])
def test_the_truncation_of_a_person_s_samplers_is_charged_for_both_runs(epsilon: float) -> None:
    """Laws within tau of ideal ones that satisfy epsilon satisfy it at delta tau (1 + e^epsilon) more."""
    slack = ApproximateDpEvent(SAMPLERS, Fraction(0), Fraction(2, 10**9))
    step = PureDpEvent("answers", Fraction(epsilon) / 4, 1)
    charged = person_events([step, slack], 4, 0.1)[-1]
    assert isinstance(charged, ApproximateDpEvent)
    assert charged.delta >= Fraction(1, 10**9) * Fraction(1 + math.exp(epsilon))


def test_what_is_not_proven_of_persons_is_refused() -> None:
    setting = replace(persons_setting("gaussian", "query", 4), options={"length": 6, "sensitivity": 0.1})
    with pytest.raises(InvalidArgument, match=r"low_sensitivity answers statistics.*has 4 records"):
        without_choice(session_mechanism("low_sensitivity"), setting)
    mixture = Mixture("game", 3, Fraction(1, 2), Fraction(1, 100), Fraction(1), Fraction(1, 10**9))
    for part in (mixture, ApproximateDpEvent("pair", Fraction(1), Fraction(1, 10**9))):
        with pytest.raises(ValueError, match="nothing is proven"):
            person_events([part], 2, 1.0)
    with pytest.raises(InvalidArgument, match="person_records: must lie between 1 and 4,096, and divide"):
        compare(replace(setting, person_records=3), MECHANISMS)


@pytest.mark.slow
def test_no_mechanism_plans_for_persons_by_itself() -> None:
    setting = persons_setting("gaussian", "query", 4)
    with pytest.raises(ValueError, match=r"planned_starts"):
        MECHANISMS["gaussian"].plan(setting)
    assert without_choice(MECHANISMS["gaussian"], setting).plan.mechanism == "gaussian"
    assert compare(setting, MECHANISMS).plan.data_cost != Cost()
