"""`equilibrium` with whole analysts protected: it learns, keeps its promises, replays, and refuses by name."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from harness.answers import half_widths, to_bytes
from harness.instance import (
    SCHEMA,
    SEED,
    Instance,
    instance,
    silent,
    synopsis_answers,
    true_answers,
    uniform_answers,
)

from equipoise.errors import BudgetExhausted, InvalidArgument
from equipoise.model.accounts import Budget
from equipoise.model.results import Answers
from equipoise.model.rounds import Share
from equipoise.queries.workload_compiler import compile_workload
from equipoise_server.conversion import epsilon_for
from equipoise_server.datasets.dense_counts import DenseCounts
from equipoise_server.mechanisms.equilibrium.cost_model import Size, game_bound
from equipoise_server.mechanisms.equilibrium.parameters import EquilibriumParameters
from equipoise_server.mechanisms.interface import GRID_BITS, Outcome
from equipoise_server.mechanisms.registry import mechanism
from equipoise_server.mechanisms.repair.analyst_repair import MULTIPLICATIVE_WEIGHTS, AnalystRepairParameters
from equipoise_server.mechanisms.repair.analyst_repair_plan import uncertified_queries
from equipoise_server.mechanisms.repair.repair_places import RepairPlaces
from equipoise_server.mechanisms.repair.statement_repair import SCORE_BITS, SYNOPSIS, UNCERTIFIED

pytestmark = pytest.mark.slow


def protected(analysts: int, predicates: int, epsilon: float, **options: object) -> Instance:
    """The instance with unit = analyst."""
    case = instance(analysts, predicates, 200_000, **options)
    return replace(case, setting=replace(case.setting, unit="analyst", analyst_budget=Budget(epsilon, 1e-6)))


def run(case: Instance, seed: bytes = SEED) -> Outcome:
    """One run."""
    return mechanism("equilibrium").run(
        case.setting,
        case.plan,
        DenseCounts(case.histogram, case.setting.attributes),
        case.workloads,
        seed,
        silent,
    )


def repair_of(case: Instance) -> AnalystRepairParameters:
    """The planned repair."""
    repair = EquilibriumParameters.from_json(case.plan.parameters).repair
    assert isinstance(repair, AnalystRepairParameters)
    return repair


def error(case: Instance, name: str, answers: Answers) -> float:
    """The largest true error of one analyst's answers."""
    return float(np.abs(answers.values / 2.0**GRID_BITS - true_answers(case, name)).max())


def learns(case: Instance, outcome: Outcome) -> bool:
    """The synopsis, before repair, is at most half as wrong as the uniform guess."""
    truth = {name: true_answers(case, name) for name in case.workloads}
    synopsis = max(np.abs(synopsis_answers(case, n, outcome.synopsis) - truth[n]).max() for n in truth)
    uniform = max(np.abs(uniform_answers(case, n) - truth[n]).max() for n in truth)
    return bool(synopsis <= uniform / 2)


def check_intervals(case: Instance, answers: Mapping[str, Answers], largest: float) -> None:
    """Every truth lies in its answer's interval, and no half-width exceeds what was promised."""
    for name, answer in answers.items():
        assert not answer.misses(true_answers(case, name)).any()
        assert half_widths(answer).max(initial=0) <= largest


@pytest.mark.nightly
@pytest.mark.slow
@pytest.mark.parametrize("play", ["mixed", "sampled"])
def test_the_game_learns_and_keeps_its_promises(play: str) -> None:
    case = protected(600, 2, 20.0 if play == "sampled" else 12.0, play=play)
    outcome = run(case)
    assert learns(case, outcome) or play == "sampled"  # which needs more analysts for it
    check_intervals(case, outcome.answers, case.plan.max_half_width)
    methods = [set(answers.methods.tolist()) for answers in outcome.answers.values()]
    assert all(len(each) == 1 for each in methods)  # an analyst is answered in one way
    assert sum(each == {SYNOPSIS} for each in methods) > 300


@pytest.mark.nightly
def test_a_dead_game_fails() -> None:
    case = protected(600, 2, 12.0, data_rate=0, rounds=60)
    assert not learns(case, run(case))


@pytest.mark.nightly
def test_badly_served_analysts_are_answered_afresh() -> None:
    case = protected(20, 8, 4.0, threshold=0.05)
    assert repair_of(case).places.epsilon == 0  # so few analysts: places for all, and nothing to hide
    outcome = run(case)
    check_intervals(case, outcome.answers, case.plan.max_half_width)
    afresh = [name for name, each in outcome.answers.items() if (each.methods == MULTIPLICATIVE_WEIGHTS).all()]
    assert len(afresh) >= 15
    for name in afresh:
        before = np.abs(synopsis_answers(case, name, outcome.synopsis) - true_answers(case, name)).max()
        assert error(case, name, outcome.answers[name]) < before / 2


