"""The cutting of every record's draw in a game is charged, to the data and, beside that of places, to analysts."""

from __future__ import annotations

import math
from collections.abc import Iterable
from fractions import Fraction

import pytest

from equipoise.accounting import PrivacyEvent
from equipoise.model.accounts import Budget
from equipoise.model.rounds import Share
from equipoise_server.game.parameters import GameParameters
from equipoise_server.mechanisms.equilibrium.cost_model import Size
from equipoise_server.mechanisms.equilibrium.costs import analyst_parts, data_parts
from equipoise_server.mechanisms.equilibrium.parameters import EquilibriumParameters
from equipoise_server.mechanisms.interface import PublicParameters
from equipoise_server.mechanisms.repair.analyst_repair_plan import places_delta, plan_analyst_repair
from equipoise_server.mechanisms.repair.repair_places import RepairPlaces
from equipoise_server.randomness.discrete_laplace import DiscreteLaplace

SHARES = tuple(Share(f"analyst-{place}", 4, 4) for place in range(60))
SETTING = PublicParameters(10**5, 64, SHARES, "analyst", Budget(1.0, 1e-9), Budget(2.0, 1e-6), 0.05, {}, (8, 8))
SIZE = Size.of(SETTING)
GAME = GameParameters("mixed", rounds=40, batch=3000, draws=1, density=8.0, query_step=2**10, data_step=2**4)
RECORDS = Fraction(40 * 3000, 2**128)  # each is within 2^-128 of its law


def delta_of(parts: Iterable[PrivacyEvent]) -> Fraction:
    return sum((part.amounts()[2] for part in parts), Fraction(0))


def test_the_draw_of_every_record_of_every_round_is_charged_to_both() -> None:
    parameters = EquilibriumParameters(GAME, None, None)
    assert delta_of(data_parts(parameters, SIZE, SETTING)) >= RECORDS * Fraction(1 + math.exp(1))
    assert delta_of(analyst_parts(parameters, SIZE, SETTING, 1.0)) >= RECORDS * Fraction(1 + math.exp(2))


@pytest.mark.parametrize("epsilon", [Fraction(1, 3), Fraction(1)])
def test_the_draws_of_records_and_the_noise_that_hides_places_are_charged_together(epsilon: Fraction) -> None:
    places = RepairPlaces(5, epsilon, 50)
    repair = plan_analyst_repair(SETTING, 0.05, places, Fraction(1, 10))
    hiding = (1 + 60) * Fraction(2 * DiscreteLaplace(epsilon).digits + 2, 2**128)
    charged = delta_of(analyst_parts(EquilibriumParameters(GAME, repair, None), SIZE, SETTING, 1.0))
    slack = charged - places_delta(places, SETTING)
    assert slack >= (RECORDS + hiding) * Fraction(1 + math.exp(2))
