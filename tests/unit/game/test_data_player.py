"""The data player: its law with an old table of proposals, in exact fractions, and when the table is made anew."""

from __future__ import annotations

import math
from fractions import Fraction
from unittest import mock

import numpy as np
import pytest
from harness.exact_game import table_workload
from harness.random_references import ScriptedStream, exponential
from numpy.typing import NDArray

from equipoise_server.game import data_player
from equipoise_server.game.data_player import MultiplicativeWeights, table_lifetime
from equipoise_server.randomness import weighted
from equipoise_server.randomness.stream import KeyedStream

NAT = 1 << 48
SIZE = 5
WORKLOAD = table_workload([0b00011, 0b10101, 0b01110, 0b11111], SIZE)
# Each round's drawn actions: query numbers (the table's 5 cells first), and 1 or -1 for a complement.
ROUNDS = [
    ([0, 5, 5], [1, 1, -1]),
    ([8, 8, 6], [1, 1, 1]),
    ([7, 3, 4], [-1, -1, -1]),
    ([6, 6, 6], [1, 1, -1]),
]


def added(queries: list[int], signs: list[int]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    return np.array(queries, dtype=np.int64), np.array(signs, dtype=np.int64)


def accepted_coins(player: MultiplicativeWeights, cell: int) -> int:
    """How many of 2^192 coins accept a proposed cell."""
    proposal, growth = player.proposal()
    cells = np.array([cell])

    def accepts(coin: int) -> bool:
        script = [coin >> 128, coin & (2**64 - 1), coin >> 64 & (2**64 - 1)]
        return bool(proposal.accepted(cells, player.exponents_at(cells), growth, ScriptedStream(script)).item())

    bound = 0
    for place in reversed(range(192)):
        if accepts(bound + (1 << place) - 1):
            bound += 1 << place
    return bound + accepts(bound)


def proposed_and_kept(player: MultiplicativeWeights) -> tuple[list[Fraction], Fraction]:
    """The law of a kept record, from the integers of the shipped steps, and the chance that a proposal is kept."""
    weights = player.proposal()[0].weights(np.arange(SIZE)).tolist()
    masses = [weight * accepted_coins(player, cell) for cell, weight in enumerate(weights)]
    return [Fraction(mass, sum(masses)) for mass in masses], Fraction(sum(masses), sum(weights) << 192)


def ideal_law(potential: NDArray[np.int64], step: int) -> list[Fraction]:
    weights = [exponential(Fraction(int(each) * step, NAT)) for each in potential]
    return [weight / sum(weights) for weight in weights]


@pytest.mark.sparse(4)
@pytest.mark.slow
@pytest.mark.thin(12)
@pytest.mark.parametrize("step", [NAT // 3, 4 * NAT, 20 * NAT])
@pytest.mark.parametrize("lifetime", [1, 3, 100])
def test_the_law_is_exact_however_old_the_table_is(lifetime: int, step: int) -> None:
    player = MultiplicativeWeights(WORKLOAD, step, lifetime=lifetime)
    potential = np.zeros(SIZE, dtype=np.int64)
    oldest = Fraction(1)
    for played, (queries, signs) in enumerate(ROUNDS):
        law, kept = proposed_and_kept(player)
        assert kept > 0.99 * math.exp(-3 * (played % lifetime) * step / NAT)  # what the public rule counts on
        oldest = min(oldest, kept)
        for got, wanted in zip(law, ideal_law(potential, step), strict=True):
            assert abs(got - wanted) < Fraction(1, 1 << 100)
        player.gain_queries(*added(queries, signs))
        potential += WORKLOAD.transpose_sparse(*added(queries, signs))
    # An old table really was proposed from, which shows in what it refuses; a new one refuses next to nothing.
    assert oldest > 0.99 if lifetime == 1 else oldest < 0.8


def test_the_bound_on_growth_is_reached_and_one_action_less_is_refused() -> None:
    player = MultiplicativeWeights(WORKLOAD, NAT, lifetime=100)
    player.proposal()
    player.gain_queries(*added([5, 6, 7], [1, 1, -1]))  # record 0 is in the first two and not in the third
    proposal, growth = player.proposal()
    assert growth == int(player.exponents_at(np.array([0]))[0]) == 2 * NAT
    with pytest.raises(ValueError, match="growth"):
        proposal.accepted(np.array([0]), np.array([growth]), NAT, KeyedStream.derive(bytes(32), "too small"))


@pytest.mark.full
def test_rounded_log_weights_are_drawn_from_as_they_are() -> None:
    """`drop_bits` rounds the potential down, and the bound on growth up."""
    player = MultiplicativeWeights(WORKLOAD, NAT, drop_bits=3, lifetime=100)
    potential = np.zeros(SIZE, dtype=np.int64)
    player.proposal()
    for factor, (queries, signs) in enumerate(ROUNDS, start=3):
        player.gain_queries(*added(queries, [factor * sign for sign in signs]))
        potential += factor * WORKLOAD.transpose_sparse(*added(queries, signs))
        assert player.exponents_at(np.arange(SIZE)).tolist() == [each // 8 * NAT for each in potential.tolist()]
        law, _ = proposed_and_kept(player)
        for got, wanted in zip(law, ideal_law(potential // 8, NAT), strict=True):
            assert abs(got - wanted) < Fraction(1, 1 << 100)


def test_gains_for_the_whole_universe_and_of_queries_add_up() -> None:
    player = MultiplicativeWeights(WORKLOAD, NAT, lifetime=100)
    potential = np.zeros(SIZE, dtype=np.int64)
    for queries, signs in ROUNDS:
        player.draw(2, KeyedStream.derive(bytes(32), "some"))
        dense = np.arange(SIZE) * len(queries)
        player.gain_queries(*added(queries, signs))
        player.gain(dense)
        potential += WORKLOAD.transpose_sparse(*added(queries, signs)) + dense
        assert player.exponents_at(np.arange(SIZE)).tolist() == (potential * NAT).tolist()


def test_a_table_is_used_for_its_lifetime() -> None:
    player = MultiplicativeWeights(WORKLOAD, NAT, lifetime=3)
    tables = []
    for _ in range(7):
        tables.append(player.proposal()[0])
        player.gain_queries(*added([0], [1]))
    assert [tables[i] is tables[i + 1] for i in range(6)] == [True, True, False, True, True, False]


@pytest.mark.parametrize("universe", [1, 1 << 10, 1 << 20, 1 << 26])
@pytest.mark.parametrize(("batch", "draws", "rate"), [(1, 1, 0.01), (8, 64, 0.2), (256, 512, 2.0), (4, 1, 0.0)])
def test_lifetime_is_what_costs_least_a_round(universe: int, batch: int, draws: int, rate: float) -> None:
    step = int(rate * NAT / draws)
    costs = [
        batch
        * math.exp(min(draws * step / NAT, 64) * age)
        * (data_player.PROPOSAL_COST + data_player.VALUE_COST * draws * age)
        for age in range(int(20 / rate) if rate else 40_000)
    ]
    means = (universe + np.cumsum(costs)) / np.arange(1, len(costs) + 1)
    assert table_lifetime(universe, batch, draws, step) == int(np.argmin(means)) + 1


def test_an_enormous_learning_rate_means_a_new_table_every_round() -> None:
    assert table_lifetime(1 << 20, 1, 1, 2**14 << 48) == 1


def test_blocks_do_not_decide_what_is_drawn() -> None:
    exponents = np.random.default_rng(3).integers(-NAT, NAT, 5000)
    drawn = weighted.draw_exponential(exponents, 50, KeyedStream.derive(bytes(32), "blocks")).tolist()
    with mock.patch.object(weighted, "_BLOCK", 17):
        assert weighted.draw_exponential(exponents, 50, KeyedStream.derive(bytes(32), "blocks")).tolist() == drawn
