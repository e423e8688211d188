"""The residual measurement on tiny universes: its exact law on every pair of neighbours against its charge.

The law is enumerated from what the run really does: the integers that it releases without noise, and the law that
it draws each one's noise from. Faults are switched on from here, and the same checks catch them.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from functools import cache

import numpy as np
import pytest
from harness.naive_residuals import add_remove_rho
from numpy.typing import NDArray
from scipy.special import logsumexp

from equipoise import accounting
from equipoise.accounting import residuals
from equipoise.accounting.residuals import PairTypes
from equipoise.residuals import axis_bases
from equipoise.residuals.family import ResidualFamily
from equipoise.residuals.noise import ResidualNoise
from equipoise_server.datasets.dense_counts import DenseCounts
from equipoise_server.mechanisms.residuals.allocation import least_summed
from equipoise_server.mechanisms.residuals.measurement import measure
from equipoise_server.randomness.discrete_gaussian import DiscreteGaussian
from equipoise_server.randomness.stream import KeyedStream

ORDERS = (1.5, 2.0, 4.0, 16.0)
RHO = 0.05
SEED = b"\x06" * 32
TINY = 1e-9
# Sizes, ordered axes, sets: all attributes may differ, some, or one.
Case = tuple[tuple[int, ...], tuple[int, ...], list[tuple[int, ...]]]
CASES: list[Case] = [
    ((2, 3), (), [(0, 1)]),
    ((2, 2, 2), (), [(0, 1), (0, 2), (1, 2)]),
    ((5,), (0,), [(0,)]),
    ((2, 6), (1,), [(0, 1)]),
]
Switch = Callable[[pytest.MonkeyPatch], None]


def noise_for(case: Case) -> ResidualNoise:
    sizes, ordered, sets = case
    return least_summed(ResidualFamily.closed(sizes, sets, ordered), RHO).noise


def run(noise: ResidualNoise, cell: int, marked: bool) -> tuple[NDArray[np.int64], list[DiscreteGaussian]]:
    """What is released of a table of one record, and the laws that were drawn from, in the order of draws.

    Draws are 0, or (`marked`) 1, 2, 3 and so on.
    """
    laws: list[DiscreteGaussian] = []

    def known(law: DiscreteGaussian, count: int, _: object) -> NDArray[np.int64]:
        laws.extend([law] * count)
        return np.arange(len(laws) - count, len(laws)) + 1 if marked else np.zeros(count, dtype=np.int64)

    table = np.zeros(math.prod(noise.sizes), dtype=np.int64)
    table[cell] = 1
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(DiscreteGaussian, "draw", known)
        measured = measure(DenseCounts(table, noise.sizes), noise, SEED, "test")
    return np.concatenate([measured.numbers[axes].reshape(-1) for axes in noise.family.sets]), laws


def released(noise: ResidualNoise, cell: int) -> tuple[NDArray[np.int64], list[DiscreteGaussian]]:
    """All released integers without noise, and the law of each one's noise."""
    exact, laws = run(noise, cell, marked=False)
    marks, _ = run(noise, cell, marked=True)
    return exact, [laws[mark - 1] for mark in (marks - exact).tolist()]


@cache
def divergence(law: DiscreteGaussian, shift: int, order: float) -> float:
    """The Renyi divergence of the law that is drawn from itself moved by `shift`, by enumeration."""
    masses = law.law()
    logs = {number: math.log(mass) for number, mass in masses.items() if mass > 1e-50}
    both = [(logs[number], logs[number + shift]) for number in logs if number + shift in logs]
    return float(logsumexp([order * one + (1 - order) * other for one, other in both])) / (order - 1)


def part_used(case: Case) -> float:
    """What the worst pair of records uses of the charge, at the worst order: at most 1 where the charge holds."""
    noise = noise_for(case)
    seen = [released(noise, cell) for cell in range(math.prod(noise.sizes))]
    worst = 0.0
    for (one, laws), (other, _) in itertools.combinations(seen, 2):
        for order in ORDERS:
            cost = sum(divergence(law, abs(int(m)), order) for law, m in zip(laws, one - other, strict=True) if m)
            worst = max(worst, cost / (order * noise.rho()))
    return worst


def every_integer_has_its_own_noise() -> bool:
    """What is released is integers that depend on the table alone, with one draw of its own added to each."""
    noise = noise_for(CASES[0])
    exact, laws = run(noise, 3, marked=False)
    marks, _ = run(noise, 3, marked=True)
    return np.array_equal(np.sort(marks - exact), np.arange(len(exact)) + 1) and len(laws) == len(exact)


def every_pair_keeps_to_the_charge() -> bool:
    return all(part_used(case) <= 1 + TINY for case in CASES)


@pytest.mark.thin(3)
@pytest.mark.parametrize("case", CASES, ids=str)
def test_no_pair_of_records_costs_more_than_is_charged_and_the_worst_costs_all_of_it(case: Case) -> None:
    assert 1 - 1e-6 < part_used(case) <= 1 + TINY


def test_what_is_released_is_the_exact_integers_with_independent_noise() -> None:
    assert every_integer_has_its_own_noise()


def cost_of_an_added_record(patches: pytest.MonkeyPatch) -> None:
    patches.setattr(accounting, "residuals_rho", add_remove_rho)


def uncentred_integers(patches: pytest.MonkeyPatch) -> None:
    patches.setattr(axis_bases.Centred, "analyse", lambda basis, table, _: basis.size * table)


def halved_level(patches: pytest.MonkeyPatch) -> None:
    right = residuals.pair_types

    def forgetful(size: int, ordered: bool) -> PairTypes:
        types = right(size, ordered)
        weights = np.ones(types.first.shape[1])
        weights[-1] = 0.5 if ordered else 1.0
        return PairTypes(types.first * weights, types.second * weights, types.product * weights)

    patches.setattr(residuals, "pair_types", forgetful)


def noise_before_centring(patches: pytest.MonkeyPatch) -> None:
    analyse = axis_bases.Centred.analyse

    def noisy(basis: axis_bases.Centred, table: NDArray[np.int64], place: int) -> NDArray[np.int64]:
        law = DiscreteGaussian(noise_for_cells)
        drawn = law.draw(table.size, KeyedStream.derive(SEED, "cells"))
        return np.asarray(analyse(basis, table + drawn.reshape(table.shape), place))

    noise_for_cells = noise_for(CASES[0]).variance(((0, 1),)) / 4
    patches.setattr(axis_bases.Centred, "analyse", noisy)


MUTANTS: list[tuple[str, Callable[[], bool], Switch]] = [
    ("q_A of an added record", every_pair_keeps_to_the_charge, cost_of_an_added_record),
    ("integers that are not centred", every_pair_keeps_to_the_charge, uncentred_integers),
    ("a level that counts half", every_pair_keeps_to_the_charge, halved_level),
    ("noise on the table, before it is centred", every_integer_has_its_own_noise, noise_before_centring),
]


@pytest.mark.thin(2)
@pytest.mark.parametrize(("check", "switch"), [each[1:] for each in MUTANTS], ids=[each[0] for each in MUTANTS])
def test_faults_are_caught(check: Callable[[], bool], switch: Switch, monkeypatch: pytest.MonkeyPatch) -> None:
    assert check()
    switch(monkeypatch)
    assert not check()
