"""What holds for the plan of every mechanism: canonical, within both budgets, made of published parts."""

from __future__ import annotations

import json
import math
import re
from dataclasses import replace

import pytest
from harness.mechanism_cases import CASES, NAMES, UNITS, plan_for, setting_for

from equipoise.accounting import Cost, charge_of, events_from_json
from equipoise.errors import BudgetExhausted, InvalidArgument
from equipoise.model.accounts import Budget
from equipoise.model.rounds import Share
from equipoise_server.conversion import epsilon_for
from equipoise_server.mechanisms.registry import MECHANISMS

every_mechanism = pytest.mark.parametrize("name", NAMES)
every_unit = pytest.mark.parametrize("unit", UNITS)
every_case = pytest.mark.parametrize("case", CASES)


@pytest.mark.thin(2)
@pytest.mark.slow
@every_mechanism
@every_unit
@every_case
def test_a_plan_is_canonical_and_says_what_it_costs(name: str, unit: str, case: str) -> None:
    plan, setting = plan_for(name, case, unit), CASES[case].setting
    assert plan.mechanism == name == MECHANISMS[name].name
    canonical = json.dumps(json.loads(plan.parameters), sort_keys=True, separators=(",", ":"))
    assert canonical == plan.parameters
    assert plan.analyst_cost is not None
    for events, cost, budget in (
        (plan.data_events, plan.data_cost, setting.data_budget),
        (plan.analyst_events, plan.analyst_cost, setting.analyst_budget),
    ):
        assert epsilon_for(cost, budget.delta) <= budget.epsilon
        assert charge_of(events_from_json(events)) == cost
    assert plan.data_cost != Cost()
    assert 0 < plan.max_half_width <= 1
    assert 0 <= plan.max_uncertified <= sum(share.queries for share in setting.shares)
    assert 0 < plan.seconds < 60
    assert 2**20 < plan.memory_bytes < 2**31


@every_mechanism
@every_unit
def test_a_plan_made_twice_is_the_same(name: str, unit: str) -> None:
    setting = setting_for(name, "a table", unit)
    assert MECHANISMS[name].plan(setting) == plan_for(name, "a table", unit)


@every_mechanism
@every_unit
def test_the_budget_is_used(name: str, unit: str) -> None:
    setting, plan = CASES["a table"].setting, plan_for(name, "a table", unit)
    assert epsilon_for(plan.data_cost, setting.data_budget.delta) > 0.9 * setting.data_budget.epsilon


@every_mechanism
@every_unit
def test_more_budget_and_more_records_never_promise_less(name: str, unit: str) -> None:
    setting = setting_for(name, "a table", unit)
    for richer in (replace(setting, data_budget=Budget(4.0, 2.5e-7)), replace(setting, records=20_000)):
        assert MECHANISMS[name].plan(richer).max_half_width <= plan_for(name, "a table", unit).max_half_width


@every_mechanism
@every_unit
def test_analysts_without_protection_have_no_cost(name: str, unit: str) -> None:
    setting = replace(setting_for(name, "a table", unit), analyst_budget=Budget(math.inf, 1e-6))
    plan = MECHANISMS[name].plan(setting)
    assert plan.analyst_cost is None
    assert events_from_json(plan.analyst_events) == ()


@pytest.mark.slow
@every_mechanism
@every_unit
@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"unit": "table"}, "unit"),
        ({"shares": ()}, "shares"),
        ({"data_budget": Budget(0.0, 1e-9)}, "data_budget"),
        ({"data_budget": Budget(math.nan, 1e-9)}, "data_budget"),
        ({"analyst_budget": Budget(1.0, 1.0)}, "analyst_budget"),
        ({"beta": 0.0}, "beta"),
        ({"beta": 5e-324}, "beta"),
        ({"records": 0}, "records"),
        ({"records": 2**40}, "records"),
        ({"universe_size": 0}, "universe_size"),
        ({"shares": (Share("ana", 3, 8, 4, 12), Share("ben", 1, 1, 1, 13))}, "shares[1].support"),
        ({"options": {"nonsense": 3}}, "options.nonsense"),
    ],
)
def test_bad_settings_are_refused_by_name(name: str, unit: str, change: dict[str, object], field: str) -> None:
    setting = setting_for(name, "a table", unit)
    with pytest.raises(InvalidArgument) as refused:
        MECHANISMS[name].plan(replace(setting, **change))  # type: ignore[arg-type]
    assert refused.value.field == field


@every_mechanism
@every_unit
@pytest.mark.parametrize("field", ["data_budget", "analyst_budget"])
def test_a_delta_below_the_truncation_of_samplers_is_refused(name: str, unit: str, field: str) -> None:
    setting = setting_for(name, "a table", unit)
    with pytest.raises(BudgetExhausted, match=f"^{field}: .*delta"):
        MECHANISMS[name].plan(replace(setting, **{field: Budget(1.0, 4e-18)}))  # type: ignore[arg-type]


@every_mechanism
@every_unit
def test_a_budget_too_small_for_anything_is_refused(name: str, unit: str) -> None:
    setting = replace(setting_for(name, "a table", unit), data_budget=Budget(1e-9, 1e-15))
    with pytest.raises(BudgetExhausted, match=r"data_budget|both budgets"):
        MECHANISMS[name].plan(setting)


@pytest.mark.thin(2)
@pytest.mark.slow
@every_mechanism
@every_unit
@pytest.mark.parametrize(
    "change",
    [
        {"universe_size": 2**40, "attributes": (2**10,) * 4},
        {"records": 2**40 - 1},
        {"data_budget": Budget(1e-5, 1e-9)},
        {"data_budget": Budget(50.0, 0.5)},
        {"beta": 0.99},
    ],
    ids=["universe", "records", "small budget", "large budget", "large beta"],
)
def test_at_the_ends_a_plan_is_made_or_refused_by_name(name: str, unit: str, change: dict[str, object]) -> None:
    setting = replace(setting_for(name, "a table", unit), **change)  # type: ignore[arg-type]
    refused, plan = "", None
    try:
        plan = MECHANISMS[name].plan(setting)
    except (InvalidArgument, BudgetExhausted) as refusal:
        refused = refusal.message
    if plan is None:
        assert re.match("(universe_size|records|data_budget|analyst_budget): |.*both budgets", refused)
    else:
        assert epsilon_for(plan.data_cost, setting.data_budget.delta) <= setting.data_budget.epsilon
        assert 0 < plan.max_half_width <= 1
