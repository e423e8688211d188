"""The synopsis: its records as universe cells, as categories, as bytes; and what it answers."""

from __future__ import annotations

import json

import numpy as np
import pytest

from equipoise.errors import VerificationFailed
from equipoise.model.synopsis import Synopsis, record_bytes
from equipoise.queries.predicates import attribute
from equipoise.queries.schema import Attribute, Schema
from equipoise.queries.statements import Marginal
from equipoise.queries.workload_compiler import compile_workload

SCHEMA = Schema((Attribute("colour", ("red", "green")), Attribute("size", ("s", "m", "l"))))
CELLS = [5, 0, 3, 5]
CATEGORIES = [[1, 2], [0, 0], [1, 0], [1, 2]]


def test_records_are_the_same_as_cells_as_categories_and_as_bytes() -> None:
    synopsis = Synopsis.of_cells(np.array(CELLS), SCHEMA.sizes)
    assert len(synopsis) == 4
    assert synopsis.categories.tolist() == CATEGORIES
    assert Synopsis.from_categories(np.array(CATEGORIES), SCHEMA.sizes).cells.tolist() == CELLS
    assert synopsis.to_bytes() == bytes.fromhex("0102 0000 0100 0102")
    again = Synopsis.from_bytes(synopsis.to_bytes(), SCHEMA.sizes)
    assert again.cells.tolist() == CELLS
    assert again.cells.dtype == np.int64
    assert synopsis.part(1, 3).categories.tolist() == CATEGORIES[1:3]


@pytest.mark.parametrize(
    ("sizes", "record", "data"),
    [
        ((256, 2), [255, 1], "ff01"),
        ((257, 2), [256, 1], "0001 0100"),
        ((1 << 16, 2), [65_535, 0], "ffff 0000"),
        ((1 + (1 << 16), 2), [65_536, 1], "00000100 01000000"),
    ],
)
def test_a_record_has_as_many_bytes_as_its_largest_attribute_needs(
    sizes: tuple[int, ...], record: list[int], data: str
) -> None:
    synopsis = Synopsis.from_categories(np.array([record]), sizes)
    assert synopsis.to_bytes() == bytes.fromhex(data)
    assert record_bytes(sizes) == len(synopsis.to_bytes())
    assert Synopsis.from_bytes(synopsis.to_bytes(), sizes).categories.tolist() == [record]


def test_a_mechanism_without_one_has_no_records() -> None:
    assert len(Synopsis()) == 0
    assert Synopsis().to_bytes() == b""
    assert Synopsis().cells.tolist() == []


@pytest.mark.parametrize(
    ("data", "problem"),
    [(b"\0\0\1", "ends in the middle of a record"), (b"\2\0", "records that the schema does not have")],
)
def test_other_bytes_are_refused(data: bytes, problem: str) -> None:
    with pytest.raises(VerificationFailed, match=problem):
        Synopsis.from_bytes(data, SCHEMA.sizes)


@pytest.mark.parametrize("record", [[2, 0], [0, 3], [0, -1]])
def test_a_record_outside_the_universe_is_refused(record: list[int]) -> None:
    with pytest.raises(ValueError, match="category that its attribute does not have"):
        Synopsis.from_categories(np.array([[0, 0], record]), SCHEMA.sizes)


def test_answers_are_shares_of_the_records() -> None:
    synopsis = Synopsis.of_cells(np.array(CELLS), SCHEMA.sizes)
    workload = compile_workload((attribute("colour") == "green", attribute("size") == "m"), SCHEMA)
    assert synopsis.counts(workload).tolist() == [3, 0]
    assert synopsis.answers(workload).tolist() == [3 << 38, 0]


def test_a_universe_of_any_size_has_records_that_are_counted() -> None:
    """Of 10^100 possible records, which no integer numbers."""
    schema = Schema.from_json(json.dumps({f"x{axis}": 10 for axis in range(100)}))
    categories = np.random.default_rng(1).integers(0, 10, (500, 100))
    synopsis = Synopsis.from_bytes(Synopsis.from_categories(categories, schema.sizes).to_bytes(), schema.sizes)
    workload = compile_workload([Marginal(("x3", "x99")), attribute("x0").isin(["1", "2"])], schema)
    counts = synopsis.counts(workload)
    table = np.zeros((10, 10), dtype=np.int64)
    np.add.at(table, (categories[:, 3], categories[:, 99]), 1)
    assert counts[:100].tolist() == table.reshape(-1).tolist()
    assert counts[100] == np.isin(categories[:, 0], [1, 2]).sum()
    with pytest.raises(ValueError, match="dimension"):
        _ = synopsis.cells
