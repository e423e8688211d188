"""The synopsis: its records as universe cells, as categories, as bytes; and what it answers."""

from __future__ import annotations

import numpy as np
import pytest

from equipoise.errors import VerificationFailed
from equipoise.model.synopsis import Synopsis
from equipoise.queries.predicates import attribute
from equipoise.queries.schema import Attribute, Schema
from equipoise.queries.workload_compiler import compile_workload

SCHEMA = Schema((Attribute("colour", ("red", "green")), Attribute("size", ("s", "m", "l"))))
CELLS = [5, 0, 3, 5]
CATEGORIES = [[1, 2], [0, 0], [1, 0], [1, 2]]


def test_records_are_the_same_as_cells_as_categories_and_as_bytes() -> None:
    synopsis = Synopsis(np.array(CELLS))
    assert len(synopsis) == 4
    assert synopsis.categories(SCHEMA.sizes).tolist() == CATEGORIES
    assert Synopsis.from_categories(np.array(CATEGORIES), SCHEMA.sizes).cells.tolist() == CELLS
    assert synopsis.to_bytes() == bytes.fromhex("05000000 00000000 03000000 05000000")
    again = Synopsis.from_bytes(synopsis.to_bytes(), SCHEMA.universe_size)
    assert again.cells.tolist() == CELLS
    assert again.cells.dtype == np.int64


def test_a_mechanism_without_one_has_no_records() -> None:
    assert len(Synopsis()) == 0
    assert Synopsis().to_bytes() == b""
    assert Synopsis().categories(SCHEMA.sizes).shape == (0, 2)


@pytest.mark.parametrize(
    ("data", "problem"),
    [(b"\5\0\0", "ends in the middle of a record"), (b"\6\0\0\0", "records that the schema does not have")],
)
def test_other_bytes_are_refused(data: bytes, problem: str) -> None:
    with pytest.raises(VerificationFailed, match=problem):
        Synopsis.from_bytes(data, SCHEMA.universe_size)


@pytest.mark.parametrize("record", [[2, 0], [0, 3], [0, -1]])
def test_a_record_outside_the_universe_is_refused(record: list[int]) -> None:
    with pytest.raises(ValueError, match="invalid entry"):
        Synopsis.from_categories(np.array([[0, 0], record]), SCHEMA.sizes)


def test_answers_are_shares_of_the_records() -> None:
    synopsis = Synopsis(np.array(CELLS))
    workload = compile_workload((attribute("colour") == "green", attribute("size") == "m"), SCHEMA)
    assert synopsis.counts(workload).tolist() == [3, 0]
    assert synopsis.answers(workload).tolist() == [3 << 38, 0]
