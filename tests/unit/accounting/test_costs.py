"""The cost functions against sums written out by hand, and their monotonicity."""

from __future__ import annotations

import doctest
import math
from fractions import Fraction
from functools import cache
from types import ModuleType

import pytest

from equipoise import accounting
from equipoise.accounting import ORDERS, BinomialMixture, Cost, RenyiCurve, rounded_up


def test_mixed_play_data_rho_is_the_exact_sum() -> None:
    rounds, batch, data_rate, query_rate, records = 7, 3, 0.4, 2.0, 5
    total = 0.0
    for played in range(rounds):
        moved = sum(2 * math.tanh(query_rate * j / records / 2) for j in range(1, played + 1))
        total += batch * (data_rate * moved) ** 2 / 8
    charged = accounting.mixed_play_data_rho(rounds, batch, data_rate, query_rate, records, 0.0)
    assert total <= charged <= total * (1 + 1e-6)


def test_sampled_play_data_rho_is_a_sum_of_squares() -> None:
    rounds, draws, query_rate, records = 6, 4, 1.5, 10
    total = draws * sum((query_rate * j / records) ** 2 for j in range(1, rounds))
    charged = accounting.sampled_play_data_rho(rounds, draws, query_rate, records, 2)
    assert total <= charged <= total * (1 + 1e-6)


def test_mixed_play_analyst_rho_is_a_sum_of_squares() -> None:
    total = 2 * sum((2 * 0.3 * j / 5) ** 2 for j in range(8)) / 8
    charged = accounting.mixed_play_analyst_rho(8, 2, 0.3, 5, 0.0)
    assert total <= charged <= total * (1 + 1e-6)


def test_sampled_play_mixture_counts_every_draw_after_the_first_round() -> None:
    mixture = accounting.sampled_play_analyst_mixture(5, 2, 3, 0.6, 10, 100)
    assert mixture.trials == 12
    assert mixture.probability == pytest.approx(0.1, rel=1e-6)
    assert mixture.rho_of_one == pytest.approx(10 * (2 * 0.6 / 3) ** 2 / 8, rel=1e-6)


def test_one_round_costs_nothing() -> None:
    slack = accounting.rounding_slack(10, 10)
    assert accounting.mixed_play_data_rho(1, 5, 1.0, 1.0, 10, slack) == 0
    assert accounting.mixed_play_analyst_rho(1, 5, 1.0, 2.0, slack) == 0
    assert accounting.sampled_play_data_rho(1, 5, 1.0, 10, 10) == 0


def test_slack_is_charged() -> None:
    plain = accounting.mixed_play_data_rho(50, 1, 0.1, 0.1, 10**6, 0.0)
    assert accounting.mixed_play_data_rho(50, 1, 0.1, 0.1, 10**6, 1e-6) > plain


def test_pure_costs_compose() -> None:
    assert accounting.sparse_vector_rho(Fraction(1, 10), 4) == Fraction(2, 100)
    assert accounting.laplace_rho(Fraction(1, 10), 1) == Fraction(1, 200)


def test_charges_round_up_and_refuse_nonsense() -> None:
    assert rounded_up(Fraction(1, 10**13), accounting.RHO_UNIT) == 1
    assert rounded_up(0.0, accounting.RHO_UNIT) == 0
    for nonsense in (math.nan, math.inf, -1.0):
        with pytest.raises(ValueError, match="finite"):
            rounded_up(nonsense, 10)
    with pytest.raises(ValueError, match="at least 0"):
        Cost(rho=-1)


def test_costs_add_exactly() -> None:
    assert Cost(1, 2, 3) + Cost(10, 20, 30) == Cost(11, 22, 33)


