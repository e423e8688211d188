"""A round that starts from a prior leaks no more than it is charged, by exact enumeration.

On neighbouring tables the charge is that of the measurement and of the game together; on neighbouring workloads it
is the game's alone, as a prior depends on none. After a standing measurement, which was charged when it was made,
the game's charge alone bounds both. Faults are switched on here, and the same comparisons catch them.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from harness.exact_game import hockey_stick, masks_workload
from harness.naive_residuals import add_remove_rho
from numpy.typing import NDArray
from statistical.exact_prior import NOISE, PRIOR, UNIVERSE, started_law, told_law
from statistical.extreme_games import EPSILONS, ORDERS, ROUNDING, both_ways, parameters, size_of

from equipoise.accounting import charge_of
from equipoise.queries.record_list import RecordList
from equipoise.queries.workload_compiler import CompiledWorkload
from equipoise_server.conversion import delta_of_rho, mixture_delta
from equipoise_server.datasets.counts import Counts
from equipoise_server.game.equilibrium import Game
from equipoise_server.game.parameters import GameParameters
from equipoise_server.mechanisms.equilibrium import mechanism as equilibrium
from equipoise_server.mechanisms.equilibrium import start as start_module
from equipoise_server.mechanisms.equilibrium.cost_model import analyst_mixture, analyst_rho, data_rho
from equipoise_server.mechanisms.equilibrium.parameters import PriorStart
from equipoise_server.mechanisms.interface import OnStep, PublicParameters
from equipoise_server.mechanisms.prior.plan import PriorParameters
from equipoise_server.mechanisms.prior.support import ListedSupport
from equipoise_server.mechanisms.residuals.measurement import Measured, measure

MIXED = parameters("mixed", 3, 1, 1, 1.5, 1.0, 0.6, 3)
SAMPLED = parameters("sampled", 3, 1, 1, 1.5, 0.6, 0.8, 3)
SLOW = replace(MIXED, data_step=MIXED.data_step // 64)  # so that the data and the analysts are charged little
GAMES = [MIXED, SAMPLED]
TABLES = [(np.array([2, 1]), np.array([1, 2])), (np.array([3, 0]), np.array([2, 1]))]
MASKS = [([1, 2, 3], [1, 2, 1]), ([1, 1, 2], [1, 1, 1])]  # the last statement differs
SIZE = size_of(3, UNIVERSE, 3)
FAR = 1e-9  # what is left out of the enumeration may hide


def asked(masks: list[int]) -> dict[str, CompiledWorkload]:
    return {"ann": masks_workload(masks, UNIVERSE)}


def data_part(game: GameParameters, rho: float) -> float:
    """What the worst pair of tables uses of `rho`, at the worst order."""
    worst = 0.0
    for data, other in TABLES:
        law, near = (started_law(game, asked(MASKS[0][0]), each) for each in (data, other))
        worst = max(worst, *(both_ways(law, near, order) / (order * rho) for order in ORDERS))
    return worst


SUPPORTS = [[1, 1], [0, 1, 1]]  # records of which the universe has more, and some several times


def over_support(monkeypatch: pytest.MonkeyPatch, records: list[int]) -> None:
    """Make every round keep its weights over these records instead of the universe."""
    listed = ListedSupport(RecordList((UNIVERSE,), np.array([records], dtype=np.uint8)))
    monkeypatch.setattr(start_module, "support_of", lambda _: listed)


def charged(game: GameParameters) -> float:
    return PRIOR.noise.rho() + data_rho(game, SIZE)


@pytest.mark.sparse(2)
@pytest.mark.full
@pytest.mark.parametrize("game", GAMES)
def test_neighbouring_tables_leak_at_most_the_sum_of_both_charges(game: GameParameters) -> None:
    assert charge_of(PRIOR.events()).rho / 1e12 == pytest.approx(PRIOR.noise.rho())
    assert 0.6 < data_part(game, charged(game)) <= 1 + FAR


def workloads_leak_less(game: GameParameters) -> bool:
    """Whether neighbouring workloads tell no more of themselves than the game alone is charged."""
    for masks, changed in MASKS:
        law, near = (started_law(game, asked(each), TABLES[0][0]) for each in (masks, changed))
        for epsilon in EPSILONS:
            allowed = (
                delta_of_rho(analyst_rho(game, SIZE), epsilon)
                if game.play == "mixed"
                else mixture_delta(analyst_mixture(game, SIZE), epsilon)
            )
            if max(hockey_stick(law, near, epsilon), hockey_stick(near, law, epsilon)) > allowed + ROUNDING:
                return False
    return True


@pytest.mark.sparse(2)
@pytest.mark.full
@pytest.mark.parametrize("game", GAMES)
def test_neighbouring_workloads_leak_at_most_the_games_charge(game: GameParameters) -> None:
    assert workloads_leak_less(game)


@pytest.mark.nightly
@pytest.mark.parametrize("records", SUPPORTS)
@pytest.mark.parametrize("game", GAMES)
def test_over_a_support_both_leak_at_most_what_they_are_charged(
    game: GameParameters, records: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    over_support(monkeypatch, records)
    assert started_law(game, asked(MASKS[0][0]), TABLES[0][0])
    assert 0.5 < data_part(game, charged(game)) <= 1 + FAR
    assert workloads_leak_less(game)


HALVED = replace(MIXED, query_step=MIXED.query_step // 2)  # so that what doubled payoffs add is not cut off


@pytest.mark.parametrize("records", SUPPORTS[1:])
def test_over_a_support_the_game_alone_leaks_most_of_its_charge_and_doubled_payoffs_more(
    records: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a standing measurement: beside one of the round's own, what the game leaks is too little to see."""
    over_support(monkeypatch, records)
    assert 0.7 < told_part(HALVED, data_rho(HALVED, SIZE), MASKS[0][1]) <= 1 + FAR
    right = Game.payoff
    monkeypatch.setattr(Game, "payoff", lambda game, places: 2 * right(game, places))
    assert told_part(HALVED, data_rho(HALVED, SIZE), MASKS[0][1]) > 1.5


