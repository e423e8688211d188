"""Families of marginals: closed under subsets, and refused where they are malformed or too large."""

from __future__ import annotations

import itertools

import pytest

from equipoise.errors import InvalidArgument
from equipoise.residuals.family import MAX_CELLS, MAX_SET_CELLS, MAX_SETS, ResidualFamily


def test_a_family_is_closed_under_subsets_and_knows_its_largest_sets() -> None:
    family = ResidualFamily.closed((2, 3, 1, 4), [(3, 0), (1, 2), (0,)], ordered=(3,))
    assert family.sets == ((0,), (1,), (3,), (0, 3))
    assert family.largest == ((1,), (0, 3))
    assert family.residuals == (
        ((0, 1),),
        ((1, 1),),
        ((3, 1),),
        ((3, 2),),
        ((0, 1), (3, 1)),
        ((0, 1), (3, 2)),
    )
    assert family.holds(())
    assert family.holds((1, 2))
    assert not family.holds((0, 1))


def test_a_family_may_be_empty() -> None:
    assert ResidualFamily.closed((2, 3), []).sets == ()


@pytest.mark.parametrize(
    ("sets", "field", "problem"),
    [
        ([(0,), (1, 0, 1)], "sets[1]", "names attribute 1 twice"),
        ([(0, 2)], "sets[0]", "names attribute 2; there are 2"),
        ([(-1,)], "sets[0]", "names attribute -1; there are 2"),
    ],
)
def test_a_malformed_set_is_named(sets: list[tuple[int, ...]], field: str, problem: str) -> None:
    with pytest.raises(InvalidArgument) as refused:
        ResidualFamily.closed((2, 3), sets)
    assert (refused.value.field, refused.value.problem) == (field, problem)


def test_an_unknown_ordered_attribute_is_refused() -> None:
    with pytest.raises(InvalidArgument, match="ordered"):
        ResidualFamily.closed((2, 3), [(0,)], ordered=(2,))


def test_families_that_are_too_large_are_refused() -> None:
    with pytest.raises(InvalidArgument, match=f"{MAX_SET_CELLS:,}"):
        ResidualFamily.closed((MAX_SET_CELLS, 2), [(0, 1)])
    with pytest.raises(InvalidArgument, match="subsets"):
        ResidualFamily.closed((2,) * 20, [tuple(range(20))])
    with pytest.raises(InvalidArgument, match=f"more than {MAX_SETS:,}"):
        ResidualFamily.closed((2,) * 40, itertools.combinations(range(40), 4))
    with pytest.raises(InvalidArgument, match=f"{MAX_CELLS:,}"):
        ResidualFamily.closed((1 << 10,) * 9, itertools.combinations(range(9), 2))
