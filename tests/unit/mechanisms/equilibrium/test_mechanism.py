"""`equilibrium` as a whole: promises kept, accuracy that a dead game does not have, replay, refusals."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from harness.answers import to_bytes
from harness.instance import (
    SEED,
    Instance,
    instance,
    silent,
    synopsis_answers,
    true_answers,
    uniform_answers,
)

from equipoise.errors import BudgetExhausted, EquipoiseError, InvalidArgument
from equipoise.model.accounts import Budget
from equipoise.model.results import Answers
from equipoise.model.rounds import Share
from equipoise_server.conversion import epsilon_for
from equipoise_server.datasets.dense_counts import DenseCounts
from equipoise_server.game.equilibrium import Game
from equipoise_server.mechanisms.equilibrium.parameters import EquilibriumParameters
from equipoise_server.mechanisms.interface import Outcome
from equipoise_server.mechanisms.registry import mechanism
from equipoise_server.mechanisms.repair.statement_repair import SCORE_BITS, SynopsisCounts, score

pytestmark = pytest.mark.slow


def run(case: Instance) -> Outcome:
    """One run with the fixed seed."""
    return mechanism("equilibrium").run(
        case.setting,
        case.plan,
        DenseCounts(case.histogram, case.setting.attributes),
        case.workloads,
        SEED,
        silent,
    )


def largest_error(case: Instance, outcome: Outcome) -> float:
    """Of the synopsis, before repair."""
    return max(
        float(np.abs(synopsis_answers(case, name, outcome.synopsis) - true_answers(case, name)).max())
        for name in case.workloads
    )


def uniform_error(case: Instance) -> float:
    """Of the uniform guess."""
    return max(
        float(np.abs(uniform_answers(case, name) - true_answers(case, name)).max()) for name in case.workloads
    )


def is_accurate(case: Instance, outcome: Outcome) -> bool:
    """What the demo requires: the synopsis is at most half as wrong as the uniform guess, all is certified."""
    certified = all((answers.methods != 5).all() for answers in outcome.answers.values())
    return certified and largest_error(case, outcome) <= uniform_error(case) / 2


def within_intervals(case: Instance, answers: dict[str, Answers]) -> bool:
    """Whether every truth lies in its answer's interval."""
    return not any(answer.misses(true_answers(case, name)).any() for name, answer in answers.items())


@pytest.mark.thin(2)
@pytest.mark.slow
@pytest.mark.parametrize("play", ["mixed", "sampled"])
def test_the_game_learns_and_keeps_its_promises(play: str) -> None:
    case = instance(play=play)
    outcome = run(case)
    assert is_accurate(case, outcome)
    assert within_intervals(case, dict(outcome.answers))
    for name, share in zip(case.workloads, case.setting.shares, strict=True):
        assert len(outcome.answers[name].values) == share.queries


def test_a_dead_game_fails() -> None:
    case = instance(data_rate=0)
    assert not is_accurate(case, run(case))


def test_a_query_player_with_the_printed_sign_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    payoff = Game.payoff
    monkeypatch.setattr(Game, "payoff", lambda game, cells: -payoff(game, cells))
    case = instance()
    assert not is_accurate(case, run(case))


def test_the_same_seed_gives_the_same_bytes_and_another_seed_others() -> None:
    case = instance(analysts=2, predicates=60)
    plan, equilibrium = case.plan, mechanism("equilibrium")
    first, again, other = (
        equilibrium.run(
            case.setting, plan, DenseCounts(case.histogram, case.setting.attributes), case.workloads, seed, silent
        )
        for seed in (SEED, SEED, bytes(32))
    )
    for name in case.workloads:
        assert to_bytes(first.answers[name]) == to_bytes(again.answers[name])
    assert first.synopsis.cells.tobytes() == again.synopsis.cells.tobytes()
    assert first.synopsis.cells.tobytes() != other.synopsis.cells.tobytes()


