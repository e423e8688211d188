"""The residual measurement: exact integers, variances against a dense reference, and published optima."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from harness.naive_residuals import level_rows, restored_covariance
from numpy.typing import NDArray

from equipoise.accounting.residuals import diagonal
from equipoise.errors import BudgetExhausted, InvalidArgument, VerificationFailed
from equipoise.records.codec import codec_of
from equipoise.residuals.axis_bases import AxisBasis, Centred
from equipoise.residuals.family import ResidualFamily
from equipoise.residuals.haar import Haar
from equipoise.residuals.noise import ResidualNoise
from equipoise.residuals.variances import (
    cell_variances,
    product_covariances,
    product_variances,
)
from equipoise_server.datasets.dense_counts import DenseCounts
from equipoise_server.mechanisms.residuals import allocation_terms
from equipoise_server.mechanisms.residuals.allocation import least_largest, least_summed
from equipoise_server.mechanisms.residuals.measurement import measure
from equipoise_server.randomness.stream import KeyedStream

SEED = b"\x05" * 32
SIZES, ORDERED = (3, 5, 2, 1, 6), (1, 4)
SETS = [(0, 1, 4), (1, 2), (3,)]
BASES: list[AxisBasis] = [Centred(2), Centred(5), *map(Haar, (2, 3, 5, 6, 7, 8, 13))]


def random_noise() -> ResidualNoise:
    family = ResidualFamily.closed(SIZES, SETS, ORDERED)
    random = np.random.default_rng(2)
    return ResidualNoise.of(family, random.integers(1 << 8, 1 << 14, len(family.residuals)).tolist())


def histogram() -> NDArray[np.int64]:
    return np.random.default_rng(3).integers(0, 9, math.prod(SIZES))


@pytest.mark.parametrize("basis", BASES, ids=str)
def test_an_axis_is_analysed_by_its_definition_and_restored_exactly(basis: AxisBasis) -> None:
    table = np.random.default_rng(1).integers(-9, 9, (2, basis.size, 3))
    rows = level_rows(basis.size, isinstance(basis, Haar))
    numbers = basis.analyse(table, 1)
    for level, place in zip(rows[1:], basis.places, strict=True):
        assert np.array_equal(numbers[:, place], np.einsum("ij,ajb->aib", level, table))
    told = np.concatenate([table.sum(axis=1, keepdims=True), numbers], axis=1)
    assert np.array_equal(basis.restore(told, 1), table * basis.denominator)
    cells, prefixes = np.eye(basis.size), np.tril(np.ones((basis.size, basis.size)))
    strengths = np.broadcast_to(basis.cell_strengths(), (basis.size, len(rows)))
    assert basis.level_products(cells, cells) == pytest.approx(strengths)
    assert basis.level_products(prefixes, prefixes).mean(axis=0) == pytest.approx(basis.prefix_strengths())


def test_without_noise_every_table_and_box_is_the_truth() -> None:
    noise = ResidualNoise.of(random_noise().family, [1] * len(random_noise().parameters))
    data = DenseCounts(histogram(), SIZES)
    measured = measure(data, noise, SEED, "test")  # a variance of 2^-10 draws 0
    for axes in [(), (3,), (1, 3), (4,), (0, 4), (0, 1, 4)]:
        truth = histogram().reshape(SIZES).sum(axis=tuple(set(range(5)) - set(axes)))
        assert np.array_equal(measured.table(axes).counts(), truth)
    box = histogram().reshape(SIZES).sum(axis=(0, 2, 3))[1:3, [0, 5]].sum()
    assert measured.product((1, 4), [[0, 1, 1, 0, 0], [1, 0, 0, 0, 0, 1]]) == box
    with pytest.raises(ValueError, match="was not measured"):
        measured.table((0, 2))
    with pytest.raises(ValueError, match="a weight for each category"):
        measured.product((1,), [[1, 1]])
    with pytest.raises(ValueError, match="another universe"):
        measure(DenseCounts(np.ones(4, dtype=np.int64)), noise, SEED, "test")


def test_restored_tables_agree_with_one_another_exactly() -> None:
    measured = measure(DenseCounts(histogram(), SIZES), random_noise(), SEED, "test")
    whole = measured.table((0, 1, 4))
    for place, axes in enumerate([(1, 4), (0, 4), (0, 1)]):
        part = measured.table(axes)
        summed = whole.numerators.astype(object).sum(axis=place) * part.denominator
        assert (summed == part.numerators.astype(object) * whole.denominator).all()
    assert Fraction(int(whole.numerators.astype(object).sum()), whole.denominator) == histogram().sum()
    assert not np.array_equal(whole.counts(), np.rint(whole.counts()))


def test_numbers_beyond_64_bits_are_restored_exactly(monkeypatch: pytest.MonkeyPatch) -> None:
    measured = measure(DenseCounts(histogram(), SIZES), random_noise(), SEED, "test")
    usual = measured.table((0, 1, 4))
    monkeypatch.setattr("equipoise_server.mechanisms.residuals.measurement.FITS", 1)
    wide = measured.table((0, 1, 4))
    assert wide.numerators.dtype == object
    assert np.array_equal(usual.numerators, wide.numerators.astype(np.int64))


def all_alike(records: int, sizes: tuple[int, ...]) -> DenseCounts:
    """A table of one record again and again: its residuals are the largest that there are."""
    counts = np.zeros(math.prod(sizes), dtype=np.int64)
    counts[0] = records
    return DenseCounts(counts, sizes)


def exactly(sizes: tuple[int, ...]) -> ResidualNoise:
    """A variance of 2^-10 draws 0."""
    family = ResidualFamily.closed(sizes, [tuple(range(len(sizes)))])
    return ResidualNoise.of(family, [1] * len(family.residuals))


@pytest.mark.parametrize("sizes", [(64, 64), (16, 16, 16)])
def test_tables_of_many_records_are_restored_where_64_bits_do_not_hold_them(sizes: tuple[int, ...]) -> None:
    data = all_alike(2**40 - 1, sizes)
    restored = measure(data, exactly(sizes), SEED, "test").table(tuple(range(len(sizes))))
    assert int(np.abs(restored.numerators).max()) >= 2**63
    assert np.array_equal(restored.counts().reshape(-1), data.histogram)


@pytest.mark.slow
def test_tables_of_many_attributes_and_the_most_records_are_measured_exactly() -> None:
    axes = (0, 1, 2, 3, 4, 5)
    data = all_alike(2**40 - 1, (7,) * len(axes))
    numbers = measure(data, exactly((7,) * len(axes)), SEED, "test").numbers[axes]
    for cell in [(0, 0, 0, 0, 0, 0), (0, 0, 0, 0, 0, 1), (0, 2, 5, 0, 3, 1), (6, 2, 5, 4, 3, 1)]:
        assert numbers[cell] == data.records * math.prod(-1 if category else 6 for category in cell)


def test_variances_and_covariances_are_those_of_the_dense_reference() -> None:
    noise, random = random_noise(), np.random.default_rng(4)
    for axes in [(0,), (4,), (1, 2), (0, 4), (0, 1, 4)]:
        covariance = restored_covariance(noise, axes)
        shape = tuple(SIZES[axis] for axis in axes)
        cells = np.broadcast_to(cell_variances(noise, axes), shape).reshape(-1)
        assert cells == pytest.approx(np.diag(covariance), rel=1e-6)
        first = [random.normal(size=(4, size)) for size in shape]
        second = [random.normal(size=(4, size)) for size in shape]
        dense = [np.ones((4, 1)), np.ones((4, 1))]
        for number, factors in enumerate((first, second)):
            for factor in factors:
                dense[number] = np.einsum("qa,qb->qab", dense[number], factor).reshape(4, -1)
        expected = np.einsum("qa,ab,qb->q", dense[0], covariance, dense[0])
        assert product_variances(noise, axes, first) == pytest.approx(expected, rel=1e-6)
        expected = np.einsum("qa,ab,qb->q", dense[0], covariance, dense[1])
        assert product_covariances(noise, axes, first, axes, second) == pytest.approx(expected, rel=1e-6, abs=1e-3)
    # Over different sets: a query over fewer axes is one with weights 1 along the others.
    first = [random.normal(size=(4, SIZES[axis])) for axis in (0, 4)]
    second = [random.normal(size=(4, SIZES[axis])) for axis in (1, 4)]
    whole = product_covariances(
        noise,
        (0, 1, 4),
        [first[0], np.ones((4, 5)), first[1]],
        (0, 1, 4),
        [np.ones((4, 3)), second[0], second[1]],
    )
    assert product_covariances(noise, (0, 4), first, (1, 4), second) == pytest.approx(whole)


@pytest.mark.slow
def test_restored_tables_err_as_their_variances_say() -> None:
    noise, data = random_noise(), DenseCounts(histogram(), SIZES)
    truth = histogram().reshape(SIZES).sum(axis=(2, 3))
    runs = [measure(data, noise, number.to_bytes(32, "big"), "test").table((0, 1, 4)) for number in range(30)]
    errors = np.array([run.counts() - truth for run in runs])
    variances = cell_variances(noise, (0, 1, 4))
    assert (np.abs(errors.mean(axis=0)) < 5.5 * np.sqrt(variances / 30)).all()
    assert (errors**2).mean() == pytest.approx(variances.mean(), rel=0.15)


def test_no_two_residuals_read_one_stream(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor does anything else under the same seed that has another label."""
    read: list[tuple[str, ...]] = []
    derive = KeyedStream.derive

    def spy(seed: bytes, *labels: str) -> KeyedStream:
        read.append(labels)
        return derive(seed, *labels)

    monkeypatch.setattr(KeyedStream, "derive", spy)
    noise, data = random_noise(), DenseCounts(histogram(), SIZES)
    for label in ("test", "another"):
        measure(data, noise, SEED, label)
    assert len(read) == len(set(read)) == 2 * len(noise.parameters)


