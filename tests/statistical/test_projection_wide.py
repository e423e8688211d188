"""`projection` where possible records cannot be listed: what it draws, what that costs, and what intervals hold."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from harness.answers import flat, misses_shortened
from harness.wide_tables import SCHEMA, SIZES, small_supports, wide_table
from scipy.stats import binom

from equipoise.accounting import charge_of, events_from_json
from equipoise.model.accounts import Budget
from equipoise.model.results import AnswerMethod
from equipoise.model.rounds import Share
from equipoise.queries.predicates import attribute
from equipoise.queries.statements import Marginal
from equipoise.queries.workload_compiler import CompiledWorkload, compile_workload
from equipoise_server.mechanisms.independent_noise.mechanism import GAUSSIAN
from equipoise_server.mechanisms.independent_noise.plan import NoiseParameters
from equipoise_server.mechanisms.interface import Outcome, PublicParameters
from equipoise_server.mechanisms.projection import own_tables
from equipoise_server.mechanisms.projection.mechanism import Projection
from equipoise_server.mechanisms.projection.own_tables import own_noises, own_rho

RECORDS, BETA, RUNS, FALSE_ALARM = 2_000, 0.2, 60, 1e-9
PAIRS = [Marginal(names) for names in itertools.combinations(SCHEMA.names[:6], 2)]
ASKED = {
    "pairs": compile_workload(PAIRS, SCHEMA),
    "triple": compile_workload([Marginal(("x1", "x5", "x9"))], SCHEMA),
    "mixed": compile_workload([Marginal(("x2", "x3")), attribute("x4") == "1"], SCHEMA),
}


def setting_of(asked: Mapping[str, CompiledWorkload], epsilon: float = 1.0) -> PublicParameters:
    return PublicParameters(
        records=RECORDS,
        universe_size=math.prod(SIZES),
        shares=tuple(Share(name, own.statement_count, own.query_count) for name, own in asked.items()),
        unit="analyst",
        data_budget=Budget(epsilon, 1e-6),
        analyst_budget=Budget(1.0, 1e-6),
        beta=BETA,
        options={},
        attributes=SIZES,
    )


def run(setting: PublicParameters, asked: Mapping[str, CompiledWorkload], number: int) -> Outcome:
    with small_supports(1_000):
        plan = Projection().plan(setting)
        return Projection().run(setting, plan, wide_table(RECORDS), asked, number.to_bytes(32), lambda *_: None)


def parameters_of(setting: PublicParameters) -> NoiseParameters:
    return NoiseParameters.from_json(Projection().plan(setting).parameters)


def all_parts_cost_what_is_charged() -> bool:
    """The parts of all analysts sum to the round's rho, and no analyst's residuals cost more than its part."""
    setting = setting_of(ASKED)
    plan, parameters = Projection().plan(setting), parameters_of(setting)
    noises = own_noises(setting, parameters, ASKED)
    parts = {name: own_rho(parameters, setting, name) for name in ASKED}
    charged = Fraction(charge_of(events_from_json(plan.data_events)).rho, 10**12)
    paid = sum(parts.values())
    return paid <= charged <= paid * Fraction(1001, 1000) and all(
        Fraction(noise.rho()) <= parts[name] for name, noise in noises.items()
    )


def intervals_hold(part: float = 1.0) -> bool:
    """In no more of the rounds than `BETA` allows, for all answers at once, with intervals cut to a part."""
    table, broken = wide_table(RECORDS), 0
    for number in range(RUNS):
        outcome = run(setting_of(ASKED), ASKED, number)
        broken += any(
            bool(misses_shortened(answers, table.count(ASKED[name]) / RECORDS, part).any())
            for name, answers in outcome.answers.items()
        )
    return broken <= binom.isf(FALSE_ALARM, RUNS, BETA)


def test_whole_tables_are_told_by_residuals_and_other_workloads_by_noise_on_counts() -> None:
    setting = setting_of(ASKED)
    assert own_noises(setting, parameters_of(setting), ASKED).keys() == {"pairs", "triple"}
    outcome = run(setting, ASKED, 1)
    methods = {name: set(answers.methods.tolist()) for name, answers in outcome.answers.items()}
    fitted, measured = {int(AnswerMethod.PROJECTION)}, {int(AnswerMethod.GAUSSIAN)}
    assert methods == {"pairs": fitted, "triple": fitted, "mixed": measured}


def test_the_data_pay_what_is_charged_and_no_more() -> None:
    assert all_parts_cost_what_is_charged()
    gaussian = GAUSSIAN.plan(setting_of(ASKED))
    assert Projection().plan(setting_of(ASKED)).data_cost == gaussian.data_cost


@pytest.mark.nightly
def test_intervals_hold_and_are_no_wider_than_they_must_be() -> None:
    assert intervals_hold()
    assert not intervals_hold(0.3)
    promised = Projection().plan(setting_of(ASKED)).max_half_width
    widest = max(int((own.highs - own.lows).max()) for own in run(setting_of(ASKED), ASKED, 2).answers.values())
    assert widest * 2.0**-41 <= promised


def test_an_answer_depends_on_nothing_that_others_ask() -> None:
    setting = setting_of(ASKED)
    alone = run(setting, {"pairs": ASKED["pairs"]}, 3).answers["pairs"]
    beside = run(setting, ASKED, 3).answers["pairs"]
    others = {"pairs": ASKED["pairs"], "mixed": compile_workload([attribute("x0") == "0"], SCHEMA)}
    other = run(setting, others, 3).answers["pairs"]
    assert flat(alone) == flat(beside) == flat(other)


@pytest.mark.full
def test_a_fit_errs_less_than_noise_on_the_counts() -> None:
    setting = setting_of({"pairs": ASKED["pairs"]})
    table = wide_table(RECORDS)
    truth = table.count(ASKED["pairs"]) / RECORDS
    errors, noise = [], []
    for number in range(10):
        fitted = run(setting, {"pairs": ASKED["pairs"]}, number).answers["pairs"]
        plain = GAUSSIAN.run(
            setting, GAUSSIAN.plan(setting), table, {"pairs": ASKED["pairs"]}, number.to_bytes(32), lambda *_: None
        ).answers["pairs"]
        errors.append(np.abs(fitted.values * 2.0**-40 - truth).mean())
        noise.append(np.abs(plain.values * 2.0**-40 - truth).mean())
    assert np.mean(errors) < 0.7 * np.mean(noise)


def test_a_table_whose_attributes_are_not_known_has_noise_on_its_counts() -> None:
    setting = replace(setting_of(ASKED), attributes=())
    assert own_noises(setting, parameters_of(setting), ASKED) == {}


def twice_the_part(patches: pytest.MonkeyPatch) -> None:
    original = own_tables.own_rho
    patches.setattr(own_tables, "own_rho", lambda *given: 2 * original(*given))


def test_a_part_that_is_spent_twice_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    twice_the_part(monkeypatch)
    assert not all_parts_cost_what_is_charged()