@pytest.mark.full
def test_places_run_out_and_the_rest_is_uncertified() -> None:
    case = protected(120, 3, 20.0, threshold=0.05, cut_off=4)
    places = repair_of(case).places
    assert places.target == 4
    assert 4 < places.cap < 120
    outcome = run(case)
    check_intervals(case, outcome.answers, case.plan.max_half_width)
    uncertified = sum(int((each.methods == UNCERTIFIED).sum()) for each in outcome.answers.values())
    afresh = sum(bool((each.methods == MULTIPLICATIVE_WEIGHTS).all()) for each in outcome.answers.values())
    assert 0 < uncertified <= case.plan.max_uncertified
    assert 0 < afresh <= places.cap


@pytest.mark.full
def test_without_places_nobody_is_answered_afresh_and_detection_has_the_whole_budget() -> None:
    case = protected(10, 5, 4.0, threshold=0.05, cut_off=0)
    assert repair_of(case).places.cap == 0
    assert (
        repair_of(case).certified_half_width < repair_of(protected(10, 5, 4.0, threshold=0.05)).certified_half_width
    )
    methods = {int(m) for answers in run(case).answers.values() for m in answers.methods}
    assert methods <= {SYNOPSIS, UNCERTIFIED}


@pytest.mark.thin(4)
@pytest.mark.parametrize("play", ["mixed", "sampled"])
@pytest.mark.parametrize("options", [{}, {"cut_off": 3}])
def test_a_plan_keeps_to_both_budgets_and_can_be_read_back(play: str, options: dict[str, object]) -> None:
    case = protected(120, 2, 8.0, play=play, **options)
    plan, setting = case.plan, case.setting
    assert epsilon_for(plan.data_cost, setting.data_budget.delta) <= setting.data_budget.epsilon
    assert epsilon_for(plan.charged_analyst_cost, setting.analyst_budget.delta) <= setting.analyst_budget.epsilon
    assert EquilibriumParameters.from_json(plan.parameters).to_json() == plan.parameters
    assert json.loads(plan.parameters)["game"]["play"] == play
    if options:  # hiding the places is charged: more than the game alone, and its cap in delta
        assert repair_of(case).places.epsilon > 0
        assert plan.charged_analyst_cost.delta > 10**11


def test_the_data_are_charged_for_the_cap_on_places() -> None:
    """The same game and noise with places for all cost the data as much as every place at its cap."""
    case = protected(120, 2, 8.0, cut_off=3)
    repair = repair_of(case)
    weights = repair.weights
    run_cost = weights.rounds * (weights.select_epsilon**2 / 8 + weights.measure_epsilon**2 / 2)
    answers = repair.places.cap * (run_cost + weights.certify_epsilon**2 / 2)
    tests = 120 * repair.test_epsilon**2 / 2
    assert 0.49 <= float(answers / (answers + tests)) <= 0.51  # half of the repair's budget, at the cap
    assert (answers + tests) * 10**12 <= case.plan.data_cost.rho


@pytest.mark.nightly
def test_the_same_seed_gives_the_same_bytes_and_another_seed_others() -> None:
    case = protected(30, 4, 8.0, threshold=0.05, cut_off=2)
    first, again, other = run(case), run(case), run(case, bytes(32))
    for name in case.workloads:
        assert to_bytes(first.answers[name]) == to_bytes(again.answers[name])
    assert first.synopsis.cells.tobytes() == again.synopsis.cells.tobytes()
    assert first.synopsis.cells.tobytes() != other.synopsis.cells.tobytes()


@pytest.mark.full
def test_absent_analysts_and_empty_workloads_keep_their_places() -> None:
    case = protected(12, 4, 8.0)
    present = {name: each for name, each in case.workloads.items() if name not in ("analyst-1", "analyst-4")}
    present["analyst-7"] = compile_workload([], SCHEMA)
    outcome = mechanism("equilibrium").run(
        case.setting, case.plan, DenseCounts(case.histogram, case.setting.attributes), present, SEED, silent
    )
    assert set(outcome.answers) == set(present)
    assert len(outcome.answers["analyst-7"].values) == 0
    # An empty workload and an absent analyst are the same to everybody else.
    del present["analyst-7"]
    without = mechanism("equilibrium").run(
        case.setting, case.plan, DenseCounts(case.histogram, case.setting.attributes), present, SEED, silent
    )
    assert without.synopsis.cells.tobytes() == outcome.synopsis.cells.tobytes()


