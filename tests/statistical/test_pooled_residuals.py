"""`pooled` by residuals on a tiny instance: its cost to the data, which analysts do not pay, and its intervals.

A discrete Gaussian on an integer that moves by v diverges by exactly `a v^2 / 2t` at every whole order a, so that
the cost of a pair of records is a sum over what each released integer moves by. The pairs are all there are.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from unittest.mock import patch

import numpy as np
import pytest
from harness.naive_residuals import add_remove_rho
from numpy.typing import NDArray
from scipy.stats import binom
from statistical.exact_pipeline import SEED, Workloads
from statistical.exact_pooled import OPTIONS, Round, planned, rounds_missed, tiny

from equipoise import accounting
from equipoise.accounting import RHO_UNIT, Cost
from equipoise.model.accounts import Budget
from equipoise.residuals import axis_bases
from equipoise.residuals.noise import ResidualNoise
from equipoise_server.datasets.counts import Counts
from equipoise_server.datasets.dense_counts import DenseCounts
from equipoise_server.mechanisms.interface import PublicParameters
from equipoise_server.mechanisms.pooled import mechanism
from equipoise_server.mechanisms.pooled.demand import votes_of
from equipoise_server.mechanisms.pooled.plan import PooledParameters
from equipoise_server.mechanisms.pooled.released import Released
from equipoise_server.mechanisms.residuals.measurement import measure
from equipoise_server.randomness.discrete_gaussian import DiscreteGaussian
from equipoise_server.randomness.stream import KeyedStream

DATA, ANALYST = Budget(4.0, 0.05), Budget(8.0, 1e-6)
MANY = (900, 100, 0, 1000)
ASKED, OTHERWISE = {"a": "x", "b": "xy"}, {"a": "x", "b": "yy"}
Switch = Callable[[pytest.MonkeyPatch], None]


def round_of(counts: tuple[int, ...], asked: dict[str, str], unit: str = "query", ways: int = 2) -> Round:
    setting = tiny(unit, {"a": 1, "b": 2}, sum(counts), DATA, ANALYST)
    return planned(replace(setting, options={**OPTIONS, "ways": ways, "residuals": 1}), counts, asked)


def noise_of(played: Round) -> ResidualNoise:
    noise = played.parameters.residuals
    assert noise is not None
    return noise


def released_integers(noise: ResidualNoise, cell: int) -> tuple[NDArray[np.int64], list[Fraction]]:
    """What is released of one record without noise, and the variance that each integer's noise would have."""
    variances: list[Fraction] = []

    def recorded(law: DiscreteGaussian, count: int, _: object) -> NDArray[np.int64]:
        variances.extend([law.variance] * count)
        return np.zeros(count, dtype=np.int64)

    table = np.zeros(4, dtype=np.int64)
    table[cell] = 1
    with patch.object(DiscreteGaussian, "draw", recorded):
        measured = measure(DenseCounts(table, noise.sizes), noise, SEED, "test")
    # The sets come in the order in which the table is summed, which is the same for all records.
    order = [axes for axes, _ in DenseCounts(table, noise.sizes).marginals(noise.family.sets)]
    return np.concatenate([measured.numbers[axes].reshape(-1) for axes in order]), variances


def every_pair_keeps_to_the_charge() -> bool:
    """Whether all pairs of records keep to what the plan charges, and the plan to its budget."""
    for ways in (1, 2):
        played = round_of((1, 0, 0, 1), ASKED, ways=ways)
        seen = [released_integers(noise_of(played), cell) for cell in range(4)]
        for (one, variances), (other, _) in itertools.combinations(seen, 2):
            moves = (one - other).tolist()
            cost = sum((Fraction(m * m) / (2 * v) for m, v in zip(moves, variances, strict=True)), Fraction(0))
            if cost * RHO_UNIT > played.plan.data_cost.rho:
                return False
    return True


def test_the_residuals_cost_the_data_what_is_charged() -> None:
    assert every_pair_keeps_to_the_charge()
    played = round_of((1, 0, 0, 1), ASKED)
    charged = Fraction(played.plan.data_cost.rho, RHO_UNIT)
    assert charged >= Fraction(noise_of(played).rho()) > charged * Fraction(999, 1000)


