"""What cutting a sampler costs: `1 + e^s` times the total variation, `s` being the epsilon of its own step.

The lemma on truncation in `docs/privacy-filter.md`, on finite laws, on the law that is really drawn, and on what
plans charge.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from harness import mechanism_cases as cases
from numpy.typing import NDArray

from equipoise.accounting import PrivacyEvent, ZcdpEvent, events_from_json, repair_places_delta
from equipoise.errors import BudgetExhausted, InvalidArgument
from equipoise.model.accounts import Budget
from equipoise_server.datasets.dense_counts import DenseCounts
from equipoise_server.mechanisms.budget_rounding import sampler_delta, step_epsilon
from equipoise_server.mechanisms.histogram.plan import BEYOND, promise_of, truncation
from equipoise_server.mechanisms.interface import PublicParameters
from equipoise_server.mechanisms.noise_calibration import GaussianNoise
from equipoise_server.mechanisms.registry import MECHANISMS
from equipoise_server.randomness.discrete_gaussian import DiscreteGaussian
from equipoise_server.randomness.discrete_laplace import DiscreteLaplace
from equipoise_server.randomness.exponential import precise
from equipoise_server.randomness.stream import KeyedStream

Law = NDArray[np.float64]
GENEROUS = Budget(0.5, 0.5)  # its rho buys an epsilon of 0.75 for one pure step
DIGITS = 120


def lost(ideal: Law, drawn: Law, other_ideal: Law, other_drawn: Law) -> float:
    """The mass under the first ideal law outside of what both drawn laws keep: the mean of `1 - h`."""
    kept = np.minimum(1.0, np.minimum(drawn / ideal, other_drawn / other_ideal))
    return float(ideal @ (1 - kept))


def variation(law: Law, other: Law) -> float:
    return float(np.abs(law - other).sum() / 2)


@pytest.mark.parametrize("seed", range(40))
def test_the_lemma_holds_for_finite_laws(seed: int) -> None:
    draw = np.random.default_rng(seed)
    ideal, other = (draw.dirichlet(np.ones(5)) for _ in range(2))
    drawn, other_drawn = (
        (1 - share) * law + share * draw.dirichlet(np.ones(5) / 5)
        for law, share in zip((ideal, other), draw.random(2) / 3, strict=True)
    )
    ratio = float(np.maximum(ideal / other, other / ideal).max())
    cut, other_cut = variation(ideal, drawn), variation(other, other_drawn)
    assert lost(ideal, drawn, other, other_drawn) <= cut + ratio * other_cut + 1e-12
    assert lost(other, other_drawn, ideal, drawn) <= other_cut + ratio * cut + 1e-12


def test_the_constant_of_the_lemma_is_reached() -> None:
    """Each law is cut where the other is less probable: twice the total variation would not be enough."""
    ideal, other = np.array([0.9, 0.1]), np.array([0.1, 0.9])
    cut = 0.05
    drawn, other_drawn = ideal + np.array([cut, -cut]), other + np.array([-cut, cut])
    assert lost(ideal, drawn, other, other_drawn) == pytest.approx((1 + 9) * cut)


@pytest.mark.parametrize(("rate", "moved"), [(Fraction(3), 1), (Fraction(1), 1), (Fraction(1, 2), 2)])
def test_the_drawn_laplace_law_loses_no_more_than_is_charged(rate: Fraction, moved: int) -> None:
    """Exactly, at 120 digits: against the ideal law, which has every integer."""
    noise, context = DiscreteLaplace(rate), precise(DIGITS)
    law = {
        value: context.divide(Decimal(mass.numerator), Decimal(mass.denominator))
        for value, mass in noise.law().items()
    }
    falls = context.exp(context.divide(Decimal(-rate.numerator), Decimal(rate.denominator)))
    middle = context.divide(context.subtract(Decimal(1), falls), context.add(Decimal(1), falls))

    def ideal(value: int) -> Decimal:
        return context.multiply(middle, context.power(falls, abs(value)))

    def kept(value: int) -> Decimal:
        return context.divide(law.get(value, Decimal(0)), ideal(value))

    most = max(law) + moved
    gone = context.divide(2 * ideal(most + 1), context.subtract(Decimal(1), falls))
    for value in range(-most, most + 1):
        share = min(Decimal(1), kept(value), kept(value - moved))
        gone = context.add(gone, context.multiply(ideal(value), context.subtract(Decimal(1), share)))
    assert gone > 0
    assert Fraction(gone) <= noise.truncation_delta() * Fraction(1 + math.exp(rate * moved))


def steps(fields: Any, analysts: bool = False) -> Iterator[tuple[bool, Fraction]]:
    """Every epsilon of a plan's parameters, and whether it is of what hides analysts."""
    if isinstance(fields, list):
        for each in fields:
            yield from steps(each, analysts)
    elif isinstance(fields, dict):
        for key, value in fields.items():
            hides = analysts or key in ("places", "demand", "ending_epsilon")
            if key.endswith("epsilon") and isinstance(value, str):
                yield hides, Fraction(value)
            else:
                yield from steps(value, hides)


