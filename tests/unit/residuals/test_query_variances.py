"""The variances of queries are those of the cells that they ask for, in their order, and of all pairs of boxes."""

from __future__ import annotations

import functools
import math
import operator

import numpy as np
import pytest
from harness.naive_residuals import restored_covariance
from numpy.typing import NDArray

from equipoise.queries.compiled_workload import CompiledWorkload
from equipoise.queries.predicates import Predicate, attribute
from equipoise.queries.schema import Attribute, Schema
from equipoise.queries.statements import Marginal, Statement
from equipoise.queries.workload_compiler import compile_workload
from equipoise.residuals.family import ResidualFamily
from equipoise.residuals.noise import ResidualNoise
from equipoise.residuals.product_terms import condition_terms
from equipoise.residuals.query_variances import query_variances

# Three categories in an order are halved unevenly, so that their counts have different variances.
SIZES = (3, 4, 2)
SCHEMA = Schema(
    tuple(
        Attribute(name, tuple("0123"[:size]), ordered=name == "a") for name, size in zip("abc", SIZES, strict=True)
    )
)
FAMILY = ResidualFamily.closed(SIZES, [(0, 1, 2)], (0,))
# The second level of a, which tells two categories apart of the three, is measured less precisely.
NOISE = ResidualNoise.of(FAMILY, [1 << 16 if (0, 2) in residual else 1 << 11 for residual in FAMILY.residuals])
a, b, c = (attribute(name) for name in "abc")


def compiled(*statements: Statement) -> CompiledWorkload:
    return compile_workload(list(statements), SCHEMA)


def reference(workload: CompiledWorkload) -> NDArray[np.float64]:
    """From the covariance of all cells of the whole table, without any boxes."""
    covariance = restored_covariance(NOISE, (0, 1, 2))
    rows = np.array([workload.expectations(cell) for cell in np.eye(math.prod(SIZES))]).T
    return np.asarray(np.einsum("qa,ab,qb->q", rows, covariance, rows))


@pytest.mark.parametrize("names", ["abc", "bca", "cab", "cba", "acb", "bac", "ca", "ba"])
def test_cells_have_their_variances_in_the_order_in_which_they_are_asked_for(names: str) -> None:
    workload = compiled(Marginal(tuple(names)))
    expected = reference(workload)
    assert expected.max() > 1.1 * expected.min()
    assert query_variances(workload, NOISE) == pytest.approx(expected, rel=1e-4)


def in_one_of(*cells: str) -> Predicate:
    """That a record is in one of some cells of the whole table, no two of which make a larger box."""
    return functools.reduce(operator.or_, ((a == each[0]) & (b == each[1]) & (c == each[2]) for each in cells))


def test_conditions_of_many_boxes_have_the_variances_of_all_pairs_of_them() -> None:
    workload = compiled(
        a == "0", in_one_of("000", "110", "220", "011", "121", "231"), in_one_of("030", "100", "210", "021", "131")
    )
    boxes = np.zeros(workload.query_count, dtype=np.int64)
    for terms in condition_terms(workload):
        boxes += np.bincount(terms.queries, minlength=workload.query_count)
    assert boxes.tolist() == [1, 6, 5]
    assert query_variances(workload, NOISE) == pytest.approx(reference(workload), rel=1e-4)
