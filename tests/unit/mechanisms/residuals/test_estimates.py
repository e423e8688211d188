"""What a residual measurement says about queries: exact counts, and the variances of a dense reference."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from harness.naive_residuals import restored_covariance
from numpy.typing import NDArray

from equipoise.queries.predicates import Interval, attribute
from equipoise.queries.schema import Attribute, Schema
from equipoise.queries.schema_checks import bin_labels
from equipoise.queries.statements import Marginal, Statement
from equipoise.queries.workload_compiler import CompiledWorkload, compile_workload
from equipoise.residuals import query_variances
from equipoise.residuals.family import ResidualFamily
from equipoise.residuals.noise import ResidualNoise
from equipoise.residuals.query_variances import outside_of
from equipoise.residuals.variances import largest_variance
from equipoise_server.datasets.dense_counts import DenseCounts
from equipoise_server.mechanisms.residuals.estimates import estimates_of
from equipoise_server.mechanisms.residuals.measurement import Measured, measure

EDGES = (0.0, 1.0, 2.0, 3.0, 4.0, 5.0)
SCHEMA = Schema(
    (
        Attribute("a", ("0", "1", "2")),
        Attribute("b", bin_labels(EDGES), EDGES),
        Attribute("c", ("0", "1")),
        Attribute("only", ("one",)),
        Attribute("e", tuple("012345")),
    )
)
ORDERED = (1,)
SETS = [(0, 1, 4), (1, 2), (3,)]
SEED = b"\x07" * 32
a, c, e = (attribute(name) for name in "ace")
INSIDE: list[Statement] = [
    Marginal(("e", "a", "only")),
    Marginal(("b",)),
    a == "1",
    Interval("b", 1, 4) & (e == "2"),
    (a == "0") | (e == "3") & Interval("b", 0, 2) | (a == "2") & (e == "5"),
    ~((a == "1") | Interval("b", 2, 5)),
    Marginal(("a",), where=(e == "2") & Interval("b", 1, 4)),
    Marginal(("e", "a", "only"), where=(e == "1") | Interval("b", 0, 2)),
    Marginal(("a",), where=(a == "1") | (e == "4") & (a == "2")),
    Marginal(("b",), where=(c == "0") & (c == "1")),
    Marginal(("only",), where=c == "0"),
    attribute("only") == "one",
]
OUTSIDE: list[Statement] = [
    Marginal(("a", "c")),
    (c == "1") & (e == "2"),
    (a == "1") | (c == "0") & ~Interval("b", 0, 1),
    Marginal(("a",), where=c == "1"),
    Marginal(("a",), where=(e == "1") | (c == "1")),
]


def measured(parameter: int | None = None) -> Measured:
    """A table of nine records a cell at most, measured with noise of all sizes or with one parameter."""
    family = ResidualFamily.closed(SCHEMA.sizes, SETS, ORDERED)
    random = np.random.default_rng(2)
    drawn = random.integers(1 << 10, 1 << 16, len(family.residuals)).tolist()
    noise = ResidualNoise.of(family, drawn if parameter is None else [parameter] * len(drawn))
    return measure(DenseCounts(table(), SCHEMA.sizes), noise, SEED, "test")


def table() -> NDArray[np.int64]:
    return np.random.default_rng(3).integers(0, 9, math.prod(SCHEMA.sizes))


def compiled(statements: list[Statement]) -> CompiledWorkload:
    return compile_workload(statements, SCHEMA)


def weights_on(workload: CompiledWorkload, query: int, axes: tuple[int, ...]) -> NDArray[np.float64]:
    """A query's weight on each cell of a table that tells it."""
    universe = workload.transpose_sparse(np.array([query]), np.ones(1, dtype=np.int64)).reshape(SCHEMA.sizes)
    others = tuple(axis for axis in range(len(SCHEMA.sizes)) if axis not in axes)
    return np.asarray(universe.mean(axis=others).reshape(-1))


def test_without_noise_every_estimate_is_the_truth() -> None:
    workload = compiled(INSIDE)
    found = estimates_of(workload, measured(1))  # a variance of 2^-10 draws 0
    assert np.abs(found.counts - workload.counts(table())).max() < 1e-9
    assert (found.slack < 1e-6).all()


