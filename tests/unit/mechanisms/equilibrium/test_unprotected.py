"""Games without the analysts' constraint: chosen from public things, within the data budget, and accurate."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from harness.instance import Instance, instance

from equipoise.errors import InvalidArgument
from equipoise.model.accounts import Budget
from equipoise_server.conversion import epsilon_for
from equipoise_server.mechanisms.equilibrium import cost_model
from equipoise_server.mechanisms.equilibrium.cost_model import Size
from equipoise_server.mechanisms.equilibrium.parameters import EquilibriumParameters
from equipoise_server.mechanisms.equilibrium.unprotected import propose_unprotected


def unprotected(**options: object) -> Instance:
    """Few statements, and no budget for the analysts."""
    case = instance(analysts=2, predicates=50, records=20_000, **options)
    return replace(case, setting=replace(case.setting, analyst_budget=Budget(math.inf, 1e-6)))


@pytest.mark.parametrize("play", ["mixed", "sampled"])
@pytest.mark.parametrize("share", [0.5, 1.0])
def test_a_plan_keeps_to_the_data_budget_and_has_no_cost_for_analysts(play: str, share: float) -> None:
    case = unprotected(play=play, game_share=share)
    plan = case.plan
    budget = case.setting.data_budget
    assert 0.9 * budget.epsilon < epsilon_for(plan.data_cost, budget.delta) <= budget.epsilon
    assert plan.analyst_cost is None
    with pytest.raises(InvalidArgument, match="analyst_budget"):
        _ = plan.charged_analyst_cost
    parameters = EquilibriumParameters.from_json(plan.parameters)
    assert parameters.to_json() == plan.parameters
    assert parameters.played.play == play
    assert (parameters.repair is None) == (share == 1)


def test_units_by_query_are_refused_where_analysts_are_protected() -> None:
    assert Size.of(unprotected(units="query").setting).largest_unit == 1
    _ = unprotected(units="query").plan
    with pytest.raises(InvalidArgument, match="units"):
        _ = instance(analysts=2, predicates=50, units="query").plan


def test_a_game_with_more_budget_is_expected_to_err_less() -> None:
    case = unprotected()
    errors = []
    for epsilon in (0.1, 1.0, 10.0):
        found = propose_unprotected(replace(case.setting, data_budget=Budget(epsilon, 1e-9)), 0.5)
        assert found is not None
        assert found.sketch.density == 1
        errors.append(found.weight)
    assert errors == sorted(errors, reverse=True)


def test_promises_are_never_the_expectation() -> None:
    case = unprotected(game_share=1)
    size = Size.of(case.setting)
    found = propose_unprotected(case.setting, 1.0)
    assert found is not None
    game = EquilibriumParameters.from_json(case.plan.parameters).played
    assert found.weight < cost_model.game_bound(game, size, 0.05)
