"""What the game really leaks, by exact enumeration, against what the accountant charges.

For every instance tried the exact divergence is at most the charge, and in the worst it is at least a stated
part of it: the bound is neither wrong nor idle. Nothing here is random beyond fixed seeds, so there are no false
alarms. Mutants (a cap of 2/s, a halved sensitivity, a forgotten coin) must exceed the charge.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from harness.exact_game import (
    game_of,
    hockey_stick,
    masks_workload,
    released_law,
    table_workload,
)
from statistical.extreme_games import (
    EPSILONS,
    EXTREME,
    ORDERS,
    ROUNDING,
    both_ways,
    extreme_analyst_leak,
    instances,
    parameters,
    size_of,
)

from equipoise_server.conversion import delta_of_rho, mixture_delta
from equipoise_server.game import query_player
from equipoise_server.game.parameters import GameParameters
from equipoise_server.mechanisms.equilibrium.cost_model import analyst_mixture, analyst_rho, data_rho

MIXED = parameters("mixed", 4, 1, 1, 1.5, 3.0, 1.5, 3)
SAMPLED = parameters("sampled", 3, 1, 2, 1.5, 2.0, 1.5, 3)


BATCHED = replace(MIXED, rounds=3, batch=2, query_step=MIXED.query_step // 2)


@pytest.mark.thin(3)
@pytest.mark.parametrize("game", [MIXED, BATCHED, SAMPLED])
def test_data_neighbours_leak_at_most_the_charge(game: GameParameters) -> None:
    rho = data_rho(game, size_of(3, 3, 3))
    worst = 0.0
    for data, other, masks, _ in instances(12, seed=1):
        workload = masks_workload(masks, 3)
        law = released_law(game_of(game, workload, data), 3)
        near = released_law(game_of(game, workload, other), 3)
        assert sum(law.values()) == pytest.approx(1, abs=1e-9)
        for order in ORDERS:
            leaked = both_ways(law, near, order)
            assert leaked <= order * rho + ROUNDING
            worst = max(worst, leaked / (order * rho))
        for epsilon in EPSILONS:
            assert hockey_stick(law, near, epsilon) <= delta_of_rho(rho, epsilon) + ROUNDING
    # A charge far above what any instance leaks would be idle: accuracy thrown away.
    assert worst >= (0.02 if game.play == "mixed" else 0.002)


@pytest.mark.thin(3)
@pytest.mark.parametrize("game", [MIXED, replace(MIXED, density=2.5), BATCHED])
def test_analyst_neighbours_leak_at_most_the_charge_in_mixed_play(game: GameParameters) -> None:
    rho = analyst_rho(game, size_of(3, 3, 3))
    worst = 0.0
    for data, _, masks, changed in instances(12, seed=2):
        law = released_law(game_of(game, masks_workload(masks, 3), data), 3)
        near = released_law(game_of(game, masks_workload(changed, 3), data), 3)
        for order in ORDERS:
            leaked = both_ways(law, near, order)
            assert leaked <= order * rho + ROUNDING
            worst = max(worst, leaked / (order * rho))
    assert worst >= 0.02


@pytest.mark.full
def test_analyst_neighbours_leak_at_most_the_charge_in_sampled_play() -> None:
    mixture = analyst_mixture(SAMPLED, size_of(3, 3, 3))
    used = 0.0
    for data, _, masks, changed in instances(12, seed=3):
        law = released_law(game_of(SAMPLED, masks_workload(masks, 3), data), 3)
        near = released_law(game_of(SAMPLED, masks_workload(changed, 3), data), 3)
        for epsilon in EPSILONS:
            leaked = max(hockey_stick(law, near, epsilon), hockey_stick(near, law, epsilon))
            assert leaked <= mixture_delta(mixture, epsilon) + ROUNDING
            if epsilon == 0:
                used = max(used, leaked / mixture_delta(mixture, epsilon))
    assert used >= 0.05


def test_padding_keeps_the_units_public() -> None:
    """An emptied unit keeps a place: the law with padding is covered by the same charge."""
    rho = analyst_rho(MIXED, size_of(3, 3, 3))
    for data, _, masks, _ in instances(6, seed=4):
        law = released_law(game_of(MIXED, masks_workload(masks, 3), data), 3)
        near = released_law(game_of(MIXED, masks_workload(masks[:2], 3), data, padding=1), 3)
        for order in ORDERS:
            assert both_ways(law, near, order) <= order * rho + ROUNDING


@pytest.mark.full
@pytest.mark.parametrize("padding", [0, 1])
def test_a_table_replaced_by_a_predicate_leaks_at_most_the_charge(padding: int) -> None:
    """A marginal is one unit, however many cells it has: in both plays, with and without empty places."""
    units = 3 + padding
    rho, mixture = analyst_rho(MIXED, size_of(3, 3, units)), analyst_mixture(SAMPLED, size_of(3, 3, units))
    for data, _, masks, _ in instances(4, seed=6):
        table, plain = table_workload(masks[:2], 3), masks_workload(masks, 3)
        laws = [released_law(game_of(MIXED, each, data, padding), 3) for each in (table, plain)]
        for order in ORDERS:
            assert both_ways(laws[0], laws[1], order) <= order * rho + ROUNDING
        laws = [released_law(game_of(SAMPLED, each, data, padding), 3) for each in (table, plain)]
        for epsilon in EPSILONS:
            leaked = max(hockey_stick(laws[0], laws[1], epsilon), hockey_stick(laws[1], laws[0], epsilon))
            assert leaked <= mixture_delta(mixture, epsilon) + ROUNDING


def test_the_mixed_charge_is_nearly_met_in_the_extreme() -> None:
    used = extreme_analyst_leak(EXTREME, analyst_rho(EXTREME, size_of(2, 3, 8)), 8)
    assert 0.2 <= used <= 1


def test_a_cap_of_two_over_s_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    rho = analyst_rho(EXTREME, size_of(2, 3, 8))
    project = query_player.project
    monkeypatch.setattr(query_player, "project", lambda weights, density: project(weights, density / 2))
    assert extreme_analyst_leak(EXTREME, rho, 8) > 1


@pytest.mark.full
def test_records_drawn_oftener_than_charged_are_caught() -> None:
    often = replace(EXTREME, rounds=2, batch=5, query_step=EXTREME.query_step // 5)
    rho = analyst_rho(often, size_of(2, 3, 8))
    assert extreme_analyst_leak(often, rho, 8) <= 1
    assert extreme_analyst_leak(often, rho / 5, 8) > 1


def extreme_data_leak(game: GameParameters, rho: float) -> float:
    """The largest divergence over the charge where one record decides all: `n = 1`, one query in both units."""
    workload = masks_workload([1, 1], 2)
    law, near = (
        released_law(game_of(game, workload, np.array(data, dtype=np.int64)), 2) for data in ([1, 0], [0, 1])
    )
    return max(both_ways(law, near, order) / (order * rho) for order in ORDERS)


@pytest.mark.parametrize("play", ["mixed", "sampled"])
def test_the_data_charge_is_not_idle_and_half_the_sensitivity_is_caught(play: str) -> None:
    game = parameters(play, 4, 1, 1, 1.0, 0.4, 0.5 if play == "mixed" else 20.0, 1)
    rho = data_rho(game, size_of(1, 2, 2))
    assert 0.25 <= extreme_data_leak(game, rho) <= 1
    assert extreme_data_leak(game, rho / 4) > 1  # what half the sensitivity would have charged
