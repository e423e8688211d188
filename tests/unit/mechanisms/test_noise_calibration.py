"""Which noise answers afresh: chosen by its reach, forced by an option, charged for what it is."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from dp_accounting.privacy_accountant import NeighboringRelation
from dp_accounting.rdp import RdpAccountant
from harness.instance import SEED, instance, silent, true_answers

from equipoise import accounting
from equipoise.errors import InvalidArgument
from equipoise_server.conversion import ORDERS, epsilon_for, event_of
from equipoise_server.datasets.dense_counts import DenseCounts
from equipoise_server.mechanisms.answers import standard_error_on_grid
from equipoise_server.mechanisms.equilibrium.cost_model import Size
from equipoise_server.mechanisms.equilibrium.parameters import EquilibriumParameters
from equipoise_server.mechanisms.noise_calibration import (
    NOISE,
    AnswerNoise,
    GaussianNoise,
    LaplaceNoise,
)
from equipoise_server.mechanisms.registry import mechanism
from equipoise_server.mechanisms.repair.statement_repair import RepairParameters
from equipoise_server.mechanisms.repair.statement_repair_plan import choose_noise, repair_data_cost


def repair_of(parameters: str) -> RepairParameters:
    read = EquilibriumParameters.from_json(parameters)
    assert read.to_json() == parameters
    repair = read.repair
    assert isinstance(repair, RepairParameters)
    return repair


@pytest.mark.parametrize("rho", [Fraction(1, 7), Fraction(3, 10**9), Fraction(5, 10**17), Fraction(40)])
def test_noise_costs_what_it_may(rho: Fraction) -> None:
    for noise in (GaussianNoise.within(rho), LaplaceNoise.within(rho)):
        assert rho * Fraction(99, 100) < noise.rho(1) <= rho
        assert noise.rho(12) == 12 * noise.rho(1)


@pytest.mark.parametrize("noise", [LaplaceNoise(Fraction(3, 2**40)), GaussianNoise(Fraction(7, 2**20))])
def test_noise_reads_back(noise: AnswerNoise) -> None:
    assert NOISE.from_text(NOISE.to_text(noise), "the noise") == noise


@pytest.mark.slow
def test_the_law_that_reaches_less_far_is_chosen() -> None:
    setting = instance().setting
    noise, half_widths = choose_noise(setting, Fraction(1, 10**4), 1e-6)
    assert isinstance(noise, GaussianNoise)
    forced, larger = choose_noise(replace(setting, options={"answers": "laplace"}), Fraction(1, 10**4), 1e-6)
    assert isinstance(forced, LaplaceNoise)
    assert half_widths[0] < larger[0]
    assert half_widths[1] < larger[1]
    # Where a bound need hold for hardly more than half of the answers, Laplace noise reaches less far.
    assert isinstance(choose_noise(setting, Fraction(1, 10**4), 0.6)[0], LaplaceNoise)


@pytest.mark.thin(2)
@pytest.mark.slow
@pytest.mark.parametrize(("answers", "method"), [("laplace", 2), ("gaussian", 3)])
def test_answers_say_how_they_were_made_and_keep_to_their_intervals(answers: str, method: int) -> None:
    case = instance(analysts=4, answers=answers, threshold=0.0)
    plan = case.plan
    repair = repair_of(plan.parameters)
    assert repair.noise.name == answers
    outcome = mechanism("equilibrium").run(
        case.setting, plan, DenseCounts(case.histogram, case.setting.attributes), case.workloads, SEED, silent
    )
    for analyst, given in outcome.answers.items():
        noisy = given.methods == method
        assert np.any(noisy)
        assert not np.any(given.methods == 5 - method)
        assert not given.misses(true_answers(case, analyst)).any()
        uncut = noisy & (given.lows > 0) & (given.highs < 1 << 40)
        assert set((given.highs - given.values)[uncut].tolist()) <= set(repair.noise_half_widths)
        errors = {
            standard_error_on_grid(repair.noise.law(moved).variance, case.setting.records) for moved in (1, 2)
        }
        assert set(given.standard_errors[noisy].tolist()) <= errors


@pytest.mark.slow
@pytest.mark.parametrize("answers", ["laplace", "gaussian"])
def test_every_place_is_charged(answers: str) -> None:
    case = instance(analysts=4, answers=answers)
    plan = case.plan
    repair = repair_of(plan.parameters)
    places = sum(repair.cut_offs.values())
    size = Size.of(case.setting)
    parts, _ = repair_data_cost(repair, size)
    expected = accounting.sparse_vector_rho(repair.test_epsilon, places) + repair.noise.rho(places)
    assert sum(part.amounts()[0] for part in parts) == expected
    dearer = replace(repair, noise=type(repair.noise).within(2 * repair.noise.rho(1)))
    assert sum(part.amounts()[0] for part in repair_data_cost(dearer, size)[0]) > expected
    # The round's cost is what the published parts add up to.
    published = accounting.events_from_json(plan.data_events)
    assert accounting.charge_of(published) == plan.data_cost
    assert [part.name for part in published] == ["game", "detection", "answers", "samplers"]
    assert list(published[1:3]) == parts
    assert accounting.charge_of(accounting.events_from_json(plan.analyst_events)) == plan.analyst_cost


@pytest.mark.slow
@pytest.mark.parametrize(
    ("answers", "play"), [("gaussian", "mixed"), ("laplace", "mixed"), ("gaussian", "sampled")]
)
def test_what_a_plan_exports_is_what_it_charges(answers: str, play: str) -> None:
    plan = instance(answers=answers, play=play).plan
    assert plan.analyst_cost is not None
    for events, cost, delta in (
        (plan.data_events, plan.data_cost, 1 / 200_000**2),
        (plan.analyst_events, plan.analyst_cost, 1e-6),
    ):
        event, epsilon, apart = event_of(accounting.events_from_json(events))
        accountant = RdpAccountant(ORDERS, NeighboringRelation.REPLACE_ONE).compose(event)
        recomputed = epsilon + accountant.get_epsilon(delta - apart)
        assert recomputed == pytest.approx(epsilon_for(cost, delta), rel=1e-6)


@pytest.mark.slow
def test_a_round_without_places_is_charged_for_none() -> None:
    plan = instance(analysts=3, cut_off=0).plan
    published = accounting.events_from_json(plan.data_events)
    assert accounting.charge_of(published) == plan.data_cost
    assert [part.amounts()[0] for part in published[1:]] == [0, 0, 0]


def test_nonsense_is_refused() -> None:
    with pytest.raises(InvalidArgument, match=r"options\.answers"):
        _ = instance(analysts=3, answers="normal").plan
    case = instance(analysts=3, answers="gaussian")
    with pytest.raises(InvalidArgument, match=r"options\.answers"):
        _ = replace(case, setting=replace(case.setting, unit="analyst")).plan
