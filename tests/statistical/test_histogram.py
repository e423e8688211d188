"""`histogram`, enumerated: what a record shows in noisy cells, and what is charged; its half-widths; and faults."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from harness.exact_game import Law, masks_workload, table_workload
from numpy.typing import NDArray
from statistical.exact_noise import keeps_to, noise_law, use_of
from statistical.exact_pipeline import SEED, Choices, Pair, clipped_noise, enumerated, every_run

from equipoise.accounting import Cost
from equipoise.model.accounts import Budget
from equipoise.model.rounds import MechanismPlan, Share
from equipoise.queries.workload_compiler import CompiledWorkload
from equipoise_server.datasets.dense_counts import DenseCounts
from equipoise_server.mechanisms import calibration
from equipoise_server.mechanisms.histogram import mechanism as histogram_mechanism
from equipoise_server.mechanisms.histogram import plan as histogram_plan
from equipoise_server.mechanisms.histogram.mechanism import Histogram
from equipoise_server.mechanisms.histogram.plan import HistogramParameters
from equipoise_server.mechanisms.interface import GRID_BITS, PublicParameters
from equipoise_server.mechanisms.weighted_noise_tail import sum_reach
from equipoise_server.randomness.discrete_gaussian import DiscreteGaussian
from equipoise_server.randomness.discrete_laplace import DiscreteLaplace

REACH = 7  # of the noise that is enumerated; what lies beyond is taken together there
SETTING = PublicParameters(
    records=3,
    universe_size=2,
    shares=(Share("a", 1, 2, 2), Share("b", 1, 1, 1)),
    unit="query",
    data_budget=Budget(6.0, 0.01),
    analyst_budget=Budget(1.0, 0.01),
    beta=0.1,
    options={},
)
# The smaller delta, the less Gaussian noise can be had for an epsilon.
SETTINGS = {"gaussian": SETTING, "laplace": replace(SETTING, data_budget=Budget(6.0, 1e-4))}
TABLE, CELL, OTHER = table_workload([], 2), masks_workload([1], 2), masks_workload([2], 2)
Counts = NDArray[np.int64]
both = pytest.mark.parametrize("law", SETTINGS)


def cells_law(setting: PublicParameters, plan: MechanismPlan, histogram: Counts) -> Law:
    """The law of the noisy cells, from which everything is computed."""
    counts = CompiledWorkload.counts

    def program(choices: Choices) -> tuple[int, ...]:
        seen: list[Counts] = []

        def spy(workload: CompiledWorkload, cells: Counts) -> Counts:
            seen.append(cells.copy())
            return counts(workload, cells)

        with enumerated(choices, REACH), pytest.MonkeyPatch.context() as patches:
            patches.setattr(CompiledWorkload, "counts", spy)
            Histogram().run(setting, plan, DenseCounts(histogram), {"b": CELL}, SEED, lambda *_: None)
        return tuple(seen[0].tolist())

    return dict(every_run(program))


def pairs(law: str) -> Iterator[Pair]:
    setting = SETTINGS[law]
    plan = Histogram().plan(setting)
    laws = [cells_law(setting, plan, np.array([ones, 3 - ones])) for ones in (1, 2)]
    yield Pair.of(laws[0], laws[1])


def a_record_shows_no_more_than_is_charged(law: str) -> bool:
    cost = Histogram().plan(SETTINGS[law]).data_cost
    return all(keeps_to(inner(pair), cost) for pair in pairs(law))


def inner(pair: Pair) -> Pair:
    """Without outcomes of one law alone, which only taking far noise together makes; they weigh next to nothing."""
    seen = (pair.ours > 0) & (pair.theirs > 0)
    assert max(float(side[~seen].sum()) for side in (pair.ours, pair.theirs)) < 1e-6
    return Pair(pair.ours[seen], pair.theirs[seen])


@both
def test_the_guarantees_are_what_is_enumerated(law: str) -> None:
    written = " ".join(str(Histogram.__doc__).split())
    plan = Histogram().plan(SETTINGS[law])
    noise = HistogramParameters.from_json(plan.parameters).noise
    assert noise.name == law
    drawn = noise.law(2)
    if isinstance(drawn, DiscreteLaplace):
        assert "discrete Laplace noise of scale `2 / epsilon` on each cell is epsilon-DP" in written
        assert plan.data_cost.epsilon == math.ceil(10**12 * 2 * drawn.rate)
    else:
        assert isinstance(drawn, DiscreteGaussian)
        assert "discrete Gaussian noise of variance `v` costs `1 / v` in zCDP" in written
        assert plan.data_cost.rho == math.ceil(10**12 / drawn.variance)


@pytest.mark.thin(2)
@both
def test_a_record_shows_what_is_charged_and_no_more(law: str) -> None:
    cost, seen = Histogram().plan(SETTINGS[law]).data_cost, [inner(pair) for pair in pairs(law)]
    assert all(keeps_to(pair, cost) for pair in seen)
    assert max(use_of(pair, cost) for pair in seen) > 0.9


@pytest.mark.thin(2)
@both
def test_an_analyst_shows_another_nothing(law: str) -> None:
    setting = SETTINGS[law]
    plan, data = Histogram().plan(setting), np.array([1, 2])
    asked = [{"a": TABLE, "b": CELL}, {"a": TABLE, "b": OTHER}, {"a": TABLE}]
    laws = [noise_law(Histogram(), setting, plan, data, each, ["a"], REACH) for each in asked]
    assert laws[0] == laws[1] == laws[2]
    assert "answers are functions of the noisy cells, which know no query" in " ".join(
        str(Histogram.__doc__).split()
    )
    assert plan.analyst_cost == Cost()


def with_law(patches: pytest.MonkeyPatch, change: Callable[[int], int], scale: Fraction) -> None:
    """Noise for cells that are believed to move otherwise, or of another scale."""
    law_of = calibration.noise_distribution

    def other(noise: object, moved: int) -> DiscreteLaplace | DiscreteGaussian:
        law = law_of(noise, change(moved))  # type: ignore[arg-type]
        if isinstance(law, DiscreteLaplace):
            return DiscreteLaplace(law.rate / scale)
        assert isinstance(law, DiscreteGaussian)
        return DiscreteGaussian(law.variance * scale**2)

    for module in (histogram_plan, histogram_mechanism):
        patches.setattr(module, "noise_distribution", other)


def column_norm(patches: pytest.MonkeyPatch) -> None:
    """What adding a record moves: one cell by one, half of what replacing it does."""
    with_law(patches, lambda moved: moved // 2, Fraction(1))


def scaled_noise(patches: pytest.MonkeyPatch) -> None:
    """Nine tenths of the noise."""
    with_law(patches, lambda moved: moved, Fraction(9, 10))


@pytest.mark.sparse(4)
@pytest.mark.full
@both
@pytest.mark.parametrize("switch", [column_norm, scaled_noise])
def test_the_mutant_is_caught(
    law: str, switch: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    switch(monkeypatch)
    assert not a_record_shows_no_more_than_is_charged(law)


@pytest.mark.parametrize("noise", [DiscreteLaplace(Fraction(1, 2)), DiscreteGaussian(Fraction(5))])
@pytest.mark.parametrize("cells", [(1, 6), (3, 6), (5, 6), (1, 2)])
@pytest.mark.parametrize("chance", [Fraction(1, 10), Fraction(1, 1000), Fraction(1, 10**6)])
def test_sums_reach_no_further_than_their_bound(
    noise: DiscreteLaplace | DiscreteGaussian, cells: tuple[int, int], chance: Fraction
) -> None:
    """The exact law of the sum that a query's error is: `c` cells with one weight, the others with another."""
    covered, size = cells
    reach = float(sum_reach(noise, np.array([covered * (size - covered) / size]), chance)[0])
    values, masses = clipped_noise(noise, 60)
    assert values == list(range(-60, 61))
    sums = [np.ones(1), np.ones(1)]
    for kind, count in enumerate((covered, size - covered)):
        for _ in range(count):
            sums[kind] = np.convolve(sums[kind], masses)
    inside, outside = (np.arange(len(each)) - len(each) // 2 for each in sums)
    errors = np.abs(np.subtract.outer(inside * (size - covered), outside * covered) / size)
    missed = float(np.multiply.outer(sums[0], sums[1])[errors > reach].sum())
    assert missed <= chance
    # And not idle: a third of it would be no bound.
    assert float(np.multiply.outer(sums[0], sums[1])[errors > reach / 3].sum()) > chance


BETA, ROUNDS = 0.1, 200


def rounds_beyond_the_promise(mask: int) -> int:
    """For a query on these of 64 possible records, where the share declares queries on one, or on all but one."""
    asked = masks_workload([mask], 64)
    share, budget = Share("a", 1, 1, 1, support=1), Budget(1.0, 1e-4)
    setting = replace(SETTING, records=640, universe_size=64, shares=(share,), data_budget=budget, beta=BETA)
    plan, histogram = Histogram().plan(setting), np.full(64, 10, dtype=np.int64)
    truth, beyond = asked.counts(histogram) / 640, 0
    for seed in range(ROUNDS):
        outcome = Histogram().run(
            setting, plan, DenseCounts(histogram), {"a": asked}, seed.to_bytes(32), lambda *_: None
        )
        beyond += abs(outcome.answers["a"].values[0] / 2**GRID_BITS - truth[0]) > plan.max_half_width
    return int(beyond)


@pytest.mark.nightly
def test_a_declared_support_is_promised_for_and_kept_to(monkeypatch: pytest.MonkeyPatch) -> None:
    """What covers more is refused before anything is drawn, and where it were not, the promise would fail."""
    one, all_but_one, half = 1, 2**64 - 2, 2**32 - 1
    assert rounds_beyond_the_promise(one) <= BETA * ROUNDS
    assert rounds_beyond_the_promise(all_but_one) <= BETA * ROUNDS
    with pytest.raises(ValueError, match="larger than its analyst's share"):
        rounds_beyond_the_promise(half)
    monkeypatch.setattr(CompiledWorkload, "support", 0)
    assert rounds_beyond_the_promise(half) > BETA * ROUNDS


def test_a_query_on_everybody_is_answered_exactly() -> None:
    setting = replace(SETTING, shares=(Share("a", 1, 1),))
    plan, asked = Histogram().plan(setting), {"a": masks_workload([3], 2)}
    for seed in range(8):
        outcome = Histogram().run(
            setting, plan, DenseCounts(np.array([1, 2])), asked, seed.to_bytes(32), lambda *_: None
        )
        assert outcome.answers["a"].values.tolist() == [1 << GRID_BITS]
