"""What the game really leaks, by exact enumeration, against what the accountant charges.

For every instance tried the exact divergence is at most the charge, and in the worst it is at least a stated
part of it: the bound is neither wrong nor idle. Nothing here is random beyond fixed seeds, so there are no false
alarms. Mutants (a cap of 2/s, a halved sensitivity, a forgotten coin) must exceed the charge.
"""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest
from statistical.exact_game import Law, game_of, hockey_stick, masks_workload, released_law, renyi

from equipoise import accounting
from equipoise_server.game import query_player
from equipoise_server.game.parameters import EXPONENT_BITS, GameParameters
from equipoise_server.ledger.conversion import delta_of_rho, mixture_delta
from equipoise_server.mechanisms.tuning import Size, analyst_mixture, analyst_rho, data_rho

ORDERS = (1.25, 2.0, 4.0, 16.0, 64.0)
EPSILONS = (0.0, 0.05, 0.2, 0.5, 1.0, 2.0)
ROUNDING = 1e-11  # of the enumeration's own sums in doubles


def parameters(
    play: str, rounds: int, batch: int, draws: int, density: float, query_rate: float, data_rate: float, records: int
) -> GameParameters:
    """Parameters with the given learning rates."""
    unit = 2.0**-20 if play == "mixed" else draws / 2.0**EXPONENT_BITS
    return GameParameters(
        "mixed" if play == "mixed" else "sampled",
        rounds,
        batch,
        draws,
        density,
        int(query_rate * 2**EXPONENT_BITS / (records * batch)),
        int(data_rate / unit),
    )


def size_of(records: int, universe: int, units: int) -> Size:
    """The public numbers of an instance of predicates."""
    return Size(records, universe, units, units, 1)


def both_ways(law: Law, other: Law, order: float) -> float:
    """The larger of the two Renyi divergences."""
    return max(renyi(law, other, order), renyi(other, law, order))


def instances(count: int, seed: int) -> list[tuple[np.ndarray, np.ndarray, list[int], list[int]]]:
    """Random instances: neighbouring histograms over 3 records, and workloads of 3 masks differing in the last."""
    choose = np.random.default_rng(seed)
    made = []
    for _ in range(count):
        data = np.bincount(choose.integers(0, 3, 3), minlength=3).astype(np.int64)
        other = data.copy()
        moved = int(choose.choice(np.flatnonzero(data)))
        other[moved] -= 1
        other[(moved + 1 + choose.integers(0, 2)) % 3] += 1
        masks = choose.integers(1, 7, 3).tolist()
        changed = [*masks[:2], int(choose.integers(1, 7))]
        made.append((data, other, masks, changed))
    return made


MIXED = parameters("mixed", 4, 1, 1, 1.5, 3.0, 1.5, 3)
SAMPLED = parameters("sampled", 3, 1, 2, 1.5, 2.0, 1.5, 3)


@pytest.mark.parametrize("game", [MIXED, replace(MIXED, rounds=3, batch=2, query_step=MIXED.query_step // 2), SAMPLED])
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


@pytest.mark.parametrize("game", [MIXED, replace(MIXED, density=2.5), replace(MIXED, rounds=3, batch=2)])
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


def worst_analyst_leak(game: GameParameters) -> float:
    """The largest divergence, as a part of the charge, over a family of extreme workload neighbours."""
    rho = analyst_rho(game, size_of(4, 3, 8))
    data = np.array([4, 0, 0], dtype=np.int64)
    worst = 0.0
    for mask, other in itertools.product((1, 6), (1, 6)):
        law = released_law(game_of(game, masks_workload([3, 5] * 3 + [1, mask], 3), data), 3)
        near = released_law(game_of(game, masks_workload([3, 5] * 3 + [1, other], 3), data), 3)
        worst = max(worst, *(both_ways(law, near, order) / (order * rho) for order in ORDERS))
    return worst


def test_dropping_the_cap_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    # One record drawn three times with certainty-like rates; the capped unit is the one that changes.
    game = parameters("mixed", 3, 1, 1, 7.0, 40.0, 1.0, 4)
    assert worst_analyst_leak(game) <= 1
    project = query_player.project
    monkeypatch.setattr(query_player, "project", lambda weights, density: project(weights, 1.0))
    assert worst_analyst_leak(game) > 1


def test_a_forgotten_record_coin_is_caught() -> None:
    """Charging for one record a round less than are drawn must be exceeded by some instance."""
    game = parameters("sampled", 2, 3, 1, 1.0, 6.0, 8.0, 3)
    cheap = accounting.sampled_play_analyst_mixture(2, 1, 1, game.data_rate / 8, 1.0, 2)
    law = released_law(game_of(game, masks_workload([1, 1], 2), np.array([3, 0])), 2)
    near = released_law(game_of(game, masks_workload([2, 2], 2), np.array([3, 0])), 2)
    assert hockey_stick(law, near, 0.5) > mixture_delta(cheap, 0.5)
