"""`projection`, enumerated: what a record shows, and what is charged; against an exact solver; and faults."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise, product

import numpy as np
import pytest
from harness.answers import flat, half_widths
from harness.exact_game import Law, masks_workload, table_workload
from numpy.typing import NDArray
from scipy.optimize import nnls
from statistical.exact_noise import TINY, keeps_to, noise_law, use_of
from statistical.exact_pipeline import Pair

from equipoise.accounting import Cost
from equipoise.model.accounts import Budget
from equipoise.model.rounds import Share
from equipoise.queries.schema import Schema
from equipoise.queries.statements import Marginal
from equipoise.queries.workload_compiler import CompiledWorkload, compile_workload
from equipoise_server.datasets.dense_counts import DenseCounts
from equipoise_server.mechanisms.calibration import noise_distribution
from equipoise_server.mechanisms.independent_noise.mechanism import GAUSSIAN, noisy_answers, noisy_counts
from equipoise_server.mechanisms.independent_noise.plan import NoiseParameters
from equipoise_server.mechanisms.interface import GRID_BITS, Outcome, PublicParameters
from equipoise_server.mechanisms.noise_calibration import GaussianNoise
from equipoise_server.mechanisms.projection import mechanism
from equipoise_server.mechanisms.projection.mechanism import METHOD, Projection, project
from equipoise_server.randomness.discrete_gaussian import DiscreteGaussian

RECORDS = 3
SETTING = PublicParameters(
    records=RECORDS,
    universe_size=2,
    shares=(Share("a", 1, 2, 2), Share("b", 1, 1, 1)),
    unit="query",
    data_budget=Budget(5.0, 0.01),
    analyst_budget=Budget(1.0, 0.01),
    beta=0.1,
    options={},
)
TABLE, CELL, OTHER = table_workload([], 2), masks_workload([1], 2), masks_workload([2], 2)
SCHEMA = Schema.from_json('{"a": 4, "b": 3, "c": 3}')
TABLES = compile_workload([Marginal(("a", "b")), Marginal(("b", "c")), Marginal(("a", "c"))], SCHEMA)
Switch = Callable[[pytest.MonkeyPatch], None]


def table_laws() -> list[Law]:
    """What the asker of the table gets, for 0 to 3 of the records in its first cell: the fit to every noisy table.

    Noisy counts beyond -4 and 7 are taken together, for all laws alike.
    """
    parameters = NoiseParameters.from_json(Projection().plan(SETTING).parameters)
    law = noise_distribution(parameters.noise, parameters.l1_sensitivity)
    assert isinstance(law, DiscreteGaussian)
    noise, laws, fits = law.law(96), list[Law](), dict[tuple[int, int], tuple[int, ...]]()
    for ones in range(RECORDS + 1):
        cells: list[dict[int, float]] = [{}, {}]
        for cell, count in zip(cells, (ones, RECORDS - ones), strict=True):
            for drawn, mass in noise.items():
                noisy = max(-4, min(7, count + drawn))
                cell[noisy] = cell.get(noisy, 0.0) + float(mass)
        delivered: Law = {}
        for first, second in product(*cells):
            if (first, second) not in fits:
                answers = project(parameters, TABLE, np.array([first, second]), SETTING)
                fits[first, second] = flat(answers)
            seen = fits[first, second]
            delivered[seen] = delivered.get(seen, 0.0) + cells[0][first] * cells[1][second]
        laws.append(delivered)
    return laws


def a_record_shows_no_more_than_is_charged() -> bool:
    """What a run delivers is a fit to noisy counts alone, and these show of a record no more than is charged."""
    cost, laws, plan = Projection().plan(SETTING).data_cost, table_laws(), Projection().plan(SETTING)
    parameters, histogram, asked = NoiseParameters.from_json(plan.parameters), np.array([1, 2]), {"a": TABLE}
    for number in range(8):
        seed = number.to_bytes(32)
        noisy = noisy_counts(SETTING, parameters, DenseCounts(histogram), asked, seed, lambda *_: None)["a"]
        outcome = Projection().run(SETTING, plan, DenseCounts(histogram), asked, seed, lambda *_: None)
        if outcome.answers["a"].values.tolist() != project(parameters, TABLE, noisy, SETTING).values.tolist():
            return False
    return all(keeps_to(Pair.of(law, near), cost) for law, near in pairwise(laws))


def rounds(count: int) -> list[tuple[Outcome, NDArray[np.float64], NDArray[np.float64]]]:
    """Rounds of tables over 36 possible records: the outcome, the noisy fractions it starts from, and the truth."""
    choose = np.random.default_rng(20)
    seen = []
    for number in range(count):
        histogram = choose.multinomial(1500, choose.dirichlet(np.full(36, 0.3))).astype(np.int64)
        setting = tables_setting()
        plan, asked, seed = Projection().plan(setting), {"a": TABLES}, number.to_bytes(32)
        outcome = Projection().run(setting, plan, DenseCounts(histogram), asked, seed, lambda *_: None)
        parameters = NoiseParameters.from_json(plan.parameters)
        noisy = noisy_counts(setting, parameters, DenseCounts(histogram), asked, seed, lambda *_: None)["a"]
        seen.append((outcome, noisy / 1500, TABLES.counts(histogram) / 1500))
    return seen


def tables_setting() -> PublicParameters:
    share = Share("a", 3, TABLES.query_count)
    return replace(SETTING, records=1500, universe_size=36, shares=(share,), data_budget=Budget(1.0, 1e-6))


def intervals_hold() -> bool:
    """In all but a tenth of 60 rounds, for all answers at once."""
    broken = 0
    for outcome, _, truth in rounds(60):
        broken += bool(outcome.answers["a"].misses(truth).any())
    return broken <= 6


def test_the_guarantees_are_those_of_gaussian() -> None:
    plan, start = Projection().plan(SETTING), GAUSSIAN.plan(SETTING)
    assert (plan.data_cost, plan.analyst_cost, plan.parameters) == (start.data_cost, Cost(), start.parameters)
    assert plan.max_half_width == start.max_half_width
    written = " ".join(str(Projection.__doc__).split())
    assert "those of `gaussian` for the same shares" in written


@pytest.mark.nightly
def test_a_record_shows_what_is_charged_and_no_more() -> None:
    assert a_record_shows_no_more_than_is_charged()
    # Of the charge for both analysts' counts, the table of one is two thirds.
    assert use_of(Pair.of(*table_laws()[1:3]), Projection().plan(SETTING).data_cost) > 0.5


@pytest.mark.full
def test_an_analyst_shows_another_nothing() -> None:
    mechanism, histogram = Projection(), np.array([1, 2])
    plan = mechanism.plan(SETTING)
    laws = [
        noise_law(mechanism, SETTING, plan, histogram, asked, ("a",), 2)
        for asked in ({"a": TABLE}, {"a": TABLE, "b": CELL}, {"a": TABLE, "b": OTHER})
    ]
    assert all(float(np.abs(pair.ours - pair.theirs).sum()) < TINY for pair in map(Pair.of, laws[1:], laws))


def nearest(workload: CompiledWorkload, noisy: NDArray[np.float64]) -> NDArray[np.float64]:
    """The answers of the distribution that is exactly nearest: non-negative least squares, one column a record."""
    size = math.prod(workload.schema_sizes)
    columns = [workload.counts(np.bincount([cell], minlength=size).astype(np.int64)) for cell in range(size)]
    matrix = np.stack(columns, axis=1).astype(np.float64)
    solution, _ = nnls(np.vstack([matrix, np.full((1, size), 1e6)]), np.append(noisy, 1e6))
    return np.asarray(matrix @ solution)


def test_it_errs_less_than_the_noise_and_no_more_than_the_nearest_point() -> None:
    ours, theirs, noise = np.zeros(40), np.zeros(40), np.zeros(40)
    for place, (outcome, noisy, truth) in enumerate(rounds(40)):
        answers = outcome.answers["a"]
        assert set(answers.methods.tolist()) == {METHOD}
        values = answers.values / 2.0**GRID_BITS
        ours[place], theirs[place], noise[place] = (
            float(np.mean((each - truth) ** 2)) for each in (values, nearest(TABLES, noisy), noisy)
        )
    assert (theirs <= noise).all()  # the theorem of the nearest point
    assert (ours <= noise).all()
    assert float(ours.mean()) <= min(0.75 * float(noise.mean()), 1.05 * float(theirs.mean()))


def test_answers_fit_one_another_and_none_is_negative() -> None:
    for outcome, _, _ in rounds(10):
        values = outcome.answers["a"].values / 2.0**GRID_BITS
        first, second, third = values[:12].reshape(4, 3), values[12:21].reshape(3, 3), values[21:].reshape(4, 3)
        assert values.min() >= 0
        assert first.sum(axis=0) == pytest.approx(second.sum(axis=1), abs=1e-10)
        assert first.sum(axis=1) == pytest.approx(third.sum(axis=1), abs=1e-10)
        assert values[:12].sum() == pytest.approx(1, abs=1e-10)


def test_intervals_hold_and_are_those_of_the_noisy_counts() -> None:
    assert intervals_hold()
    plan = Projection().plan(tables_setting())
    parameters = NoiseParameters.from_json(plan.parameters)
    for outcome, noisy, _ in rounds(5):
        answers = outcome.answers["a"]
        plain = noisy_answers(parameters, np.rint(noisy * 1500).astype(np.int64), 1500)
        assert half_widths(answers).max() <= plan.max_half_width
        assert (answers.lows <= answers.values).all()
        assert (answers.values <= answers.highs).all()
        for name in ("lows", "highs", "standard_errors"):
            assert getattr(answers, name).tolist() == getattr(plain, name).tolist()


def test_noisy_counts_that_no_distribution_is_near_are_delivered_as_they_are() -> None:
    setting = tables_setting()
    parameters = NoiseParameters.from_json(Projection().plan(setting).parameters)
    noisy = np.full(TABLES.query_count, 1500, dtype=np.int64)
    answers = project(parameters, TABLES, noisy, setting)
    assert set(answers.methods.tolist()) == {GaussianNoise.method}
    assert set(answers.values.tolist()) == {1 << GRID_BITS}
    assert set(answers.lows.tolist()) == {(1 << GRID_BITS) - parameters.half_width}


def without_noise(patches: pytest.MonkeyPatch) -> None:
    """What is fitted are the true counts."""
    patches.setattr(
        mechanism,
        "noisy_counts",
        lambda setting, parameters, data, workloads, seed, progress: {
            name: data.count(own) for name, own in workloads.items()
        },
    )


def half_the_variance(patches: pytest.MonkeyPatch) -> None:
    """The sensitivity of half of the shares: a column's norm, where a record is replaced."""
    patches.setattr(GaussianNoise, "law", lambda noise, moved: DiscreteGaussian(noise.variance * moved / 2))


@pytest.mark.sparse(2)
@pytest.mark.full
@pytest.mark.parametrize("switch", [without_noise, half_the_variance], ids=lambda switch: switch.__name__)
def test_a_fault_in_privacy_is_caught(switch: Switch, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patches:
        switch(patches)
        assert not a_record_shows_no_more_than_is_charged()
    assert a_record_shows_no_more_than_is_charged()


@pytest.mark.full
def test_bounds_without_the_noise_s_reach_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(DiscreteGaussian, "quantile", lambda law, probability: math.ceil(law.variance**0.5))
    assert not intervals_hold()