def test_analyst_repair_is_charged_for_everybody_and_for_every_place() -> None:
    assert accounting.exponential_mechanism_rho(Fraction(1, 2), 3) == Fraction(3, 32)
    assert accounting.analyst_tests_rho(Fraction(1, 2), 10) == Fraction(10, 8)
    assert accounting.private_weights_rho(Fraction(2), Fraction(1), Fraction(1, 2), 3, 5) == 5 * (
        Fraction(12, 8) + Fraction(3, 2) + Fraction(1, 8)
    )
    assert accounting.repair_places_rho(Fraction(1, 2)) == Fraction(1, 8)


def test_the_cap_on_places_costs_less_the_higher_it_is() -> None:
    deltas = [accounting.repair_places_delta(Fraction(1, 2), beyond, 1.0) for beyond in (0, 1, 10, 100, 5000)]
    assert deltas == sorted(deltas, reverse=True)
    assert deltas[0] == 1.0
    assert 0 < deltas[3] < 1e-15
    assert 0 < deltas[4] < 1e-300


def test_gaussian_answers_cost_their_squared_sensitivity() -> None:
    assert accounting.gaussian_rho(Fraction(1), Fraction(50), 3) == Fraction(3, 100)
    assert accounting.gaussian_rho(Fraction(2), Fraction(50), 3) == Fraction(6, 100)


@cache
def log_ways(trials: int, chosen: int) -> float:
    return math.log(math.comb(trials, chosen))


def mixture_divergence(mixture: BinomialMixture, order: float) -> float:
    """The same sum, with binomial coefficients as integers."""
    chance = mixture.probability
    terms = [
        log_ways(mixture.trials, w)
        + w * math.log(chance)
        + (mixture.trials - w) * math.log1p(-chance)
        + order * (order - 1) * w * w * mixture.rho_of_one
        for w in range(mixture.trials + 1)
    ]
    top = max(terms)
    return (top + math.log(math.fsum(math.exp(term - top) for term in terms))) / (order - 1)


@pytest.mark.parametrize("mixture", [BinomialMixture(30, 0.2, 0.01), BinomialMixture(400, 0.02, 1e-4)])
def test_mixture_curve_is_the_sum_over_every_count(mixture: BinomialMixture) -> None:
    curve = accounting.mixture_curve(mixture)
    worst = mixture.trials**2 * mixture.rho_of_one
    for order, divergence in zip(ORDERS, curve.divergences, strict=True):
        exact = mixture_divergence(mixture, order)
        assert exact * (1 - 1e-7) <= divergence <= min(exact * (1 + 1e-6) + 1e-8, order * worst * (1 + 1e-8))


def test_mixture_curve_lies_between_the_mean_and_the_worst() -> None:
    # By Jensen's inequality the curve is at least that of the mean square; the rare worst count rules at the end.
    mixture = BinomialMixture(200, 0.05, 1e-3)
    mean_square = 200 * 0.05 * 0.95 + 10**2
    curve = accounting.mixture_curve(mixture)
    for order, divergence in zip(ORDERS, curve.divergences, strict=True):
        assert order * mean_square * 1e-3 <= divergence
    assert curve.divergences[0] < 1.2 * ORDERS[0] * mean_square * 1e-3
    assert curve.divergences[-1] > 0.99 * ORDERS[-1] * 200**2 * 1e-3


def test_mixtures_at_the_edges() -> None:
    assert accounting.mixture_curve(BinomialMixture(10, 0.0, 1.0)) == RenyiCurve()
    assert accounting.mixture_curve(BinomialMixture(0, 0.5, 1.0)).divergences[-1] < 1e-6
    assert accounting.mixture_curve(BinomialMixture(10, 1.0, 0.01)) == accounting.zcdp_curve(1.0)
    huge = BinomialMixture(1 << 40, 1e-9, 1e-12)
    assert accounting.mixture_curve(huge) == accounting.zcdp_curve(2.0**80 * 1e-12)
    assert all(math.isfinite(value) for value in accounting.mixture_curve(BinomialMixture(5, 0.5, 1e9)).divergences)


