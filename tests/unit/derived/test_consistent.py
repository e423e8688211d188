"""Values that a table can have, beside unbiased ones: the nearest, by another algorithm, and never further off."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from equipoise.derived import consistent
from equipoise.derived.consistent import nearest_table
from equipoise.errors import InvalidArgument
from equipoise.model.results import AnswerMethod, Answers
from equipoise.queries.fixed_point import ONE
from equipoise.queries.predicates import attribute
from equipoise.queries.schema import Schema
from equipoise.queries.statements import Marginal, Statement
from equipoise.results import Labels, Results

SCHEMA = Schema.from_json('{"a": 3, "b": 40, "c": 240}')
TABLE, SOME = Marginal(("a", "b")), Marginal(("a", "b"), where=attribute("a") == "1")


def results(values: NDArray[np.float64], *statements: Statement) -> Results:
    units, nothing = np.rint(values * ONE).astype(np.int64), np.zeros(len(values), np.int64)
    methods = np.full(len(values), AnswerMethod.GAUSSIAN, np.uint8)
    answers = Answers(units, methods, nothing, nothing + ONE, nothing + 1)
    return Results("r-1", answers, Labels(SCHEMA, statements))


def by_bisection(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """The nearest table, of which every cell is `max(0, value - amount)` with one amount that makes the sum 1."""
    low, high = float(values.min()) - 1, float(values.max())
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if np.maximum(values - middle, 0).sum() > 1 else (low, middle)
    return np.maximum(values - low, 0)


@pytest.mark.parametrize("seed", range(20))
def test_the_nearest_table_is_that_of_another_algorithm_and_nearer_to_the_truth(seed: int) -> None:
    random = np.random.default_rng(seed)
    truth = random.dirichlet(np.full(120, 0.05))
    values = truth + random.normal(0, random.choice([0.001, 0.01, 0.3]), 120)
    found = nearest_table(values, TABLE)
    assert found == pytest.approx(by_bisection(values), abs=1e-9)
    assert found.min() >= 0
    assert found.sum() == pytest.approx(1, abs=1e-9)
    assert ((found - truth) ** 2).sum() <= ((values - truth) ** 2).sum()


def test_a_table_of_some_records_sums_to_at_most_all() -> None:
    assert nearest_table(np.array([0.2, -0.1, 0.3]), SOME).tolist() == [0.2, 0.0, 0.3]
    assert nearest_table(np.array([0.9, -0.1, 0.5]), SOME) == pytest.approx([0.7, 0.0, 0.3])
    assert nearest_table(np.array([0.2, -0.1, 0.3]), TABLE) == pytest.approx([0.4, 0.1, 0.5])


def test_9600_mostly_empty_cells_sum_to_all_both_as_they_are_and_consistently() -> None:
    """Cut at 0 they would sum to more than all records; as they are, only their noise adds up."""
    random, large = np.random.default_rng(5), Marginal(("b", "c"))
    truth = np.zeros(9600)
    truth[:300] = 1 / 300
    told = results(np.append(truth + random.normal(0, 2e-5, 9600), -0.25), large, attribute("a") == "1")
    assert np.maximum(told.values, 0).sum() > 1.05
    assert told.values[:-1].sum() == pytest.approx(1, abs=5 * 2e-5 * 9600**0.5)
    found = consistent(told)
    assert found.min() == found[-1] == 0
    assert found[:-1].sum() == pytest.approx(1, abs=1e-9)


def test_without_statements_nobody_knows_what_belongs_together() -> None:
    told = results(np.zeros(120), TABLE)
    with pytest.raises(InvalidArgument, match="statements: must be given"):
        consistent(Results(told.round_id, told.answers))
