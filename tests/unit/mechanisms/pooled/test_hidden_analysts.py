"""What hides analysts from one another in `pooled`: noise on each count of votes, slots for all, and charges."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
import pytest

from equipoise.accounting import repair_places_delta
from equipoise.model.accounts import Budget
from equipoise.model.rounds import Share
from equipoise.model.synopsis import Synopsis
from equipoise.queries.schema import Schema
from equipoise.queries.statements import Marginal
from equipoise.queries.workload_compiler import compile_workload
from equipoise_server.datasets.dense_counts import DenseCounts
from equipoise_server.mechanisms.interface import GRID_BITS, PublicParameters
from equipoise_server.mechanisms.noise_calibration import GaussianNoise, LaplaceNoise
from equipoise_server.mechanisms.pooled import outside
from equipoise_server.mechanisms.pooled.demand import Demand, demand_parts
from equipoise_server.mechanisms.repair.analyst_repair import AnalystRepairParameters, repair_analysts
from equipoise_server.mechanisms.repair.analyst_repair_plan import plan_analyst_repair
from equipoise_server.mechanisms.repair.repair_places import RepairPlaces
from equipoise_server.mechanisms.repair.statement_repair import RepairParameters
from equipoise_server.randomness.discrete_laplace import DiscreteLaplace
from equipoise_server.randomness.stream import KeyedStream

SCHEMA = Schema.from_json('{"a": 3, "b": 4}')
SHARES = tuple(Share(f"analyst-{place}", 1, 12) for place in range(50))
SETTING = PublicParameters(
    10**5, 12, SHARES, "analyst", Budget(1.0, 1e-9), Budget(4.0, 1e-6), 0.05, {}, SCHEMA.sizes
)
PLACES = RepairPlaces(5, Fraction(1, 3), 60)


def repairs() -> AnalystRepairParameters:
    return plan_analyst_repair(SETTING, 0.05, PLACES, Fraction(1, 10))


@pytest.mark.parametrize("noise", [GaussianNoise(Fraction(100)), LaplaceNoise(Fraction(1, 20))], ids=str)
def test_each_count_of_votes_has_noise_of_its_own(noise: GaussianNoise | LaplaceNoise) -> None:
    """Else the difference of two counts would be told as it is."""
    votes = np.arange(0, 100_000, 1000)
    noisy = Demand(2, noise, 0).noisy(votes, KeyedStream.derive(bytes(32), "votes"))
    assert len(set((noisy - votes).tolist())) > 10


def test_the_cutting_of_every_count_s_noise_is_charged() -> None:
    """A number of Laplace noise is within `2^-128` for each of its coins, and for what is cut, of the ideal law."""
    noise, sets = LaplaceNoise(Fraction(2)), 400
    law = noise.law(2)
    assert isinstance(law, DiscreteLaplace)
    cut = sets * Fraction(2 * law.digits + 2, 2**128)
    charged = sum((part.amounts()[2] for part in demand_parts(Demand(2, noise, 0), sets, 1.0)), Fraction(0))
    assert charged >= cut * Fraction(1 + math.exp(2))


def test_the_cap_on_places_is_charged_to_the_analysts() -> None:
    parts = outside.repair_analyst_parts(SETTING, repairs())
    charged = sum((part.amounts()[2] for part in parts), Fraction(0))
    assert charged >= repair_places_delta(PLACES.epsilon, PLACES.cap - PLACES.target, 4.0) > 1e-9


def test_the_absent_keep_their_slots_among_those_who_ask(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else who is absent would move the slots of all others, which no noise hides."""
    slots: list[Sequence[str]] = []

    def noted(parameters: AnalystRepairParameters, analysts: Sequence[str], *rest: object) -> object:
        slots.append(analysts)
        return repair_analysts(parameters, analysts, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(outside, "repair_analysts", noted)
    table = DenseCounts(np.array([10**5] + [0] * 11), SCHEMA.sizes)
    asked = {"analyst-7": compile_workload([Marginal(("a", "b"))], SCHEMA)}
    synopsis = Synopsis.of_cells(np.zeros(100, dtype=np.int64), SCHEMA.sizes)
    assert list(outside.repair_outside(repairs(), SETTING, table, asked, synopsis, bytes(32))) == ["analyst-7"]
    assert slots == [[share.analyst for share in SHARES]]


@pytest.mark.parametrize("widths", [(5, 1, 1), (1, 5, 1), (1, 1, 5), (3, 5, 4)])
def test_a_repair_promises_no_less_than_the_widest_of_its_intervals(widths: tuple[int, int, int]) -> None:
    certified, *fresh = (width << GRID_BITS - 8 for width in widths)
    parameters = RepairParameters(
        threshold=1,
        test_epsilon=Fraction(1),
        noise=LaplaceNoise(Fraction(1)),
        cut_offs={"analyst-0": 1},
        certified_half_width=certified,
        noise_half_widths=(fresh[0], fresh[1]),
    )
    assert outside.repair_promise(parameters) == max(widths) / 256