def root_mean_squared_error(sizes: tuple[int, ...], ways: tuple[int, ...]) -> float:
    """The closed form at privacy cost 1 for an added record, with the number of records measured as well."""
    family = ResidualFamily.closed(sizes, itertools.combinations(range(len(sizes)), max(ways)))
    asked = [axes for axes in family.sets if len(axes) in ways]
    cells = {axes: float(math.prod(sizes[axis] for axis in axes)) for axes in asked}
    use = allocation_terms.Uses.of(family, cells, "cells").total(np.array(list(cells.values())))
    diagonals = np.array([diagonal(sizes, family.is_ordered, residual) for residual in family.residuals])
    everybody = sum(1 / size for size in cells.values()) + (0 in ways)
    total = math.sqrt(everybody) + float(np.sqrt(diagonals * use).sum())
    return total / math.sqrt(sum(cells.values()) + (0 in ways))


@pytest.mark.parametrize(
    ("ways", "published"), [((2,), 6.359), ((3,), 10.515), ((0, 1, 2, 3), 10.665)], ids=["2", "3", "up to 3"]
)
def test_the_optima_of_residual_planner_on_adult_are_reached(ways: tuple[int, ...], published: float) -> None:
    sizes = (100, 100, 100, 99, 85, 42, 16, 15, 9, 7, 6, 5, 2, 2)
    assert root_mean_squared_error(sizes, ways) == pytest.approx(published, abs=6e-4)


