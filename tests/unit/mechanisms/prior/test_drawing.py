"""The records of a support against the noisy tables that they are drawn along."""

from __future__ import annotations

import hashlib
import itertools
import math

import numpy as np
import pytest
from numpy.typing import NDArray

from equipoise.queries.marginal_tables import Axes
from equipoise_server.mechanisms.prior.dependence import dependence_tree, logarithms, mutual_information
from equipoise_server.mechanisms.prior.drawing import drawn_records, laid_out, weights
from equipoise_server.mechanisms.prior.fit import Target
from equipoise_server.randomness.stream import KeyedStream

SIZES = (3, 4, 2, 5, 1)
COUNT = 4_000
TREE = COUNT * 3 // 4


def chain() -> NDArray[np.float64]:
    """A distribution in which each attribute depends on the one before it: 0, 1, 2, 3."""
    choose = np.random.default_rng(4)
    joint = choose.dirichlet(np.ones(3))
    for size in SIZES[1:]:
        given = choose.dirichlet(np.full(size, 0.4), joint.shape[-1])
        joint = np.asarray(joint[..., None] * given)
    return joint


def tables_of(joint: NDArray[np.float64], deviation: float = 0.0) -> list[Target]:
    axes = range(joint.ndim)
    wanted = [*((axis,) for axis in axes), *itertools.combinations(axes, 2)]
    return [
        Target(own, joint.sum(axis=tuple(axis for axis in axes if axis not in own)), deviation**2) for own in wanted
    ]


def test_logarithms_are_those_of_numpy() -> None:
    numbers = np.exp(np.random.default_rng(1).uniform(-600, 600, 10_000))
    assert np.abs(logarithms(numbers) - np.log(numbers)).max() < 600 * 2.0**-50
    assert logarithms(np.array([1.0])).tolist() == [0.0]


def test_mutual_information_is_its_definition() -> None:
    table = np.random.default_rng(2).gamma(0.3, size=(6, 9))
    table[2] = 0.0
    joint = table / table.sum()
    product = np.multiply.outer(joint.sum(axis=1), joint.sum(axis=0))
    present = joint > 0
    expected = float((joint[present] * np.log(joint[present] / product[present])).sum())
    assert mutual_information(table) == pytest.approx(expected, rel=1e-12)
    assert mutual_information(np.eye(8)) == pytest.approx(math.log(8), rel=1e-12)
    assert mutual_information(np.ones((3, 4))) == pytest.approx(0.0, abs=1e-15)
    assert mutual_information(np.zeros((3, 4))) == 0.0


def test_no_tree_holds_more_information_than_the_one_that_is_found() -> None:
    choose = np.random.default_rng(3)
    pairs = list(itertools.combinations(range(5), 2))
    for _ in range(20):
        information: dict[Axes, float] = dict(zip(pairs, choose.random(len(pairs)).tolist(), strict=True))
        tree = dependence_tree(5, information)
        edges = [(min(axis, other), max(axis, other)) for axis, other in tree if other is not None]
        best = max(
            sum(information[pair] for pair in chosen)
            for chosen in itertools.combinations(pairs, 4)
            if is_connected(chosen)
        )
        assert len(edges) == 4
        assert sum(information[pair] for pair in edges) == pytest.approx(best)


def is_connected(edges: tuple[tuple[int, int], ...]) -> bool:
    reached = {0}
    for _ in edges:
        reached |= {end for edge in edges if reached & set(edge) for end in edge}
    return len(reached) == 5


def test_attributes_that_tell_nothing_stand_alone() -> None:
    assert dependence_tree(4, {(1, 3): 0.5, (0, 2): 0.0}) == [(0, None), (1, None), (3, 1), (2, None)]


def test_the_tree_of_a_chain_is_found_and_followed() -> None:
    joint = chain()
    tables = {target.axes: target.fractions for target in tables_of(joint)}
    codes = drawn_records(SIZES, tables_of(joint), COUNT).codes[:, :TREE].astype(np.int64)
    for axes in ((0, 1), (1, 2), (2, 3)):
        found = np.zeros(tables[axes].shape)
        np.add.at(found, tuple(codes[list(axes)]), 1 / TREE)
        # Less than one record for each row and each cell above it in the tree.
        assert np.abs(found - tables[axes]).max() < 2 * max(SIZES) / TREE
    # What the chain does not tell directly follows up to the chance of who gets which category.
    found = np.zeros(tables[0, 3].shape)
    np.add.at(found, tuple(codes[[0, 3]]), 1 / TREE)
    assert np.abs(found - tables[0, 3]).max() < 6 * math.sqrt(0.25 / TREE)


def test_a_quarter_of_the_records_is_drawn_as_if_attributes_were_independent() -> None:
    joint = chain()
    tables = {target.axes: target.fractions for target in tables_of(joint)}
    codes = drawn_records(SIZES, tables_of(joint), COUNT).codes[:, TREE:].astype(np.int64)
    for axis, size in enumerate(SIZES):
        found = np.bincount(codes[axis], minlength=size) / (COUNT - TREE)
        assert np.abs(found - tables[axis,]).max() < 2 / (COUNT - TREE)
    found = np.zeros(tables[0, 1].shape)
    np.add.at(found, tuple(codes[:2]), 1 / (COUNT - TREE))
    expected = np.multiply.outer(tables[0,], tables[1,])
    assert np.abs(found - expected).max() < 6 * math.sqrt(0.25 / (COUNT - TREE))


def test_cells_that_noise_alone_may_have_filled_are_left_empty() -> None:
    fractions = np.array([[0.5, 0.019, -0.1], [0.021, 0.3, 0.2]])
    assert (weights(fractions, 0.01**2) > 0).tolist() == [[True, False, False], [True, True, True]]
    assert weights(np.full((2, 2), -1.0), 0.01).tolist() == [[1, 1], [1, 1]]


def test_a_row_without_records_takes_the_attribute_alone() -> None:
    joint = chain()
    tables = tables_of(joint)
    emptied = np.array(tables[5].fractions)  # of the attributes 0 and 1
    emptied[1] = 0.0
    tables[5] = Target((0, 1), emptied, 0.0)
    drawn = drawn_records(SIZES, tables, COUNT)
    assert ((drawn.codes[0] == 1) & (drawn.codes[1] >= 0)).sum() > 0


def test_records_are_the_same_on_every_machine() -> None:
    """The bits of two supports, as they were when this was written."""
    joint = np.random.default_rng(5).integers(0, 64, SIZES) / 2.0**13  # whose sums are exact
    supports = [drawn_records(SIZES, tables_of(joint, deviation), COUNT) for deviation in (0.0, 0.01)]
    digests = [hashlib.sha256(each.codes.tobytes()).hexdigest()[:16] for each in supports]
    assert digests == ["6b860c3015d418a5", "9c370abe8dd88698"]


@pytest.mark.slow
def test_who_gets_a_category_is_drawn_uniformly() -> None:
    """Of 4,096 draws of 2 of 4 records all six choices come about as often: a chance of 10^-6 to fail."""
    given, table = np.zeros(4, dtype=np.int64), np.array([[5, 5]])
    streams = (KeyedStream.derive(bytes(32), str(number)) for number in range(4_096))
    drawn = [tuple(laid_out(given, table, stream).tolist()) for stream in streams]
    held = np.unique(np.array(drawn), axis=0, return_counts=True)[1]
    assert len(held) == 6
    expected = 4_096 / 6
    assert float(((held - expected) ** 2 / expected).sum()) < 35.9  # chi-square with 5 degrees of freedom