@pytest.mark.nightly
def test_a_measurement_that_is_not_charged_is_caught() -> None:
    assert data_part(MIXED, data_rho(MIXED, SIZE)) > 1.2


@pytest.mark.nightly
def test_the_charge_of_an_added_record_is_caught() -> None:
    added = add_remove_rho((UNIVERSE,), (False,), NOISE.by_residual)
    assert data_part(MIXED, added + data_rho(MIXED, SIZE)) > 1.1


@pytest.mark.nightly
def test_a_prior_that_depends_on_a_workload_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    assert workloads_leak_less(SLOW)
    pulled_by_a_workload(monkeypatch)
    assert not workloads_leak_less(SLOW)


def pulled_by_a_workload(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make every prior depend on what is asked."""
    right, joined = start_module.begin, list[CompiledWorkload]()

    def kept(_: object, present: list[CompiledWorkload]) -> CompiledWorkload:
        joined[:] = present
        return present[0]

    def begin(
        start: PriorStart, setting: PublicParameters, data: Counts, seed: bytes, progress: OnStep
    ) -> start_module.Begun:
        begun = right(start, setting, data, seed, progress)
        pull: NDArray[np.int64] = joined[0].transpose(np.ones(3, dtype=np.int64))
        return replace(begun, prior=replace(begun.prior, potential=begun.prior.potential + (pull << 48)))

    monkeypatch.setattr(equilibrium, "joined", kept)
    monkeypatch.setattr(equilibrium, "begin", begin)


TOLD = [-6, 0, 4]  # differences that a standing measurement may have told


def told_part(game: GameParameters, rho: float, masks: list[int] = MASKS[0][0]) -> float:
    """What the worst pair of tables uses of `rho` after whatever a standing measurement told."""
    worst = 0.0
    for told in TOLD:
        for data, other in TABLES:
            law, near = (told_law(game, asked(masks), each, told) for each in (data, other))
            worst = max(worst, *(both_ways(law, near, order) / (order * rho) for order in ORDERS))
    return worst


def told_workloads_leak_less(game: GameParameters) -> bool:
    """Whether, after a standing measurement, neighbouring workloads tell no more than the game is charged."""
    for told in TOLD:
        for masks, changed in MASKS:
            law, near = (told_law(game, asked(each), TABLES[0][0], told) for each in (masks, changed))
            for epsilon in EPSILONS:
                allowed = delta_of_rho(analyst_rho(game, SIZE), epsilon)
                if max(hockey_stick(law, near, epsilon), hockey_stick(near, law, epsilon)) > allowed + ROUNDING:
                    return False
    return True


@pytest.mark.parametrize("game", GAMES)
def test_after_a_standing_measurement_tables_leak_at_most_the_games_charge(game: GameParameters) -> None:
    assert 0 < told_part(game, data_rho(game, SIZE)) <= 1 + FAR


@pytest.mark.parametrize("game", [MIXED, SLOW])
def test_after_a_standing_measurement_workloads_leak_at_most_the_games_charge(game: GameParameters) -> None:
    assert told_workloads_leak_less(game)


def test_a_standing_measurement_that_is_quietly_made_again_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    assert told_part(SLOW, data_rho(SLOW, SIZE)) <= 1 + FAR

    def again(start: PriorParameters, _: PublicParameters, data: Counts, seed: bytes) -> Measured:
        return measure(data, start.noise, seed, "again")

    monkeypatch.setattr(start_module, "measured_for", again)
    assert told_part(SLOW, data_rho(SLOW, SIZE)) > 1.5


def test_a_standing_prior_that_depends_on_a_workload_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    pulled_by_a_workload(monkeypatch)
    assert not told_workloads_leak_less(SLOW)
