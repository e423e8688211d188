"""Faults of the game and of its accounting, and the checks that catch them. See `test_mutants`."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from harness.exact_game import game_of, hockey_stick, masks_workload, released_law
from numpy.typing import NDArray
from statistical.exact_private_weights import charge, worst_use
from statistical.extreme_games import EXTREME, extreme_analyst_leak, parameters, size_of

from equipoise import accounting
from equipoise.model.accounts import Budget
from equipoise.model.rounds import Share
from equipoise.queries.workload_compiler import CompiledWorkload
from equipoise_server.conversion import mixture_delta
from equipoise_server.datasets.dense_counts import DenseCounts
from equipoise_server.game import query_player
from equipoise_server.game.equilibrium import Game
from equipoise_server.game.parameters import GameParameters
from equipoise_server.mechanisms.equilibrium.cost_model import analyst_mixture, analyst_rho
from equipoise_server.mechanisms.equilibrium.mechanism import Equilibrium
from equipoise_server.mechanisms.interface import Outcome, PublicParameters
from equipoise_server.mechanisms.repair.private_weights import PrivateWeights


@dataclass
class Extreme:
    """A game of two rounds, charged as that; faults play or ask otherwise."""

    charged: GameParameters
    played: GameParameters

    def leak(self) -> float:
        """The largest divergence of what is played over the charge."""
        return extreme_analyst_leak(self.played, analyst_rho(self.charged, size_of(2, 3, 8)), 8)


ONCE = replace(EXTREME, rounds=2)
DRAWN = Extreme(ONCE, ONCE)


def the_records_drawn_are_charged(_: Path) -> bool:
    return DRAWN.leak() <= 1


def no_unit_holds_more_than_its_cap(_: Path) -> bool:
    return extreme_analyst_leak(EXTREME, analyst_rho(EXTREME, size_of(2, 3, 8)), 8) <= 1


def a_cap_of_two_over_s(patches: pytest.MonkeyPatch) -> None:
    project = query_player.project
    patches.setattr(query_player, "project", lambda weights, density: project(weights, density / 2))


def drawn_once_too_often(patches: pytest.MonkeyPatch) -> None:
    """A last draw after the round whose payoffs were the last to be charged."""
    patches.setattr(DRAWN, "played", replace(ONCE, rounds=3))


SAMPLED = parameters("sampled", 2, 1, 1, 4.0, 30.0, 6.0, 2)


class Asked:
    """Eight statements; the actions of the query player."""

    @staticmethod
    def actions(masks: list[int]) -> list[int]:
        """Every statement is an action of its own, also where another analyst asks the same."""
        return masks


def equal_questions_stay_apart(_: Path) -> bool:
    """Seven analysts ask the same, one asks for either of two records: sampled play leaks at most its mixture."""
    data = np.array([0, 1, 1], dtype=np.int64)
    law, near = (
        released_law(game_of(SAMPLED, masks_workload(Asked.actions([7] * 7 + [mask]), 3), data), 3)
        for mask in (2, 4)
    )
    return hockey_stick(law, near, 0.0) <= mixture_delta(analyst_mixture(SAMPLED, size_of(2, 3, 8)), 0.0)


def deduplicated(patches: pytest.MonkeyPatch) -> None:
    """Fewer units are left than the density asks for, which the projection refuses: so this widens the cap too."""
    project = query_player.project
    patches.setattr(query_player, "project", lambda weights, s: project(weights, min(s, 0.999 * len(weights))))
    patches.setattr(Asked, "actions", staticmethod(lambda masks: list(dict.fromkeys(masks))))


LEARNING: dict[str, object] = {
    "rounds": 60, "batch": 8, "density": 2, "query_rate": 0.5, "data_rate": 1.0, "game_share": 1,
}  # fmt: skip


def the_synopsis_learns(_: Path) -> bool:
    """Before any repair the synopsis is at most half as wrong as the uniform guess."""
    choose = np.random.default_rng(8)
    workload = masks_workload(choose.integers(1, 255, 20).tolist(), 8)
    histogram = np.array([6000, 2000, 1000, 500, 300, 100, 60, 40], dtype=np.int64)
    setting = PublicParameters(
        10_000, 8, (Share("a", 20, 20),), "query", Budget(8.0, 1e-6), Budget(math.inf, 1e-6), 0.1, LEARNING
    )
    outcome = run(setting, histogram, {"a": workload})
    truth = workload.counts(histogram) / 10_000
    wrong = np.abs(outcome.synopsis.counts(workload) / len(outcome.synopsis) - truth).max()
    uniform = np.abs(workload.counts(np.ones(8, dtype=np.int64)) / 8 - truth).max()
    return bool(wrong <= uniform / 2)


def flipped_sign(patches: pytest.MonkeyPatch) -> None:
    payoff = Game.payoff
    patches.setattr(Game, "payoff", lambda game, cells: -payoff(game, cells))


def dead(patches: pytest.MonkeyPatch) -> None:
    patches.setitem(LEARNING, "data_rate", 0)


def private_weights_keep_to_their_charge(_: Path) -> bool:
    eager = PrivateWeights(2, Fraction(8), Fraction(1, 8), Fraction(1), 1 << 36)
    return worst_use(eager, charge(eager)) <= 1


def uncharged_selections(patches: pytest.MonkeyPatch) -> None:
    """The coins of the exponential mechanism are thrown, and not paid for."""

    def forgetful(_: Fraction, measure: Fraction, certify: Fraction, rounds: int, places: int) -> Fraction:
        return places * (accounting.pure_rho(measure, rounds) + accounting.pure_rho(certify))

    patches.setattr(accounting, "private_weights_rho", forgetful)


def run(setting: PublicParameters, histogram: NDArray[np.int64], workloads: dict[str, CompiledWorkload]) -> Outcome:
    """One run of the shipped mechanism."""
    equilibrium = Equilibrium()
    return equilibrium.run(
        setting, equilibrium.plan(setting), DenseCounts(histogram), workloads, bytes(32), lambda *_: None
    )
