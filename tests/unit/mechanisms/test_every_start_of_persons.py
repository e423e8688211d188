"""Where persons have several records, every start that a plan offers keeps to their budget, not the first alone."""

from __future__ import annotations

from dataclasses import replace

import pytest
from harness.mechanism_cases import setting_for

from equipoise.model.rounds import MechanismPlan
from equipoise_server.conversion import epsilon_for
from equipoise_server.mechanisms.interface import PublicParameters
from equipoise_server.mechanisms.persons import planned_starts
from equipoise_server.mechanisms.prior.choice import NONE, OWN, Start
from equipoise_server.mechanisms.registry import MECHANISMS


@pytest.mark.parametrize("dear", [0, 1])
def test_a_start_that_costs_persons_more_than_their_budget_is_planned_again(
    dear: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain, setting = MECHANISMS["gaussian"], replace(setting_for("gaussian", "a table", "query"), person_records=4)
    plan = plain.plan

    def starts(_: object, alone: PublicParameters) -> list[Start]:
        """Two plans, one of which takes a quarter more than it was given."""
        budget = alone.data_budget
        larger = replace(alone, data_budget=replace(budget, epsilon=budget.epsilon * 1.25))
        plans: list[MechanismPlan] = [plan(alone), plan(alone)]
        plans[dear] = plan(larger)
        return [Start(OWN, plans[0]), Start(NONE, plans[1])]

    monkeypatch.setattr(type(plain), "starts", starts, raising=False)
    epsilons = [
        epsilon_for(start.plan.data_cost, setting.data_budget.delta) for start in planned_starts(plain, setting)
    ]
    assert len(epsilons) == 2
    assert 0.9 * setting.data_budget.epsilon < max(epsilons) <= setting.data_budget.epsilon
