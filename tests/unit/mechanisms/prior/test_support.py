"""Lists of records and the whole universe give the same tables, weights and numbers."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.typing import NDArray

from equipoise.queries.predicates import attribute
from equipoise.queries.record_list import RecordList
from equipoise.queries.schema import Attribute, Schema
from equipoise.queries.statements import Marginal
from equipoise.queries.workload_compiler import compile_workload
from equipoise_server.mechanisms.prior.support import MAX_RECORDS, ListedSupport, Universe

SIZES = (4, 3, 2, 5)
EVERY = np.arange(math.prod(SIZES))


def listed() -> ListedSupport:
    return ListedSupport(RecordList(SIZES, Universe(SIZES).records(EVERY).T.astype(np.uint8)))


def large_numbers() -> NDArray[np.int64]:
    """Numbers that doubles do not hold, with a sum just below 2^62."""
    return np.random.default_rng(1).integers(0, (1 << 62) // len(EVERY), len(EVERY))


@pytest.mark.parametrize("axes", [(), (2,), (0, 3), (0, 1, 3), (0, 1, 2, 3)])
def test_a_list_of_all_records_is_the_universe(axes: tuple[int, ...]) -> None:
    shape = tuple(SIZES[axis] for axis in axes)
    numbers = large_numbers()
    assert np.array_equal(listed().table(axes, numbers), Universe(SIZES).table(axes, numbers))
    factors = np.random.default_rng(2).random(shape)
    terms = np.random.default_rng(3).integers(-9, 9, shape)
    of_list, of_universe = np.ones(len(EVERY)), np.ones(len(EVERY))
    listed().scale(axes, factors, of_list)
    Universe(SIZES).scale(axes, factors, of_universe)
    assert np.array_equal(of_list, of_universe)
    added, expected = numbers.copy(), numbers.copy()
    listed().add(axes, terms, added)
    Universe(SIZES).add(axes, terms, expected)
    assert np.array_equal(added, expected)


def test_records_are_where_their_places_say() -> None:
    places = np.array([0, 119, 7])
    expected = [[0, 0, 0, 0], [3, 2, 1, 4], [0, 0, 1, 2]]
    assert listed().records(places).tolist() == Universe(SIZES).records(places).tolist() == expected


def test_a_record_may_be_in_a_list_twice() -> None:
    twice = ListedSupport(RecordList((2, 2), np.array([[1, 1, 0], [0, 0, 1]], dtype=np.uint8)))
    assert twice.table((0, 1), np.array([1, 2, 4])).tolist() == [[0, 4], [3, 0]]


def test_a_list_whose_sums_would_not_be_exact_is_refused() -> None:
    with pytest.raises(ValueError, match="at most 4,194,304 records, not 4,194,305"):
        ListedSupport(RecordList((2,), np.zeros((1, MAX_RECORDS + 1), dtype=np.uint8)))


def test_a_workload_reads_the_same_at_every_record_of_a_list_as_of_the_universe() -> None:
    attributes = (Attribute(f"a{axis}", tuple(map(str, range(size)))) for axis, size in enumerate(SIZES))
    chosen = attribute("a0").isin(["1", "3"]) & (attribute("a3") == "4")
    workload = compile_workload([chosen, Marginal(("a2",))], Schema(tuple(attributes)))
    weights = EVERY % 7
    expected = Universe(SIZES).queries(workload).counts(weights)
    assert listed().queries(workload).counts(weights).tolist() == expected.tolist()
    with pytest.raises(ValueError, match="over another universe"):
        Universe(SIZES[:3]).queries(workload)
