"""The prior's fit against its own equations, a naive reference, and hostile tables."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from numpy.typing import NDArray

from equipoise.queries.record_list import RecordList
from equipoise_server.mechanisms.prior import fit
from equipoise_server.mechanisms.prior.distribution import MIN_PART, Prior, floored
from equipoise_server.mechanisms.prior.fit import STRENGTH, Target, fit_potential
from equipoise_server.mechanisms.prior.support import ListedSupport, Universe

SIZES = (4, 3, 2)
PAIRS = ((0, 1), (0, 2), (1, 2))
UNIT = 2.0**48


def skewed(seed: int) -> NDArray[np.float64]:
    """A distribution with dependence of every order, over a universe of three attributes."""
    weights = np.random.default_rng(seed).gamma(0.5, size=SIZES)
    return np.asarray(weights / weights.sum())


def others(axes: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(axis for axis in range(len(SIZES)) if axis not in axes)


def targets(distribution: NDArray[np.float64], variance: float, seed: int | None = None) -> list[Target]:
    """All tables of two attributes, with noise of that variance unless there is no seed."""
    choose = np.random.default_rng(seed)
    made = []
    for axes in PAIRS:
        table = distribution.sum(axis=others(axes))
        noise = 0.0 if seed is None else choose.normal(0, math.sqrt(variance), table.shape)
        made.append(Target(axes, np.asarray(table + noise), variance))
    return made


def distribution_of(potential: NDArray[np.int64]) -> NDArray[np.float64]:
    weights = np.exp(potential / UNIT).reshape(SIZES)
    return np.asarray(weights / weights.sum())


def test_exact_tables_are_fitted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fit, "PROGRESS", 1e-3)
    potential = fit_potential(Universe(SIZES), targets(skewed(1), 1e-9))
    fitted = distribution_of(potential)
    for target in targets(skewed(1), 1e-9):
        assert np.abs(fitted.sum(axis=others(target.axes)) - target.fractions).max() < 1e-3
    assert potential.max() == 0


def test_exact_tables_give_what_iterative_proportional_fitting_gives(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fit, "PROGRESS", -math.inf)
    wanted = targets(skewed(2), 1e-12)
    naive = np.full(SIZES, 1 / math.prod(SIZES))
    for _ in range(fit.MAX_SWEEPS):
        for target in wanted:
            factors = target.fractions / naive.sum(axis=others(target.axes))
            naive *= np.expand_dims(factors, others(target.axes))
    fitted = distribution_of(fit_potential(Universe(SIZES), wanted))
    assert np.abs(fitted - naive).max() < 1e-5


@pytest.mark.full
def test_with_noise_the_fit_minimises_distance_and_divergence(monkeypatch: pytest.MonkeyPatch) -> None:
    """No distribution nearby has a smaller objective: the loss, and the pull to the uniform distribution."""
    monkeypatch.setattr(fit, "PROGRESS", -math.inf)
    monkeypatch.setattr(fit, "MAX_SWEEPS", 400)
    wanted = targets(skewed(3), 1e-4, seed=4)

    def objective(point: NDArray[np.float64]) -> float:
        loss = sum(
            float(((point.sum(axis=others(each.axes)) - each.fractions) ** 2).sum()) / 2 / each.variance
            for each in wanted
        )
        return loss + STRENGTH * float((point * np.log(point * point.size)).sum())

    fitted = distribution_of(fit_potential(Universe(SIZES), wanted))
    choose = np.random.default_rng(5)
    for _ in range(200):
        moved = fitted * np.exp(choose.normal(0, 0.05, SIZES))
        assert objective(np.asarray(moved / moved.sum())) > objective(fitted) - 1e-6


def test_many_tables_are_fitted_until_what_is_left_is_noise() -> None:
    """Where a sweep saves little of a loss that is mostly noise, it may still save far more than noise explains."""
    choose = np.random.default_rng(1)
    support = ListedSupport(RecordList((10,) * 5, choose.integers(0, 10, (5, 1 << 10)).astype(np.uint8)))
    weights, variance = choose.gamma(0.05, size=support.size), 1e-5

    def tables(numbers: NDArray[np.float64]) -> list[NDArray[np.float64]]:
        parts = (numbers / numbers.sum() * 2.0**60).astype(np.int64)
        return [support.table(axes, parts) / 2.0**60 for axes in itertools.combinations(range(5), 2)]

    truth = tables(weights)
    noisy = [each + choose.normal(0, math.sqrt(variance), each.shape) for each in truth]
    wanted = [
        Target(axes, table, variance)
        for axes, table in zip(itertools.combinations(range(5), 2), noisy, strict=True)
    ]
    fitted = tables(np.exp(fit_potential(support, wanted) / UNIT))
    assert np.mean(np.square(np.subtract(fitted, noisy))) < variance
    assert np.mean(np.abs(np.subtract(fitted, truth))) < 0.7 * np.mean(np.abs(np.subtract(noisy, truth)))


def test_noise_beyond_all_counts_leaves_a_distribution() -> None:
    """Noise a hundred times the number of records pulls nowhere: the fit stays near the uniform distribution."""
    potential = fit_potential(Universe(SIZES), targets(skewed(6), 1e4, seed=7))
    assert np.abs(distribution_of(potential) - 1 / math.prod(SIZES)).max() < 0.02


def test_hostile_tables_stay_on_the_grid() -> None:
    """Tables that contradict one another, far below zero and far above one, at almost no variance."""
    wanted = [Target(axes, np.full([SIZES[axis] for axis in axes], (-1.0) ** place * 50), 1e-12)
              for place, axes in enumerate(PAIRS)]  # fmt: skip
    prior = floored(fit_potential(Universe(SIZES), wanted))
    assert prior.weights.min() >= 1
    assert int(prior.weights.sum()) < 1 << 52


def test_no_record_falls_below_its_floor() -> None:
    potential = np.array([0, -(500 << 48), -(3 << 48), -(900 << 48)], dtype=np.int64)
    prior = floored(potential)
    exact = np.maximum(np.exp(potential / UNIT), MIN_PART * np.exp(potential / UNIT).sum() / 4)
    assert np.abs(np.exp(prior.potential / UNIT) / exact - 1).max() < 1e-9
    shares = prior.weights / prior.weights.sum()
    assert shares.min() >= MIN_PART / 4 / (1 + MIN_PART) * (1 - 1e-9)


@pytest.mark.parametrize("count", [1, 7, 1000, 1 << 18])
def test_laid_out_records_hold_every_share_to_within_one(count: int) -> None:
    prior = Prior(-np.random.default_rng(8).integers(0, 8 << 48, 500))
    cells = prior.records(count)
    assert cells.shape == (count,)
    held = np.cumsum(np.bincount(cells, minlength=500))
    share = np.cumsum(prior.weights) * (count / prior.weights.sum())
    assert np.abs(held - share).max() <= 1


def test_a_universe_adds_and_scales_along_axes() -> None:
    universe, choose = Universe(SIZES), np.random.default_rng(9)
    cells = np.stack(np.unravel_index(np.arange(universe.size), SIZES), axis=1)
    numbers = choose.integers(-5, 5, universe.size)
    for axes in [*PAIRS, (1,), (0, 1, 2)]:
        shape = [SIZES[axis] for axis in axes]
        naive = np.zeros(shape, dtype=np.int64)
        for own, number in zip(cells[:, axes].tolist(), numbers.tolist(), strict=True):
            naive[tuple(own)] += number
        assert (universe.table(axes, numbers) == naive).all()
        terms, weights, sums = choose.integers(-9, 9, shape), np.ones(universe.size), numbers.copy()
        universe.add(axes, terms, sums)
        universe.scale(axes, terms.astype(np.float64), weights)
        own_terms = terms[tuple(cells[:, axes].T)]
        assert (sums - numbers == own_terms).all()
        assert (weights == own_terms).all()