def test_an_absent_analyst_changes_only_its_own_stream() -> None:
    case = instance(analysts=3, predicates=60)
    present = {name: workload for name, workload in case.workloads.items() if name != "analyst-1"}
    outcome = mechanism("equilibrium").run(
        case.setting, case.plan, DenseCounts(case.histogram, case.setting.attributes), present, SEED, silent
    )
    assert set(outcome.answers) == set(present)


@pytest.mark.full
@pytest.mark.slow
def test_hrus_own_play_runs_and_learns() -> None:
    case = instance(play="hru", rounds=300)
    case = replace(case, setting=replace(case.setting, analyst_budget=Budget(30.0, 1e-4)))
    outcome = run(case)
    assert len(outcome.synopsis) == 300
    assert within_intervals(case, dict(outcome.answers))
    assert largest_error(case, outcome) < 0.9 * uniform_error(case)


@pytest.mark.parametrize("play", ["mixed", "sampled"])
def test_a_plan_keeps_to_both_budgets_and_can_be_read_back(play: str) -> None:
    case = instance(play=play)
    plan = case.plan
    assert epsilon_for(plan.data_cost, case.setting.data_budget.delta) <= case.setting.data_budget.epsilon
    assert (
        epsilon_for(plan.charged_analyst_cost, case.setting.analyst_budget.delta)
        <= case.setting.analyst_budget.epsilon
    )
    parameters = EquilibriumParameters.from_json(plan.parameters)
    assert parameters.to_json() == plan.parameters
    assert parameters.played.play == play
    assert json.loads(plan.parameters)["repair"]["cut_offs"].keys() == case.workloads.keys()


def test_places_for_everybody_and_a_high_threshold_leave_nothing_uncertified() -> None:
    case = instance(analysts=2, predicates=20, cut_off=1000, threshold=1.0)
    assert case.plan.max_uncertified == 0


def test_without_a_place_to_spare_nothing_is_promised_of_the_uncertified() -> None:
    case = instance(analysts=2, predicates=20, cut_off=0, threshold=1.0, density=1.0, data_rate=1e-3)
    assert case.plan.max_uncertified > 0


@pytest.mark.thin(2)
@pytest.mark.slow
@pytest.mark.parametrize("epsilon", [0.1, 0.2, 1.1])
def test_sampled_play_fits_a_budget_that_is_no_whole_number_of_units(epsilon: float) -> None:
    case = instance(play="sampled")
    setting = replace(case.setting, analyst_budget=Budget(epsilon, 1e-6))
    cost = mechanism("equilibrium").plan(setting).charged_analyst_cost
    assert epsilon_for(cost, 1e-6) <= epsilon


