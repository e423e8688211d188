"""A standing measurement of two large attributes and a small one, and who asks for what its noise has made high."""

from __future__ import annotations

from functools import cache

import numpy as np
from numpy.typing import NDArray

from equipoise.model.accounts import Budget
from equipoise.queries.predicates import AllOf, Among, AnyOf
from equipoise.queries.schema import Schema
from equipoise.queries.statements import Statement
from equipoise.residuals.noise import ResidualNoise
from equipoise_server.datasets.dense_counts import DenseCounts
from equipoise_server.mechanisms.residuals.measurement import Measured, measure
from equipoise_server.mechanisms.standing.family import planned_noise

SCHEMA = Schema.from_json('{"a": 24, "b": 20, "c": 2}')
RECORDS, PLAYED, ALARM = 50_000, 200, 1e-6
BUDGET = Budget(1.0, 1e-9)


@cache
def counts() -> NDArray[np.int64]:
    cells: NDArray[np.int64] = np.random.default_rng(1).multinomial(RECORDS, np.ones(960) / 960).astype(np.int64)
    return cells


@cache
def noise() -> ResidualNoise:
    return planned_noise({"family": "pairs"}, SCHEMA, BUDGET)


@cache
def measured(number: int) -> Measured:
    return measure(DenseCounts(counts(), SCHEMA.sizes), noise(), number.to_bytes(32, "big"), "measurement")


def tempting(number: int) -> list[Statement]:
    """What an analyst asks next for what lies above the truth, as nearly as she can know.

    She knows the table's true shape here, which is the worst that prior knowledge can be: for each category of `a`
    the categories of `b` with too high counts, and then everything that is too high, in one statement.
    """
    errors = measured(number).table((0, 1)).counts() - counts().reshape(SCHEMA.sizes).sum(axis=2)
    rows = [
        AllOf((Among("a", (str(row),)), Among("b", tuple(map(str, np.flatnonzero(own > 0))))))
        for row, own in enumerate(errors)
        if (own > 0).any()
    ]
    columns = [
        AllOf((Among("b", (str(column),)), Among("a", tuple(map(str, np.flatnonzero(own > 0))))))
        for column, own in enumerate(errors.T)
        if (own > 0).any()
    ]
    return [*rows, *columns, AnyOf(tuple(rows[:8]))]
