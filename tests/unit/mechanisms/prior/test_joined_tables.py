"""Tables joined to unions: each is told by one, no union is too large, and what shares attributes is joined."""

from __future__ import annotations

import itertools
import math

from hypothesis import given
from hypothesis import strategies as st

from equipoise_server.mechanisms.prior.joined_tables import MAX_CELLS, JoinedTables, joined

AXES = st.lists(st.integers(0, 5), unique=True, max_size=4).map(lambda axes: tuple(sorted(axes)))


@given(st.lists(AXES, max_size=12), st.lists(st.sampled_from([1, 2, 10, 70, 300]), min_size=6, max_size=6))
def test_every_table_is_told_by_one_union_that_holds_its_attributes(
    tables: list[tuple[int, ...]], sizes: list[int]
) -> None:
    unions = joined(sizes, tables)
    assert sorted(place for union in unions for place in union.members) == list(range(len(tables)))
    for union in unions:
        assert list(union.axes) == sorted(set(union.axes))
        assert all(set(tables[place]) <= set(union.axes) for place in union.members)
        alone = any(set(tables[place]) == set(union.axes) for place in union.members)
        assert alone or math.prod(sizes[axis] for axis in union.axes) <= MAX_CELLS


def test_six_pairs_are_one_union_of_four_attributes() -> None:
    pairs = list(itertools.combinations(range(4), 2))
    assert joined([11] * 4, pairs) == [JoinedTables((0, 1, 2, 3), tuple(range(6)))]
    assert len(joined([10] * 40, list(itertools.combinations(range(40), 2)))) < math.comb(40, 2) / 5


def test_what_is_too_large_together_stays_apart() -> None:
    assert joined([200, 200, 2], [(0, 1), (0, 2)]) == [JoinedTables((0, 1), (0,)), JoinedTables((0, 2), (1,))]
    assert joined([], []) == []
