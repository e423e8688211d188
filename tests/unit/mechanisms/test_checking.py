"""What every plan is checked against before it is used."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
from harness.mechanism_cases import setting_for

from equipoise.accounting import DELTA_UNIT, RHO_UNIT, Cost
from equipoise.errors import BudgetExhausted
from equipoise_server.mechanisms.checking import check_costs


@pytest.mark.parametrize("field", ["data_budget", "analyst_budget"])
def test_a_plan_costs_no_more_than_either_number_of_its_budget(field: str) -> None:
    setting = setting_for("gaussian", "a table", "query")
    budget = getattr(setting, field)
    delta = math.floor(Fraction(budget.delta) * DELTA_UNIT)
    whole = Cost(epsilon=math.floor(Fraction(budget.epsilon) * RHO_UNIT), delta=delta)
    nothing = Cost()

    def check(cost: Cost) -> None:
        check_costs(setting, *((cost, nothing) if field == "data_budget" else (nothing, cost)))

    check(whole)
    for beyond in (Cost(epsilon=1), Cost(delta=delta // 1000)):
        with pytest.raises(BudgetExhausted, match=f"^{field}: the round would cost more"):
            check(whole + beyond)