def parts_of(events: str) -> tuple[PrivacyEvent, ...]:
    return events_from_json(events)


@pytest.mark.thin(2)
@pytest.mark.parametrize("budget", [Budget(1.0, 1e-6), GENEROUS, Budget(0.6, 0.9), Budget(20.0, 1e-6)])
@pytest.mark.parametrize("unit", cases.UNITS)
@pytest.mark.parametrize("name", cases.NAMES)
def test_no_step_whose_sampler_is_cut_has_a_larger_epsilon_than_is_charged(
    name: str, unit: str, budget: Budget
) -> None:
    asked = cases.setting_for(name, "a table", unit)
    setting = replace(asked, data_budget=budget, analyst_budget=budget, beta=0.05)
    try:
        plan = MECHANISMS[name].plan(setting)
    except (BudgetExhausted, InvalidArgument):
        assert budget.epsilon < 20
        return
    for analysts, epsilon in steps(json.loads(plan.parameters)):
        parts = parts_of(plan.analyst_events if analysts else plan.data_events)
        assert epsilon == 0 or float(epsilon) <= max(budget.epsilon, *map(step_epsilon, parts))


def drawn_in(
    monkeypatch: pytest.MonkeyPatch, name: str, setting: PublicParameters
) -> tuple[Fraction, float, Fraction]:
    """The total variation of all noise that a run draws, its largest epsilon, and the delta that is charged."""
    total = Fraction(0)
    draw = DiscreteLaplace.draw

    def counting(self: DiscreteLaplace, count: int, stream: KeyedStream) -> NDArray[np.int64]:
        nonlocal total
        total += count * self.truncation_delta()
        return draw(self, count, stream)

    monkeypatch.setattr(DiscreteLaplace, "draw", counting)
    case = cases.CASES["a table"]
    plan = MECHANISMS[name].plan(setting)
    data = DenseCounts(case.histogram)
    MECHANISMS[name].run(setting, plan, data, case.workloads, cases.SEED, lambda *_: None)
    largest = max(epsilon for _, epsilon in steps(json.loads(plan.parameters)))
    return total, float(largest), sum((part.amounts()[2] for part in parts_of(plan.data_events)), Fraction(0))


@pytest.mark.parametrize("budget", [GENEROUS, Budget(1.0, 1e-6)])
@pytest.mark.parametrize("name", ["laplace", "multiplicative_weights"])
def test_what_a_run_draws_is_charged_at_the_ratio_of_its_own_steps(
    monkeypatch: pytest.MonkeyPatch, name: str, budget: Budget
) -> None:
    """Under a budget of a large delta, a step's epsilon is above the budget's."""
    setting = replace(cases.setting_for(name, "a table", "query"), data_budget=budget, beta=0.05)
    total, epsilon, charged = drawn_in(monkeypatch, name, setting)
    assert total > 0
    assert charged >= total * Fraction(1 + math.exp(epsilon))
    if name == "laplace" and budget is GENEROUS:
        assert epsilon > 0.7 > budget.epsilon


def test_a_larger_step_than_the_budget_s_epsilon_costs_more() -> None:
    part = ZcdpEvent("selections", Fraction(1, 2))
    assert sampler_delta(Fraction(1, 2**100), 0.1, []) == Fraction(3, 2**100)
    assert sampler_delta(Fraction(1, 2**100), 0.1, [part]) == Fraction(9, 2**100)  # 1 + e^2
    assert repair_places_delta(Fraction(2), 5, 0.1) == repair_places_delta(Fraction(2), 5, 2.0)


def test_gaussian_cells_are_cut_further_out_than_a_record_moves(monkeypatch: pytest.MonkeyPatch) -> None:
    """The ratio of Gaussian laws is unbounded: what is cut must be as improbable under the neighbour's law."""
    setting = replace(cases.setting_for("histogram", "a table", "query"), beta=0.05)
    noise = GaussianNoise(Fraction(2))
    law = noise.law(2)
    assert isinstance(law, DiscreteGaussian)
    reached = law.quantile(BEYOND)

    def calibrate(_budget: Budget) -> tuple[GaussianNoise, PrivacyEvent]:
        return noise, noise.part(1)

    def with_limit(limit: int) -> bool:
        monkeypatch.setattr("equipoise_server.mechanisms.histogram.plan.cell_limit", lambda setting: limit)
        return promise_of(calibrate, setting) is not None

    assert [with_limit(limit) for limit in (reached - 1, reached, reached + 1)] == [False, False, True]
    assert truncation(law, setting) == 2 * setting.universe_size * BEYOND