def test_curves_add_and_never_fall_short() -> None:
    first, second = accounting.zcdp_curve(0.1), accounting.zcdp_curve(0.2)
    for order, divergence in zip(ORDERS, (first + second).divergences, strict=True):
        assert order * 0.3 < divergence <= order * 0.3 * (1 + 1e-8)
    assert first + RenyiCurve() == first
    for wrong in ((0.0,), (-1.0,) * len(ORDERS), (math.nan,) * len(ORDERS)):
        with pytest.raises(ValueError, match="divergences"):
            RenyiCurve(wrong)


PARTS = (
    accounting.ZcdpEvent("game", Fraction(1, 3 * 10**12)),
    accounting.PureDpEvent("detection", Fraction(1, 10), 4),
    accounting.ZcdpEvent("answers", Fraction(1, 100), 4),
    accounting.ApproximateDpEvent("samplers", Fraction(0), Fraction(1, 10**19)),
)


def test_parts_are_charged_once_rounded_up() -> None:
    assert accounting.charge_of(PARTS) == Cost(rho=6 * 10**10 + 1, delta=1)
    assert accounting.charge_of([]) == Cost()
    thirds = [accounting.ZcdpEvent("third", Fraction(1, 3 * 10**12))] * 3
    assert accounting.charge_of(thirds) == Cost(rho=1)


def mixture(probability: Fraction, rho_of_one: Fraction) -> accounting.Mixture:
    return accounting.Mixture("play", 9, probability, rho_of_one, Fraction(1), Fraction(0))


def test_a_mixture_whose_numbers_are_below_all_doubles_costs_something() -> None:
    tiny, half, none = Fraction(1, 10**400), Fraction(1, 2), Fraction(0)
    for least in (mixture(tiny, half), mixture(half, tiny)):
        assert accounting.charge_at([least], 5.0).divergence > 0
    for nothing in (mixture(none, half), mixture(half, none)):
        assert accounting.charge_at([nothing], 5.0).divergence == 0


def test_parts_read_back_and_have_one_spelling() -> None:
    text = accounting.events_to_json("equilibrium", PARTS)
    assert accounting.events_from_json(text) == PARTS
    assert text == accounting.events_to_json("equilibrium", accounting.events_from_json(text))
    assert text.startswith('{"events":[{"event":"ZCDpEvent","name":"game","rho":"1/3000000000000","times":1},')
    for wrong in (
        '{"events":[{"event":"ZCDpEvent"}]}',
        '{"events":3}',
        '{"events":[{"event":"ZCDpEvent","name":"game","rho":"1e-99999999","times":1}]}',
        '{"events":[{"event":"ZCDpEvent","name":"game","rho":"1/0","times":1}]}',
        '{"events":[{"event":"ZCDpEvent","name":"game","rho":"-1/9","times":1}]}',
        '{"events":[{"event":"ZCDpEvent","name":"game","rho":0.5,"times":1}]}',
        '{"events":[{"event":"x","name":"y","times":1}]}',
        text.replace(":", ": ", 1),
        text.replace('"rho":"1/3000000000000"', '"rho":"2/6000000000000"'),
        text.replace('"name":"game"', '"name":"game","name":"game"'),
        text.replace('"name":"game"', '"name":"game","note":1'),
        text.replace('"events":', '"events":[],"events":'),
        text[:-1] + ',"note":1}',
        '{"events":[{"event":"ZCDpEvent","name":"game","rho":"5/1","times":0.99}]}',
        '{"events":[{"event":"ZCDpEvent","name":"game","rho":"5/1","times":true}]}',
    ):
        with pytest.raises(ValueError, match="events"):
            accounting.events_from_json(wrong)
    with pytest.raises(ValueError, match="line 1"):
        accounting.events_from_json("not JSON")


@pytest.mark.parametrize("module", [accounting, accounting.events])
def test_examples_for_auditors_hold(module: ModuleType) -> None:
    failed, tried = doctest.testmod(module)
    assert (failed, tried > 0) == (0, True)