def test_scores_are_exact_at_the_largest_sizes() -> None:
    records, size = 2**40 - 1, 2**22
    counts = np.array([0, records, 12345, records // 2])
    drawn = np.array([size, 0, 777, size // 2 - 1])
    exact = [
        abs((int(count) << SCORE_BITS) - (2 * (records << SCORE_BITS) * int(seen) + size) // (2 * size))
        for count, seen in zip(counts, drawn, strict=True)
    ]
    assert score(counts, records, SynopsisCounts(drawn, size)).tolist() == exact


def test_bounds_never_exceed_one() -> None:
    setting = replace(instance(analysts=2, predicates=10).setting, records=3)
    assert mechanism("equilibrium").plan(setting).max_half_width == 1.0


def test_a_run_refuses_what_was_not_planned() -> None:
    case = instance(analysts=2, predicates=20)
    plan, equilibrium = case.plan, mechanism("equilibrium")
    with pytest.raises(ValueError, match="table"):
        equilibrium.run(
            case.setting,
            plan,
            DenseCounts(case.histogram + 1, case.setting.attributes),
            case.workloads,
            SEED,
            silent,
        )
    smaller = replace(case.setting, shares=tuple(replace(s, queries=s.queries - 1) for s in case.setting.shares))
    with pytest.raises(ValueError, match="share"):
        equilibrium.run(
            smaller, plan, DenseCounts(case.histogram, smaller.attributes), case.workloads, SEED, silent
        )
    moved = {name: workload.l1_sensitivity for name, workload in case.workloads.items()}
    steadier = tuple(replace(s, sensitivity=moved[s.analyst] - 1) for s in case.setting.shares)
    with pytest.raises(ValueError, match="share"):
        equilibrium.run(
            replace(case.setting, shares=steadier),
            plan,
            DenseCounts(case.histogram, replace(case.setting, shares=steadier).attributes),
            case.workloads,
            SEED,
            silent,
        )


def test_options_force_single_parameters() -> None:
    game = EquilibriumParameters.from_json(instance(rounds=10, batch=3, density=7).plan.parameters).played
    assert (game.rounds, game.batch, game.density) == (10, 3, 7.0)


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"unit": "table"}, "unit"),
        ({"options": {"repair_rounds": 4}}, "options.repair_rounds"),
        ({"shares": ()}, "shares"),
        ({"shares": (Share("a", 0, 0),)}, "shares[0].statements"),
        ({"shares": (Share("a", 1, 1),)}, "shares"),
        ({"data_budget": Budget(0.0, 1e-9)}, "data_budget"),
        ({"data_budget": Budget(float("nan"), 1e-9)}, "data_budget"),
        ({"analyst_budget": Budget(1.0, 1.0)}, "analyst_budget"),
        ({"beta": 0.0}, "beta"),
        ({"records": 0}, "records"),
        ({"options": {"play": "chess"}}, "options.play"),
        ({"options": {"play": "hru", "batch": 2}}, "options.batch"),
        ({"options": {"play": "hru", "draws": 2}}, "options.draws"),
        ({"options": {"speed": 3}}, "options.speed"),
        ({"options": {"rounds": 2.5}}, "options.rounds"),
        ({"options": {"data_rate": float("inf")}}, "options.data_rate"),
        ({"options": {"density": 1e9}}, "options"),
        ({"options": {"rounds": 0}}, "options.rounds"),
        ({"options": {"batch": 0}}, "options.batch"),
        ({"options": {"play": "sampled", "draws": 0}}, "options.draws"),
        ({"options": {"batch": 10**400}}, "options.batch"),
        ({"options": {"density": float("nan")}}, "options.density"),
        ({"options": {"query_rate": 1e308}}, "options.query_rate"),
        ({"options": {"data_rate": True}}, "options.data_rate"),
        ({"options": {"threshold": 1.5}}, "options.threshold"),
        ({"options": {"cut_off": 0.5}}, "options.cut_off"),
        ({"options": {"play": "sampled", "rounds": 2**17, "draws": 2**20}}, "options"),
        ({"beta": 5e-324}, "beta"),
    ],
)
def test_bad_settings_are_refused_by_name(change: dict[str, object], field: str) -> None:
    case = instance(analysts=2, predicates=10)
    with pytest.raises(InvalidArgument) as refused:
        mechanism("equilibrium").plan(replace(case.setting, **change))  # type: ignore[arg-type]
    assert refused.value.field == field


@pytest.mark.parametrize(
    "options", [{"data_rate": 4, "rounds": 100}, {"query_rate": 0.7, "rounds": 400, "batch": 64}]
)
def test_a_forced_game_beyond_the_budget_is_refused(options: dict[str, object]) -> None:
    case = instance(analysts=2, predicates=30, records=2000, **options)
    with pytest.raises(BudgetExhausted):
        _ = case.plan


def test_a_budget_too_small_for_anything_is_refused() -> None:
    case = instance(analysts=2, predicates=10)
    tiny = replace(case.setting, data_budget=Budget(1e-9, 1e-15))
    with pytest.raises(EquipoiseError):
        mechanism("equilibrium").plan(tiny)


def test_unknown_mechanisms_are_refused() -> None:
    with pytest.raises(InvalidArgument, match="unknown"):
        mechanism("oracle")
