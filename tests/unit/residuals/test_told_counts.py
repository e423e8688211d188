"""What a measurement tells of a grant's statements: of every row its own counts, and of parts their worst level."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from harness.naive_residuals import restored_covariance

from equipoise.accounting import RHO_UNIT
from equipoise.queries.meanings import meaning_of
from equipoise.queries.own_precision import EXACTLY, MeasuredPrecision
from equipoise.queries.predicates import attribute
from equipoise.queries.schema import Attribute, Schema
from equipoise.queries.statements import Marginal
from equipoise.queries.workload_compiler import compile_single
from equipoise.residuals.family import ResidualFamily
from equipoise.residuals.noise import ResidualNoise
from equipoise.residuals.told_counts import StandingNoise

SIZES = (3, 4, 2)
SCHEMA = Schema(tuple(Attribute(name, tuple("0123"[:size])) for name, size in zip("abc", SIZES, strict=True)))
FAMILY = ResidualFamily.closed(SIZES, [(0, 1, 2)])
NOISE = ResidualNoise.of(FAMILY, [(1 << 12) + 700 * number for number in range(len(FAMILY.residuals))])
A, B = attribute("a"), attribute("b")
PERSONS = 3


def tells(statement: Marginal) -> MeasuredPrecision:
    asked = compile_single(statement, SCHEMA)
    found = StandingNoise(NOISE, PERSONS).tells(asked, meaning_of(asked, b""))
    assert found is not None
    return found


def precision_of(variance: float) -> float:
    """Of a count with this variance, in records squared."""
    return PERSONS**2 * RHO_UNIT / 2 / variance


@pytest.mark.parametrize("names", ["abc", "bca", "cab", "cba"])
def test_counts_that_nobody_can_be_in_are_known_and_others_as_measured_in_every_order(names: str) -> None:
    impossible, possible = tells(Marginal(tuple(names), where=(A == "1") & (B != "3"))).precisions
    assert impossible == EXACTLY
    assert float(possible) == pytest.approx(precision_of(restored_covariance(NOISE, (0, 1, 2))[0, 0]), rel=1e-6)


@pytest.mark.parametrize("names", ["ac", "ca"])
def test_counts_of_more_cells_have_a_precision_of_their_own_in_every_order(names: str) -> None:
    """Where a is 0 a count is of all categories of b, and elsewhere of one."""
    few, many = tells(Marginal(tuple(names), where=(A == "0") | (B == "2"))).precisions
    ones = restored_covariance(NOISE, (0, 1, 2)).reshape(3, 4, 2, 3, 4, 2)
    assert float(few) == pytest.approx(precision_of(ones[1, 2, 0, 1, 2, 0]), rel=1e-6)
    assert float(many) == pytest.approx(precision_of(ones[0, :, 0, 0, :, 0].sum()), rel=1e-6)


@pytest.mark.parametrize("parameters", [(1 << 16, 1 << 10), (1 << 10, 1 << 16), (1 << 13, 1 << 13)])
def test_a_part_is_as_precise_as_the_least_precise_of_its_levels(parameters: tuple[int, int]) -> None:
    """So no weighted sum of its noise varies by more than a table of that precision would."""
    noise = ResidualNoise.of(ResidualFamily.closed((4,), [(0,)], (0,)), parameters)
    part = StandingNoise(noise, PERSONS).parts[0,]
    assert isinstance(part, Fraction)
    largest = float(np.linalg.eigvalsh(restored_covariance(noise, (0,)))[-1])
    assert float(part) == pytest.approx(precision_of(largest), rel=1e-6)
