"""Plans over a family of settings: never beyond a budget, and never refused where budgets are ample."""

from __future__ import annotations

from harness.examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from equipoise.accounting import RHO_UNIT
from equipoise.errors import BudgetExhausted, InvalidArgument
from equipoise.model.accounts import Budget
from equipoise.model.rounds import MechanismPlan, Share
from equipoise.queries.universe_size import MAX_UNIVERSE
from equipoise_server.conversion import epsilon_for
from equipoise_server.mechanisms.budget_rounding import usable_rho
from equipoise_server.mechanisms.equilibrium import cost_model
from equipoise_server.mechanisms.equilibrium.cost_model import Size
from equipoise_server.mechanisms.equilibrium.parameters import EquilibriumParameters
from equipoise_server.mechanisms.equilibrium.plan import planned_starts
from equipoise_server.mechanisms.interface import PublicParameters


@st.composite
def settings_of_rounds(draw: st.DrawFn, least_epsilon: float, least_records: int) -> PublicParameters:
    """Any public numbers: both units, every play, repair or none, from two statements to a million."""
    analysts = draw(st.integers(2, 40))
    statements = draw(st.integers(1, 25_000))
    cells = draw(st.sampled_from([1, 1, 7, 300]))
    options: dict[str, object] = {}
    play = draw(st.sampled_from([None, "mixed", "sampled", "hru"]))
    if play is not None:
        options["play"] = play
    share = draw(st.sampled_from([None, None, 0.3, 1.0]))
    if share is not None:
        options["game_share"] = share
    epsilons = st.floats(least_epsilon, 12)
    return PublicParameters(
        records=draw(st.integers(least_records, 10**8)),
        universe_size=draw(st.integers(2, MAX_UNIVERSE)),
        shares=tuple(Share(f"analyst-{i}", statements, statements * cells) for i in range(analysts)),
        unit=draw(st.sampled_from(["query", "analyst"])),
        data_budget=Budget(draw(epsilons), 10.0 ** -draw(st.integers(5, 16))),
        analyst_budget=Budget(draw(epsilons), 10.0 ** -draw(st.integers(4, 12))),
        beta=draw(st.sampled_from([0.05, 1e-4])),
        options=options,
    )


def check_budgets(case: PublicParameters, plan: MechanismPlan) -> None:
    """Both totals by the library's conversion, and the game alone by the exact accounting."""
    data, analyst, size = case.data_budget, case.analyst_budget, Size.of(case)
    assert epsilon_for(plan.data_cost, data.delta) <= data.epsilon
    assert epsilon_for(plan.charged_analyst_cost, analyst.delta) <= analyst.epsilon
    game = EquilibriumParameters.from_json(plan.parameters).played
    assert game.problem(size.records, size.units) is None
    share = cost_model.forced_share(case)
    assert cost_model.data_rho(game, size) * RHO_UNIT <= usable_rho(data) * (share or 1.0)
    assert plan.data_cost.rho >= cost_model.data_rho(game, size) * RHO_UNIT
    assert cost_model.within_budgets(game, size, case, 1.0)


@settings(max_examples=examples(20))
@given(settings_of_rounds(0.01, 1))
def test_no_plan_exceeds_a_budget(case: PublicParameters) -> None:
    try:
        plan = planned_starts("equilibrium", case)[0].plan
    except (BudgetExhausted, InvalidArgument):
        return
    check_budgets(case, plan)


@settings(max_examples=examples(20))
@given(settings_of_rounds(0.5, 10_000))
def test_ample_budgets_are_never_refused(case: PublicParameters) -> None:
    check_budgets(case, planned_starts("equilibrium", case)[0].plan)
