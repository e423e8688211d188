"""The search for a game: closed forms near the exact costs, better plans for larger budgets, any size."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from equipoise.accounting import RHO_UNIT
from equipoise.model.accounts import Budget
from equipoise.model.rounds import MechanismPlan, Share
from equipoise_server.conversion import epsilon_for, mixture_delta
from equipoise_server.game.parameters import GameParameters
from equipoise_server.mechanisms.budget_rounding import usable_rho
from equipoise_server.mechanisms.equilibrium import cost_limits, cost_model, forecast, search
from equipoise_server.mechanisms.equilibrium.cost_model import Size
from equipoise_server.mechanisms.equilibrium.forecast import Numbers, Sketch, expected_error, expected_game_error
from equipoise_server.mechanisms.equilibrium.parameters import EquilibriumParameters
from equipoise_server.mechanisms.equilibrium.plan import planned_starts
from equipoise_server.mechanisms.interface import PublicParameters

PLAYS = ("mixed", "sampled", "hru")


def setting(statements: int = 20_000, epsilon_data: float = 1.0, epsilon_analyst: float = 1.0) -> PublicParameters:
    """Ten analysts with as many predicates each; the game has the whole data budget."""
    return PublicParameters(
        records=50_000,
        universe_size=300_000,
        shares=tuple(Share(f"analyst-{i}", statements // 10, statements // 10) for i in range(10)),
        unit="query",
        data_budget=Budget(epsilon_data, 1e-10),
        analyst_budget=Budget(epsilon_analyst, 1e-6),
        beta=0.05,
        options={"game_share": 1.0},
    )


def forcing(case: PublicParameters, **options: object) -> PublicParameters:
    return replace(case, options={**case.options, **options})


def game_of(plan: MechanismPlan) -> GameParameters:
    return EquilibriumParameters.from_json(plan.parameters).played


def one(number: float) -> Numbers:
    return np.array([float(number)])


def expected(case: PublicParameters, play: str) -> float:
    """What the settled game of one play is expected to err."""
    game = game_of(planned_starts("equilibrium", forcing(case, play=play))[0].plan)
    return expected_game_error(game, Size.of(case))


@pytest.mark.parametrize("play", ["mixed", "sampled"])
@pytest.mark.parametrize("statements", [100, 20_000, 1_000_000])
def test_closed_forms_are_near_the_exact_costs_of_many_rounds(play: str, statements: int) -> None:
    case = setting(statements)
    size, density, records, actions = Size.of(case), 0.4 * statements, 8000.0, 12_000.0
    data_rho, analyst_rho = 0.01, 0.02
    if play == "mixed":
        data_travel = cost_limits.mixed_data_travel(one(records), one(density), analyst_rho, size)
        query_travel = cost_limits.mixed_query_travel(one(records), data_travel, data_rho, size)
    else:
        # `N (E_D/K)^2 / 2` is the rho of one differing draw.
        differing = cost_limits.rho_of_one(one(actions), one(density), 1.0, 1e-6, size)
        data_travel = actions * np.sqrt(2 * differing / records)
        query_travel = cost_limits.sampled_query_travel(one(actions), data_rho, size)
    rounds = 2000
    sampled = play == "sampled"
    draws = 6 if sampled else 1
    game = cost_model.with_steps(
        GameParameters("sampled" if sampled else "mixed", rounds, 4, draws, density, 1, 1),
        float(query_travel[0]) / rounds,
        float(data_travel[0]) / rounds,
        size.records,
    )
    assert cost_model.data_rho(game, size) == pytest.approx(data_rho, rel=0.01)
    if play == "mixed":
        assert cost_model.analyst_rho(game, size) == pytest.approx(analyst_rho, rel=0.01)
    else:
        # A little more or less of the rate is the difference between too much and too little.
        for change, fits in ((0.97, True), (1.03, False)):
            other = replace(game, data_step=int(game.data_step * change))
            assert (mixture_delta(cost_model.analyst_mixture(other, size), 1.0) <= 1e-6) == fits


@pytest.mark.thin(3)
@pytest.mark.parametrize("play", PLAYS)
@pytest.mark.parametrize("statements", [50, 20_000])
def test_analysts_who_allow_more_are_expected_to_get_more(play: str, statements: int) -> None:
    errors = [expected(setting(statements, 1.0, epsilon), play) for epsilon in (0.25, 1.0, 2.0, 4.0, 8.0)]
    assert errors == sorted(errors, reverse=True)
    assert errors[-1] < errors[0]


@pytest.mark.slow
@pytest.mark.parametrize("play", PLAYS)
def test_data_that_allow_more_are_expected_to_give_more(play: str) -> None:
    errors = [expected(setting(20_000, epsilon, 2.0), play) for epsilon in (0.05, 0.2, 1.0, 4.0)]
    assert errors == sorted(errors, reverse=True)
    assert errors[-1] < errors[0]


@pytest.mark.slow
def test_the_planner_takes_the_play_that_is_expected_to_err_less() -> None:
    taken = set()
    for statements, epsilon in ((20_000, 1.0), (1_000_000, 4.0)):
        case = setting(statements, 1.0, epsilon)
        game = game_of(planned_starts("equilibrium", case)[0].plan)
        better = min(("mixed", "sampled"), key=lambda play, case=case: expected(case, play))  # type: ignore[misc]
        assert game.play == better
        taken.add(better)
    assert taken == {"mixed", "sampled"}


@pytest.mark.slow
@pytest.mark.sparse(4)
@pytest.mark.thin(4)
@pytest.mark.parametrize("unit", ["query", "analyst"])
@pytest.mark.parametrize("play", [None, *PLAYS])
def test_the_largest_sizes_are_planned_within_both_budgets(unit: str, play: str | None) -> None:
    case = replace(
        setting(),
        records=2**36,
        universe_size=2**26,
        shares=tuple(Share(f"analyst-{i}", 1_000_000, 1_000_000) for i in range(1000)),
        unit=unit,
        data_budget=Budget(1.0, 1e-17),
        options={} if play is None else {"play": play},
    )
    plan = planned_starts("equilibrium", case)[0].plan
    assert epsilon_for(plan.data_cost, 1e-17) <= 1
    assert epsilon_for(plan.charged_analyst_cost, 1e-6) <= 1


@pytest.mark.parametrize("play", PLAYS)
def test_a_plan_spends_what_it_may(play: str) -> None:
    """Where both budgets bind a game that spends less could learn more."""
    case = forcing(setting(), play=play)
    plan = planned_starts("equilibrium", case)[0].plan
    assert 0.85 < epsilon_for(plan.charged_analyst_cost, 1e-6) <= 1
    if play != "hru":  # HRU's own play is cut short by the time it takes
        assert 0.99 < epsilon_for(plan.data_cost, 1e-10) <= 1


@pytest.mark.parametrize("play", PLAYS)
def test_no_game_takes_longer_than_the_cap(play: str) -> None:
    case = forcing(setting(1_000_000, 4.0, 8.0), play=play)
    size = Size.of(case)
    game = game_of(planned_starts("equilibrium", case)[0].plan)
    assert forecast.predicted_seconds(game, size) < search.MAX_SECONDS + 2 + 1e-5 * size.queries


def test_hrus_own_play_has_one_record_and_one_action_a_round() -> None:
    case = forcing(setting(), play="hru")
    game = game_of(planned_starts("equilibrium", case)[0].plan)
    assert (game.play, game.batch, game.draws) == ("sampled", 1, 1)
    assert game.rounds > 100
    forced = game_of(planned_starts("equilibrium", forcing(case, rounds=77))[0].plan)
    assert (forced.rounds, forced.batch, forced.draws) == (77, 1, 1)


def test_settling_cuts_a_proposal_that_costs_too_much() -> None:
    case, size = setting(), Size.of(setting())
    for play in PLAYS:
        found = search.propose(case, play, 1.0, 4.0, lambda sketch: expected_error(sketch, size))
        assert found is not None
        sketch = replace(found.sketch, data_travel=4 * found.sketch.data_travel)
        game = search.settle(replace(found, sketch=sketch), case, 1.0)
        assert game is not None
        assert cost_model.within_budgets(game, size, case, 1.0)
        assert cost_model.data_rho(game, size) * RHO_UNIT <= usable_rho(case.data_budget)


def test_the_expectation_falls_in_everything_that_helps() -> None:
    size = Size.of(setting())
    base = Sketch(one(500), one(50_000), one(5000), one(200), one(30))
    for better in (
        replace(base, records=one(2000)),
        replace(base, actions=one(math.inf)),
        replace(base, query_travel=one(60)),
        replace(base, density=one(50)),
        replace(base, data_travel=one(400), actions=one(math.inf)),
    ):
        assert expected_error(better, size) < expected_error(base, size)


@pytest.mark.parametrize("epsilon_analyst", [2.0, math.inf])
@pytest.mark.parametrize("play", [None, *PLAYS])
def test_what_is_forced_is_what_is_played(play: str | None, epsilon_analyst: float) -> None:
    forced = {"rounds": 30, "density": 123.5} | ({} if play is None else {"play": play})
    game = game_of(planned_starts("equilibrium", forcing(setting(1000, 1.0, epsilon_analyst), **forced))[0].plan)
    assert (game.rounds, game.density) == (30, 123.5)
    if play is not None:
        assert game.play == ("mixed" if play == "mixed" else "sampled")


def test_a_game_alone_leaves_nothing_of_the_analysts_budget_to_repair_places() -> None:
    case = replace(setting(1000, 1.0, 2.0), unit="analyst")
    plan = planned_starts("equilibrium", forcing(case, play="mixed"))[0].plan
    assert plan.analyst_cost is not None
    assert epsilon_for(plan.analyst_cost, case.analyst_budget.delta) > 0.95 * 2.0
