"""The auditor's pairs of mixtures: honest ones hold, and none does that is below what is lost for certain."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from harness.examples import examples
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy import stats

from equipoise.accounting import BinomialMixture, Mixture, ThresholdTests, events_from_json
from equipoise.model.accounts import Budget
from equipoise.model.rounds import Share
from equipoise.verification import pairs
from equipoise.verification.conversion import TOLERANCE
from equipoise.verification.pairs import mixture_delta, pair_holds, pairs_hold
from equipoise_server import conversion
from equipoise_server.mechanisms.interface import PublicParameters
from equipoise_server.mechanisms.registry import MECHANISMS, SESSION_MECHANISMS

TRIALS = st.integers(0, 5000)
FEWER = st.integers(0, 500)  # where the server, which is slow, has a say
CHANCES = st.floats(1e-6, 0.999)
# Of all trials together, and of the epsilon by that: where neither all nor nothing is lost.
RHOS = st.floats(1e-6, 100.0)
TIMES = st.floats(0.01, 20.0)
FEW_TIMES = st.floats(0.01, 5.0)  # where the delta is seldom too small to compare


def made(trials: int, chance: float, rho: float, times: float) -> tuple[BinomialMixture, float]:
    """A mixture whose usual loss is `rho`, and an epsilon."""
    usual = trials * chance + math.sqrt(trials) + 1
    epsilon = times * (rho + math.sqrt(rho))
    return BinomialMixture(trials, chance, rho / usual**2), epsilon


def part(mixture: BinomialMixture, epsilon: float, delta: float) -> Mixture:
    numbers = (mixture.probability, mixture.rho_of_one, epsilon, delta)
    return Mixture("game", mixture.trials, *map(Fraction, numbers))


def certainly_lost(mixture: BinomialMixture, epsilon: float) -> float:
    """Delta where the loss given `w` is that of continuous Gaussian noise of just this rho, and `w` is told."""
    differing = np.arange(1.0, mixture.trials + 1)
    moved = differing * math.sqrt(2 * mixture.rho_of_one)  # in deviations of the noise
    lost = stats.norm.cdf(moved / 2 - epsilon / moved)
    lost -= np.exp(epsilon + stats.norm.logcdf(-moved / 2 - epsilon / moved))
    return float(stats.binom.pmf(differing, mixture.trials, mixture.probability) @ np.maximum(lost, 0.0))


@given(FEWER, CHANCES, RHOS, TIMES)
@settings(max_examples=examples(60))
def test_an_honest_pair_holds(trials: int, chance: float, rho: float, times: float) -> None:
    mixture, epsilon = made(trials, chance, rho, times)
    assert pair_holds(part(mixture, epsilon, conversion.mixture_delta(mixture, epsilon)))


@given(TRIALS, CHANCES, RHOS, TIMES, st.floats(0.0, 0.999))
@settings(max_examples=examples(100))
def test_a_pair_below_what_is_lost_for_certain_never_holds(
    trials: int, chance: float, rho: float, times: float, less: float
) -> None:
    mixture, epsilon = made(trials, chance, rho, times)
    lost = certainly_lost(mixture, epsilon)
    assume(lost > 1e-30)
    assert not pair_holds(part(mixture, epsilon, less * lost))
    assert lost <= mixture_delta(mixture, epsilon) * (1 + 1e-6)


@given(FEWER, CHANCES, RHOS, FEW_TIMES, st.floats(0.0, 0.9), st.floats(0.0, 0.9))
@settings(max_examples=examples(60))
def test_an_honest_pair_with_either_number_lowered_does_not_hold(
    trials: int, chance: float, rho: float, times: float, smaller: float, less: float
) -> None:
    mixture, epsilon = made(trials, chance, rho, times)
    delta = conversion.mixture_delta(mixture, epsilon)
    assume(1e-20 < delta < 0.5)
    # The server takes up to a hundredth of all numbers together, which costs it some of the delta.
    assert not pair_holds(part(mixture, epsilon, less * mixture_delta(mixture, epsilon)))
    lower = mixture_delta(mixture, smaller * epsilon)
    assert pair_holds(part(mixture, smaller * epsilon, delta)) is (lower <= delta * (1 + TOLERANCE))


@given(FEWER, CHANCES, RHOS, TIMES)
@settings(max_examples=examples(25))
def test_the_bound_is_that_of_every_number_of_differing_trials(
    trials: int, chance: float, rho: float, times: float
) -> None:
    mixture, epsilon = made(trials, chance, rho, times)
    law = stats.binom.pmf(np.arange(trials + 1), trials, chance)
    deltas = [conversion.delta_of_rho(w * w * mixture.rho_of_one, epsilon) for w in range(trials + 1)]
    assert mixture_delta(mixture, epsilon) == pytest.approx(min(1.0, float(law @ deltas)), rel=1e-6, abs=1e-40)


@pytest.mark.thin(3)
@pytest.mark.parametrize(
    "mixture",
    [
        BinomialMixture(1 << 20, 1 / 16, 1e-10),
        BinomialMixture(10**6, 0.5, 1e-13),
        BinomialMixture(10**9, 1e-5, 1e-9),
    ],
)
def test_blocks_of_numbers_are_counted_at_their_largest(
    mixture: BinomialMixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    epsilon = mixture.trials * mixture.probability * math.sqrt(mixture.rho_of_one)
    coarse = mixture_delta(mixture, epsilon)
    assert pair_holds(part(mixture, epsilon, conversion.mixture_delta(mixture, epsilon)))
    monkeypatch.setattr(pairs, "BLOCKS", 1 << 22)
    fine = mixture_delta(mixture, epsilon)
    assert fine <= coarse <= fine * 1.01


def sampled(unit: str, epsilon: float, **options: object) -> PublicParameters:
    shares = tuple(Share(f"analyst {number}", 4, 12) for number in range(40))
    budgets = Budget(1.0, 1e-8), Budget(epsilon, 1e-6)
    forced = {"play": "sampled", **options}
    return PublicParameters(20_000, 64, shares, unit, *budgets, 0.05, forced)


@pytest.mark.sparse(6)
@pytest.mark.thin(12)
@pytest.mark.parametrize("epsilon", [0.5, 3.0, 10.0])
@pytest.mark.parametrize("unit", ["query", "analyst"])
@pytest.mark.parametrize(
    "options", [{}, {"rounds": 8}, {"rounds": 40, "draws": 30}, {"play": "hru", "rounds": 200}], ids=str
)
def test_what_real_plans_announce_holds_and_nothing_less_does(
    unit: str, epsilon: float, options: dict[str, object]
) -> None:
    plan = MECHANISMS["equilibrium"].plan(sampled(unit, epsilon, **options))
    parts = events_from_json(plan.analyst_events)
    (game,) = [each for each in parts if isinstance(each, Mixture)]
    assert pairs_hold(parts)
    generator = np.random.default_rng(len(plan.parameters))
    for factor in generator.uniform(0, 0.8, 20):
        assert game.delta == 0 or not pair_holds(replace(game, delta=game.delta * Fraction(factor)))
    for factor in generator.uniform(1.2, 10, 20):
        more = {"trials": int(game.trials * factor) + 1, "rho_of_one": game.rho_of_one * Fraction(factor)}
        for name, value in (more | {"probability": min(Fraction(1), game.probability * Fraction(factor))}).items():
            assert not pair_holds(replace(game, **{name: value})), name  # type: ignore[arg-type]


@pytest.mark.parametrize("length", [4, 40])
@pytest.mark.parametrize("epsilon", [0.3, 3.0])
def test_what_real_sessions_announce_holds(epsilon: float, length: int) -> None:
    shares = tuple(Share(f"analyst {number}", length, 3 * length) for number in range(4))
    budgets = Budget(epsilon, 1e-8), Budget(3.0, 1e-6)
    setting = PublicParameters(10**6, 64, shares, "query", *budgets, 0.05, {"length": length})
    plan = SESSION_MECHANISMS["online_private"].plan(setting)
    for events in (plan.data_events, plan.analyst_events):
        parts = events_from_json(events)
        assert pairs_hold(parts)
        for each in parts:
            if isinstance(each, ThresholdTests):
                assert not pair_holds(replace(each, epsilon=each.epsilon * Fraction(99, 100)))
