"""The cells of tables over a list of records, against the matrix of cells by records."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from equipoise.queries.record_list import RecordList
from equipoise_server.mechanisms.prior import listed_tables
from equipoise_server.mechanisms.prior.listed_tables import ListedTables

SIZES = (3, 4, 2)
RECORDS = RecordList(SIZES, np.random.default_rng(1).integers(0, SIZES, (50, 3)).T.astype(np.uint8))
TABLES = ((0, 2), (1,), (0, 1, 2))


def matrix() -> NDArray[np.float64]:
    rows = []
    for axes in TABLES:
        for cell in np.ndindex(*(SIZES[axis] for axis in axes)):
            inside = [RECORDS.codes[axis] == own for axis, own in zip(axes, cell, strict=True)]
            rows.append(np.all(inside, axis=0))
    return np.array(rows, dtype=np.float64)


@pytest.mark.parametrize("kept", [0, 10_000])
def test_cells_and_their_sums_are_those_of_the_matrix(kept: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listed_tables, "MAX_KEPT", kept)
    queries = ListedTables(RECORDS, TABLES)
    assert (queries.size, queries.query_count) == (50, 6 + 4 + 24)
    weights, coefficients = np.random.default_rng(2).random(50), np.random.default_rng(3).normal(size=34)
    assert queries.expectations(weights) == pytest.approx(matrix() @ weights)
    assert queries.combination(coefficients) == pytest.approx(coefficients @ matrix())


def test_no_table_has_no_cell() -> None:
    nothing = ListedTables(RECORDS, ())
    assert nothing.expectations(np.ones(50)).tolist() == []
    assert nothing.combination(np.zeros(0)).tolist() == [0.0] * 50