@pytest.mark.nightly
@pytest.mark.slow
def test_another_analysts_answers_depend_on_the_synopsis_and_its_place_alone() -> None:
    """With places for all, and a game that learns nothing, one analyst's content moves nobody else's answers."""
    case = protected(6, 4, 4.0, data_rate=0, rounds=40, threshold=0.05)
    changed = dict(case.workloads) | {"analyst-3": case.workloads["analyst-2"]}
    plan = case.plan
    outcomes = [
        mechanism("equilibrium").run(
            case.setting, plan, DenseCounts(case.histogram, case.setting.attributes), each, SEED, silent
        )
        for each in (case.workloads, changed)
    ]
    for name in set(case.workloads) - {"analyst-3"}:
        assert outcomes[0].answers[name].values.tobytes() == outcomes[1].answers[name].values.tobytes()


def test_a_high_threshold_with_places_for_all_leaves_nothing_uncertified() -> None:
    assert protected(4, 5, 4.0, threshold=1.0).plan.max_uncertified == 0


def test_a_threshold_must_clear_the_games_reach_its_noise_and_the_scores_rounding() -> None:
    """At exactly reach + noise a well served analyst may still be tested as badly served, by rounding."""
    case = protected(8, 5, 4.0, threshold=0.5, cut_off=1)
    parameters = EquilibriumParameters.from_json(case.plan.parameters)
    size = Size.of(case.setting)
    repair = replace(repair_of(case), places=RepairPlaces(0, Fraction(0), 0))
    reach = game_bound(parameters.played, size, case.setting.beta / 4) * (case.setting.records << SCORE_BITS)
    edge = math.floor(reach + repair.test_noise.quantile(case.setting.beta / 4 / size.units))

    def uncertified(threshold: int) -> int:
        return uncertified_queries(case.setting, replace(repair, threshold=threshold), parameters.played, size)

    fewer = math.ceil(parameters.played.density) - 1
    assert uncertified(edge + 1) == size.queries
    assert uncertified(edge + 2) == fewer * size.largest_unit < size.queries


@pytest.mark.thin(2)
@pytest.mark.parametrize("unit", ["query", "analyst"])
def test_progress_tells_nothing_of_repair(unit: str) -> None:
    """Its ticks are the same whoever is served badly, and none comes after repair has begun."""
    ticks = []
    for threshold in (0.0, 1.0):
        case = protected(6, 4, 4.0, threshold=threshold, rounds=10, batch=4, data_rate=0.01)
        case = replace(case, setting=replace(case.setting, unit=unit))
        told: list[tuple[str, int, int]] = []
        mechanism("equilibrium").run(
            case.setting,
            case.plan,
            DenseCounts(case.histogram, case.setting.attributes),
            case.workloads,
            SEED,
            lambda *tick, told=told: told.append(tick),
        )
        ticks.append(told)
    assert ticks[0] == ticks[1]
    assert ticks[0][-1] == ("repairing", 0, 1)
    assert [phase for phase, _, _ in ticks[0]].count("repairing") == 1


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"shares": (Share("a", 9, 9),)}, "shares"),
        ({"options": {"repair_rounds": 0}}, "options.repair_rounds"),
        ({"options": {"repair_rounds": 513}}, "options.repair_rounds"),
        ({"options": {"repair_rounds": 1.5}}, "options.repair_rounds"),
        ({"options": {"cut_off": float("nan")}}, "options.cut_off"),
        ({"options": {"speed": 1}}, "options.speed"),
        ({"analyst_budget": Budget(-1.0, 1e-6)}, "analyst_budget"),
    ],
)
def test_bad_settings_are_refused_by_name(change: dict[str, object], field: str) -> None:
    case = protected(3, 4, 4.0)
    with pytest.raises(InvalidArgument) as refused:
        mechanism("equilibrium").plan(replace(case.setting, **change))  # type: ignore[arg-type]
    assert refused.value.field == field


@pytest.mark.parametrize("field", ["data_budget", "analyst_budget"])
def test_budgets_too_small_are_refused(field: str) -> None:
    case = protected(40, 2, 4.0, cut_off=2)
    tiny = replace(case.setting, **{field: Budget(1e-9, 1e-15)})  # type: ignore[arg-type]
    with pytest.raises(BudgetExhausted):
        mechanism("equilibrium").plan(tiny)


def test_hrus_own_play_protects_whole_analysts() -> None:
    case = protected(60, 2, 8.0, play="hru", rounds=60)
    plan = case.plan
    game = EquilibriumParameters.from_json(plan.parameters).played
    assert (game.play, game.rounds, game.batch, game.draws) == ("sampled", 60, 1, 1)
    assert epsilon_for(plan.charged_analyst_cost, 1e-6) <= 8
    outcome = run(case)
    check_intervals(case, outcome.answers, plan.max_half_width)