def test_many_cells_that_are_all_rounded_one_way_err_by_no_more_than_the_slack() -> None:
    """Nothing was measured but the records, 2^30: each of the 24,576 cells has as many, and ends in a third."""
    schema = Schema(
        tuple(Attribute(name, tuple(map(str, range(size)))) for name, size in (("a", 3), ("b", 64), ("c", 128)))
    )
    family = ResidualFamily.closed(schema.sizes, [(0, 1, 2)], ())
    noise = ResidualNoise.of(family, [1] * len(family.residuals))
    zeros = {axes: np.zeros([schema.sizes[axis] for axis in axes], dtype=np.int64) for axes in family.sets}
    everywhere = (a != "2") & (attribute("b") != "0") & (c != "0")
    found = estimates_of(compile_workload([everywhere], schema), Measured(noise, 1 << 30, zeros))
    truth = Fraction((1 << 30) * 2 * 63 * 127, math.prod(schema.sizes))
    assert 0 < abs(Fraction(found.counts[0]) - truth) <= Fraction(found.slack[0])


@pytest.mark.slow
def test_estimates_are_sums_of_the_restored_table_and_their_variances_the_reference_s() -> None:
    workload, told = compiled(INSIDE), measured()
    found = estimates_of(workload, told)
    statements = np.repeat(np.arange(len(INSIDE)), np.diff(workload.statement_offsets))
    for query, statement in enumerate(statements.tolist()):
        axes = (1, 2) if 2 in workload.statement_tables()[statement] else (0, 1, 4)
        covariance, cells = restored_covariance(told.noise, axes), told.table(axes).counts().reshape(-1)
        weights = weights_on(workload, query, axes)
        assert found.counts[query] == pytest.approx(float(weights @ cells), abs=1e-8)
        assert found.variances[query] == pytest.approx(float(weights @ covariance @ weights), rel=1e-6, abs=1e-4)
    assert found.variances[-1] == 0  # all records: their number is public


def test_queries_of_many_boxes_have_the_largest_variance_of_their_table(monkeypatch: pytest.MonkeyPatch) -> None:
    workload, told = compiled([*INSIDE[:6], INSIDE[7]]), measured()
    exact = estimates_of(workload, told)
    monkeypatch.setattr(query_variances, "MAX_BOXES", 1)
    bounded = estimates_of(workload, told)
    assert np.array_equal(exact.counts, bounded.counts)
    several = bounded.variances != exact.variances
    assert several.sum() == 1 + 18  # one condition, and all cells of the marginal of some records
    assert np.allclose(bounded.variances[several], largest_variance(told.noise, (0, 1, 4)))
    assert (bounded.variances >= exact.variances * (1 - 1e-12)).all()


@pytest.mark.parametrize("axes", [(0,), (1,), (0, 4), (1, 2), (0, 1, 4)])
def test_no_predicate_has_more_than_the_largest_variance(axes: tuple[int, ...]) -> None:
    noise = measured().noise
    covariance, most = restored_covariance(noise, axes), largest_variance(noise, axes)
    random = np.random.default_rng(5)
    kinds = random.integers(0, 2, (2000, len(covariance)))
    if len(covariance) <= 6:
        kinds = np.array(list(itertools.product((0, 1), repeat=len(covariance))))
    reached = np.einsum("qa,ab,qb->q", kinds, covariance, kinds).max()
    assert reached <= most * (1 + 1e-6) + 1e-6
    assert most <= 5 * max(reached, np.linalg.eigvalsh(covariance)[:-1].max(initial=0) * len(covariance) / 4) + 1e-6


def test_what_is_public_has_no_variance() -> None:
    assert largest_variance(measured().noise, ()) == largest_variance(measured().noise, (3,)) == 0


def test_statements_outside_the_family_are_named() -> None:
    assert outside_of(compiled([*INSIDE, *OUTSIDE]), measured().noise.family) == [12, 13, 14, 15, 16]
    assert outside_of(compiled(INSIDE), measured().noise.family) == []


def test_numbers_are_written_as_bytes_and_read_again() -> None:
    told = measured()
    again = Measured.from_bytes(told.noise, told.records, told.to_bytes())
    assert all(np.array_equal(again.numbers[axes], told.numbers[axes]) for axes in told.noise.family.sets)
    with pytest.raises(ValueError, match="are not those of the family"):
        Measured.from_bytes(told.noise, told.records, told.to_bytes()[:-8])
