"""The cost of residuals against the measured matrix itself, over every pair of records."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from harness.naive_residuals import add_remove_rho
from numpy.typing import NDArray

from equipoise.accounting import residuals
from equipoise.accounting.residuals import PARAMETER_BITS, Residual, axis_levels, residuals_rho


def level_map(size: int, ordered: bool, level: int) -> NDArray[np.int64]:
    """The integer map of one level of one axis, from its definition."""
    if level == 0:
        return np.ones((1, size), dtype=np.int64)
    if not ordered:
        return size * np.eye(size, dtype=np.int64) - 1
    block = 1 << (axis_levels(size, ordered) - level + 1)
    rows = []
    for start in range(0, size, block):
        middle = start + block // 2
        if middle < size:
            row = np.zeros(size, dtype=np.int64)
            row[start:middle], row[middle : start + block] = 1, -1
            rows.append(row)
    return np.array(rows)


def all_residuals(sizes: tuple[int, ...], ordered: tuple[bool, ...]) -> list[Residual]:
    levels = [range(axis_levels(size, kind) + 1) for size, kind in zip(sizes, ordered, strict=True)]
    chosen = (
        tuple((axis, level) for axis, level in enumerate(each) if level) for each in itertools.product(*levels)
    )
    return [residual for residual in chosen if residual]


def residual_map(sizes: tuple[int, ...], ordered: tuple[bool, ...], residual: Residual) -> NDArray[np.int64]:
    levels = dict(residual)
    matrix = np.ones((1, 1), dtype=np.int64)
    for axis, size in enumerate(sizes):
        matrix = np.kron(matrix, level_map(size, ordered[axis], levels.get(axis, 0)))
    return matrix


def costs(
    sizes: tuple[int, ...], ordered: tuple[bool, ...], parameters: dict[Residual, int]
) -> tuple[float, float]:
    """The cost of the worst replaced record, and of the worst added one, by enumeration."""
    maps = {residual: residual_map(sizes, ordered, residual) for residual in parameters}
    cells = range(math.prod(sizes))
    variances = {residual: parameter / (1 << PARAMETER_BITS) for residual, parameter in parameters.items()}
    replaced = max(
        sum(((each[:, x] - each[:, y]) ** 2).sum() / (2 * variances[residual]) for residual, each in maps.items())
        for x in cells
        for y in cells
    )
    added = max(sum((each[:, x] ** 2).sum() / (2 * variances[key]) for key, each in maps.items()) for x in cells)
    return float(replaced), float(added)


CASES = [
    ((2, 3), (False, False)),
    ((2, 2, 2), (False, False, False)),
    ((4, 1, 3), (False, False, False)),
    *(((size,), (True,)) for size in range(1, 18)),
    ((5, 3), (True, False)),
    ((5, 9), (True, True)),
    ((3, 5, 2), (True, True, False)),
]


@pytest.mark.thin(6)
@pytest.mark.parametrize(("sizes", "ordered"), CASES)
def test_the_cost_is_that_of_the_worst_pair_exactly(sizes: tuple[int, ...], ordered: tuple[bool, ...]) -> None:
    random = np.random.default_rng(1)
    names = all_residuals(sizes, ordered)
    for odd_only in (False, True):
        for _ in range(3):
            parameters = {
                name: int(random.integers(1, 4000000))
                for name in names
                if not odd_only or len(name) % 2 or len(name) > 2
            }
            worst, added = costs(sizes, ordered, parameters)
            assert residuals_rho(sizes, ordered, parameters) == pytest.approx(worst, rel=3e-9, abs=1e-15)
            assert residuals_rho(sizes, ordered, parameters) >= worst
            assert added * (1 - 1e-12) <= add_remove_rho(sizes, ordered, parameters) * (1 + 1e-12)


def test_no_pair_costs_more_than_the_sum_of_the_residuals_own_worst(monkeypatch: pytest.MonkeyPatch) -> None:
    for sizes, ordered in CASES:
        parameters = dict.fromkeys(all_residuals(sizes, ordered), 7)
        exact = residuals_rho(sizes, ordered, parameters)
        with monkeypatch.context() as patch:
            patch.setattr(residuals, "MAX_PAIR_TYPES", 0)
            assert exact <= residuals_rho(sizes, ordered, parameters) <= 4 * exact
        for name in parameters:
            exact = residuals_rho(sizes, ordered, {name: 7})
            with monkeypatch.context() as patch:
                patch.setattr(residuals, "MAX_PAIR_TYPES", 0)
                # One residual in no order is bounded by its own worst pair: nothing is given away.
                bound = residuals_rho(sizes, ordered, {name: 7})
            assert bound >= exact * (1 - 1e-12)
            if not any(ordered):
                assert bound == pytest.approx(exact)


@pytest.mark.slow
def test_many_attributes_are_charged_by_the_bound() -> None:
    sizes, ordered = (2,) * 30, (False,) * 30
    pairs: dict[Residual, int] = {
        ((one, 1), (two, 1)): 16 << PARAMETER_BITS for one, two in itertools.combinations(range(30), 2)
    }
    # p = 1/4, scale 16: each pair costs at most 2 p.
    assert residuals_rho(sizes, ordered, pairs) == pytest.approx(435 / 2)
    fewer = {name: t for name, t in pairs.items() if name[1][0] < 20}
    # 10 of 20 attributes differ: 100 pairs are split, and each of these costs 2 p.
    assert residuals_rho(sizes, ordered, fewer) == pytest.approx(100 / 2)


@pytest.mark.parametrize(
    ("residual", "parameter"),
    [(((2, 1),), 1), (((0, 2),), 1), (((1, 4),), 1), (((0, 0),), 1), (((1, 1), (0, 1)), 1), (((0, 1),), 0)],
)
def test_what_is_no_residual_is_refused(residual: Residual, parameter: int) -> None:
    with pytest.raises(ValueError, match="is"):
        residuals_rho((3, 5), (False, True), {residual: parameter})
