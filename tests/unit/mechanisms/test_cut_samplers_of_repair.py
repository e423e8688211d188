"""The cutting of every sampler of repair is counted: of each round of each place, and of the test at every slot."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from numpy.typing import NDArray

from equipoise.model.accounts import Budget
from equipoise.model.rounds import Share
from equipoise_server.mechanisms.equilibrium.cost_model import Size
from equipoise_server.mechanisms.interface import PublicParameters
from equipoise_server.mechanisms.repair.analyst_repair_plan import (
    places_truncation,
    plan_analyst_repair,
    repair_data_cost,
)
from equipoise_server.mechanisms.repair.repair_places import RepairPlaces
from equipoise_server.randomness.discrete_laplace import DiscreteLaplace
from equipoise_server.randomness.stream import KeyedStream

SHARES = tuple(Share(f"analyst-{place}", 4, 4) for place in range(60))
SETTING = PublicParameters(
    10**5, 64, SHARES, "analyst", Budget(1.0, 1e-9), Budget(4.0, 1e-6), 0.05, {"repair_rounds": 24}, (8, 8)
)
PLACES = RepairPlaces(5, Fraction(1, 3), 12)


def cut(law: DiscreteLaplace) -> Fraction:
    """How far one number is from its ideal law: `2^-128` for each of its coins, and for what is cut."""
    return Fraction(2 * law.digits + 2, 2**128)


def test_every_round_of_every_place_is_counted() -> None:
    planned = plan_analyst_repair(SETTING, 0.05, PLACES, Fraction(1, 10))
    weights = planned.weights
    assert weights.rounds == 24
    run = 24 * cut(weights.measure_noise) + cut(weights.certify_noise)
    assert repair_data_cost(planned, Size.of(SETTING))[1] >= 60 * cut(planned.test_noise) + 12 * run


def test_every_number_that_is_drawn_to_hide_places_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: list[int] = []
    draw = DiscreteLaplace.draw

    def counting(self: DiscreteLaplace, count: int, stream: KeyedStream) -> NDArray[np.int64]:
        drawn.append(count)
        return draw(self, count, stream)

    monkeypatch.setattr(DiscreteLaplace, "draw", counting)
    PLACES.granted(np.ones(60, dtype=np.bool_), KeyedStream.derive(bytes(32), "places"))
    assert sum(drawn) > 60
    counted = places_truncation(PLACES, Size.of(SETTING))
    assert counted >= sum(drawn) * cut(DiscreteLaplace(PLACES.epsilon))
