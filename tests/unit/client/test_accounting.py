"""The cost functions against sums written out by hand, and their monotonicity."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest

from equipoise import accounting
from equipoise.accounting import Cost, rounded_up


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
    with pytest.raises(ValueError, match="negative"):
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