def test_levels_answer_prefixes_of_100_bins_far_better_than_single_bins() -> None:
    identity = np.sqrt(Centred(100).prefix_strengths() * np.array([1, 0.99])).sum()
    assert identity == pytest.approx(4.64, abs=5e-3)
    assert np.sqrt(Haar(100).prefix_strengths()).sum() == pytest.approx(2.59, abs=6e-3)


def test_an_allocation_spends_its_rho_and_comes_near_the_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes, rho = (2,) * 8, 0.01
    family = ResidualFamily.closed(sizes, itertools.combinations(range(8), 3))
    for allocated in (least_summed(family, rho), least_largest(family, rho)):
        assert rho * (1 - 1e-3) < allocated.noise.rho() <= rho
        assert allocated.bound <= allocated.value <= allocated.bound * 1.003
    # Weights on the worst pairs are worth something: the diagonals alone give more variance at the same cost.
    weighed = least_summed(family, rho).value
    monkeypatch.setattr(allocation_terms, "MAX_WEIGHED_TYPES", 0)
    plain = least_summed(family, rho)
    assert weighed < 0.97 * plain.value
    assert plain.bound == 0


def test_the_largest_variance_is_levelled_by_its_scales() -> None:
    family = ResidualFamily.closed((9, 4, 2), [(0, 1), (2,)])
    even = least_largest(family, 0.1).noise
    assert cell_variances(even, (0, 1)).max() == pytest.approx(cell_variances(even, (2,)).max(), rel=0.01)
    scaled = least_largest(family, 0.1, {(0, 1): 1.0, (2,): 4.0}).noise
    assert 4 * cell_variances(scaled, (0, 1)).max() == pytest.approx(cell_variances(scaled, (2,)).max(), rel=0.01)