def released(played: Round, viewers: str, seed: bytes = SEED) -> list[list[int]]:
    """All that a run shows to viewers."""
    outcome = mechanism.Pooled().run(
        played.setting,
        played.plan,
        DenseCounts(played.histogram, played.setting.attributes),
        played.workloads,
        seed,
        lambda *_: None,
    )
    columns = [column.tolist() for name in viewers for column in outcome.answers[name].columns]
    return [outcome.synopsis.cells.tolist(), *columns]


@pytest.mark.parametrize("unit", ["query", "analyst"])
def test_nothing_but_the_residuals_sees_the_data(unit: str) -> None:
    one, other = round_of((1, 0, 0, 1), ASKED, unit), round_of((2, 0, 0, 0), ASKED, unit)
    measured = measure(DenseCounts(one.histogram, (2, 2)), noise_of(one), SEED, "pooled/residuals")
    with patch.object(mechanism, "measure_residuals", lambda *_: measured):
        assert released(one, "ab") == released(other, "ab")


def nobody_sees_what_others_ask() -> bool:
    """Whether others see the same whatever b asks, for every noise: the laws are the same."""
    return all(
        released(round_of(MANY, ASKED, unit), "a", seed) == released(round_of(MANY, OTHERWISE, unit), "a", seed)
        for unit in ("query", "analyst")
        for seed in (bytes(32), SEED)
    )


def test_an_analyst_costs_and_shows_the_others_nothing() -> None:
    assert round_of(MANY, ASKED).plan.analyst_cost == Cost()
    assert nobody_sees_what_others_ask()


def weights_from_exact_votes(patches: pytest.MonkeyPatch) -> None:
    """The noise of what more are asking for is made smaller, by votes that nothing hides."""
    measured = mechanism.measured

    def leaking(
        parameters: PooledParameters, setting: PublicParameters, data: Counts, present: Workloads, seed: bytes
    ) -> Released:
        votes = np.sum([votes_of(own, "query", parameters.family.sets) for own in present.values()], axis=0)
        noise = parameters.residuals
        assert noise is not None
        scaled = [max(1, each // (1 + int(own))) for each, own in zip(noise.parameters, votes, strict=True)]
        changed = replace(parameters, residuals=ResidualNoise.of(noise.family, scaled))
        return measured(changed, setting, data, present, seed)

    patches.setattr(mechanism, "measured", leaking)


def wrong_cost(patches: pytest.MonkeyPatch) -> None:
    patches.setattr(accounting, "residuals_rho", add_remove_rho)


def uncentred(patches: pytest.MonkeyPatch) -> None:
    patches.setattr(axis_bases.Centred, "analyse", lambda basis, table, _: basis.size * table)


@pytest.mark.parametrize(
    ("check", "switch"),
    [
        (nobody_sees_what_others_ask, weights_from_exact_votes),
        (every_pair_keeps_to_the_charge, wrong_cost),
        (every_pair_keeps_to_the_charge, uncentred),
    ],
    ids=["weights from exact votes", "q_A of an added record", "uncentred integers"],
)
def test_the_mutant_is_caught(check: Callable[[], bool], switch: Switch, monkeypatch: pytest.MonkeyPatch) -> None:
    switch(monkeypatch)
    assert not check()


def test_every_stream_is_read_once() -> None:
    derive, seen = KeyedStream.derive, list[tuple[str, ...]]()

    def spy(seed: bytes, *labels: str) -> KeyedStream:
        seen.append(labels)
        return derive(seed, *labels)

    with patch.object(KeyedStream, "derive", spy):
        released(round_of(MANY, ASKED), "")
    assert len(seen) == len(set(seen)) == 3


@pytest.mark.full
def test_rounds_fail_no_more_often_than_beta() -> None:
    """Beta 0.1, 200 rounds; and intervals of a third the size would fail more often, so this test can tell."""
    setting = tiny("query", {"a": 1, "b": 2}, 2000, Budget(1.0, 1e-6), ANALYST)
    options = {**OPTIONS, "ways": 2, "residuals": 1, "synopsis": 1 << 12}
    played = planned(replace(setting, options=options), MANY, ASKED)
    missed, missed_shortened = rounds_missed(played, 200, 1 / 3)
    assert missed <= binom.isf(1e-9, 200, 0.1) < missed_shortened
