"""The exact law of a round that starts from a prior: what is measured, and the records that are drawn.

The whole shipped run is called once for every outcome of the measurement's noise. The game that it comes to is
then enumerated. The universe has two records, so the released integers tell one number: their difference.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from hashlib import sha256
from unittest.mock import patch

import numpy as np
from harness.exact_game import Law, released_law, schema
from numpy.typing import NDArray

from equipoise.model.accounts import Budget
from equipoise.model.rounds import MechanismPlan, Share
from equipoise.queries.workload_compiler import CompiledWorkload
from equipoise.residuals.family import ResidualFamily
from equipoise.residuals.noise import ResidualNoise
from equipoise.residuals.released import ReleasedNumbers
from equipoise_server.datasets.dense_counts import DenseCounts
from equipoise_server.game.equilibrium import Game
from equipoise_server.game.parameters import GameParameters
from equipoise_server.mechanisms.equilibrium import mechanism as equilibrium
from equipoise_server.mechanisms.equilibrium.parameters import EquilibriumParameters, PriorStart
from equipoise_server.mechanisms.interface import PublicParameters
from equipoise_server.mechanisms.prior.plan import PriorParameters
from equipoise_server.mechanisms.repair.final_tests import FinalTestParameters
from equipoise_server.mechanisms.residuals.measurement import Measured
from equipoise_server.randomness.discrete_gaussian import DiscreteGaussian

UNIVERSE = 2
NOISE = ResidualNoise.of(ResidualFamily.closed((UNIVERSE,), [(0,)]), [8 << 10])
NO_TESTS = FinalTestParameters(0, 0, 0, 0, 1, None)
PRIOR = PriorParameters.of(NOISE)
MAX_DIFFERENCE = 24  # noisy differences beyond it are left out: nearly 5 standard deviations
PLAN = MechanismPlan("equilibrium", "{}", None, None, 1, 0, 0, 0, 0)  # type: ignore[arg-type]  # costs are unused


@cache
def differences() -> dict[int, float]:
    """The law of the difference of the two integers' noises."""
    masses = DiscreteGaussian(NOISE.variance(((0, 1),))).law()
    law: dict[int, float] = {}
    for one, mass in masses.items():
        for other, also in masses.items():
            law[one - other] = law.get(one - other, 0.0) + float(mass * also)
    return law


def started_law(
    game: GameParameters, workloads: Mapping[str, CompiledWorkload], histogram: NDArray[np.int64]
) -> Law:
    """The joint law of the noisy difference and the drawn records."""
    law: Law = {}
    truth = 2 * int(histogram[0] - histogram[1])
    for measured in range(-MAX_DIFFERENCE, MAX_DIFFERENCE + 1):
        chance = differences()[measured - truth]
        played = game_with(game, workloads, histogram, measured - truth)
        for records, probability in released_law(played, played.queries.size).items():
            law[(measured, *records)] = chance * probability
    return law


def told_law(
    game: GameParameters,
    workloads: Mapping[str, CompiledWorkload],
    histogram: NDArray[np.int64],
    measured: int,
) -> Law:
    """The law of the drawn records after a standing measurement told this noisy difference, which is even."""
    played = game_with(game, workloads, histogram, 0, np.array([measured, 0]))
    return released_law(played, played.queries.size)


def game_with(
    game: GameParameters,
    workloads: Mapping[str, CompiledWorkload],
    histogram: NDArray[np.int64],
    difference: int,
    released: NDArray[np.int64] | None = None,
) -> Game:
    """The game that the shipped run plays where the noises differ by that much, or from numbers released before."""
    shares = tuple(Share(name, own.statement_count, own.query_count) for name, own in workloads.items())
    setting = PublicParameters(
        records=int(histogram.sum()),
        universe_size=UNIVERSE,
        shares=shares,
        unit="query",
        data_budget=Budget(1.0, 1e-6),
        analyst_budget=Budget(1.0, 1e-6),
        beta=0.05,
        options={},
        attributes=schema(UNIVERSE).sizes,
    )
    prior = PRIOR
    if released is not None:
        numbers = Measured(NOISE, setting.records, {(0,): released}).to_bytes()
        setting = replace(setting, measured=numbers)
        prior = PriorParameters.of(NOISE, ReleasedNumbers("a" * 32, sha256(numbers).digest()))
    parameters = EquilibriumParameters(game, None, PriorStart(prior, 1, NO_TESTS))
    seen: list[Game] = []

    def play(found: Game, *_: object) -> NDArray[np.int64]:
        seen.append(found)
        return np.zeros(1, dtype=np.int64)

    drawn = np.array([difference, 0], dtype=np.int64)
    with (
        patch.object(DiscreteGaussian, "draw", lambda *_: drawn),
        patch.object(Game, "play", play),
    ):
        equilibrium.Equilibrium().run(
            setting,
            replace(PLAN, parameters=parameters.to_json()),
            DenseCounts(histogram, (UNIVERSE,)),
            workloads,
            bytes(32),
            lambda *_: None,
        )
    return seen[0]