def test_every_machine_finds_the_same_integers() -> None:
    """A replay plans again and compares exactly. These were found once; a power of NumPy's would change them."""
    family = ResidualFamily.closed((2, 3, 5), [(0, 1), (1, 2)], (2,))
    summed = 4312321, 3407838, 695480, 1795734, 1162151, 12936961, 6057671, 5384102, 3508622
    largest = 2661674, 3592421, 1106339, 2311443, 1155722, 7985021, 7928994, 7007600, 3503800
    assert least_summed(family, 0.01).noise.parameters == summed
    assert least_largest(family, 0.01).noise.parameters == largest


def test_what_cannot_be_allocated_is_refused() -> None:
    family = ResidualFamily.closed((3, 4, 5), [(0, 1), (2,)])
    with pytest.raises(InvalidArgument, match="leave the set"):
        least_summed(family, 0.1, {(0, 1): 1.0})
    with pytest.raises(InvalidArgument, match="not one of the family"):
        least_summed(family, 0.1, {(0, 2): 1.0})
    with pytest.raises(InvalidArgument, match="above 0"):
        least_largest(family, 0.1, {(0, 1): 1.0, (2,): 0.0})
    with pytest.raises(BudgetExhausted):
        least_summed(family, 1e-30)
    assert least_summed(ResidualFamily.closed((3,), []), 0.1).noise.rho() == 0


def test_the_noise_is_recorded_in_one_form() -> None:
    noise, codec = random_noise(), codec_of(ResidualNoise)
    assert codec.from_text(codec.to_text(noise), "the plan") == noise
    for wrong in (
        codec.to_text(noise).replace('"parameters":[', '"parameters":[7,'),
        codec.to_text(noise).replace('"ordered":[1,4]', '"ordered":[4,1]'),
        codec.to_text(noise).replace("[[1,2],[0,1,4]]", "[[1,2],[0,1,4],[0]]"),
    ):
        with pytest.raises(VerificationFailed):
            codec.from_text(wrong, "the plan")


def test_a_search_over_many_attributes_asks_for_the_worst_pair_once_and_ends_at_what_is_charged() -> None:
    """With 17 attributes each step counts residuals alone, which is quick; the result costs the budget."""
    family = ResidualFamily.closed((5, 2) * 8 + (7,), [(axis, axis + 1) for axis in range(16)])
    costs = allocation_terms.Costs.of(family)
    spread = np.linspace(1.0, 2.0, len(family.residuals))
    alone = [diagonal(family.sizes, family.is_ordered, each) for each in family.residuals]
    assert costs.by_kind(spread).tolist() == [pytest.approx(math.fsum(alone / spread), rel=1e-12)]
    assert costs.worst(spread) > math.fsum(alone / spread)
    for found in (least_summed(family, 1.0), least_largest(family, 1.0)):
        assert 0.999 < found.noise.rho() <= 1.0


def test_where_a_bound_is_charged_the_search_finds_what_is_best_for_the_bound() -> None:
    """Beyond 22 attributes the charge is a sum over residuals, whose best allocation is known in closed form."""
    family = ResidualFamily.closed((2, 9) * 12, list(itertools.combinations(range(24), 2)))
    lowest = [max(1 / (family.sizes[axis] - 1) for axis, _ in each) for each in family.residuals]
    charged = [
        diagonal(family.sizes, family.is_ordered, each) * (1 + low)
        for each, low in zip(family.residuals, lowest, strict=True)
    ]
    cells = {axes: float(math.prod(family.sizes[axis] for axis in axes)) for axes in family.largest}
    use = allocation_terms.Uses.of(family, cells, "cells").total(np.array(list(cells.values())))
    best = math.fsum(np.sqrt(charged * use)) ** 2
    assert best <= least_summed(family, 1.0, asked="cells").value < best * 1.001
