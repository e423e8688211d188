"""Sums from a standing measurement: their code words beside all others, and what a round promises of them."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from equipoise.errors import InvalidArgument
from equipoise.queries.predicates import AllOf, Among, Predicate, attribute
from equipoise.queries.schema import Attribute, Schema
from equipoise.queries.statements import Marginal, Statement, Sum
from equipoise.queries.workload_compiler import compile_workload
from equipoise.residuals.family import ResidualFamily
from equipoise.residuals.noise import ResidualNoise
from equipoise.residuals.reach import code_lengths, most_bits
from equipoise_server.mechanisms.standing.mechanism import check_statements

SCHEMA = Schema((Attribute("a", ("0", "1", "2", "5")), Attribute("b", ("5", "7"))))
FAMILY = ResidualFamily.closed(SCHEMA.sizes, [(0, 1)])


def conditions(name: str) -> list[Predicate]:
    labels = SCHEMA.attribute(name).categories
    chosen = (itertools.combinations(labels, number) for number in range(1, len(labels)))
    return [Among(name, kept) for kept in itertools.chain.from_iterable(chosen)]


def every_statement() -> list[Statement]:
    """All boxes, all cells, and all sums of them, of a tiny family."""
    both = [AllOf(each) for each in itertools.product(conditions("a"), conditions("b"))]
    boxes = [*conditions("a"), *conditions("b"), *both]
    sums = [
        Sum(name, by, where, low, high)
        for name, other in (("a", "b"), ("b", "a"))
        for by in ((), (other,))
        for where in (None, *boxes)
        for low, high in itertools.combinations(sorted(map(float, SCHEMA.attribute(name).categories)), 2)
    ]
    return [*boxes, Marginal(("a", "b")), Marginal(("a",)), Marginal(("b",)), *sums]


@pytest.mark.nightly
def test_code_words_of_all_statements_and_sums_share_one_at_most() -> None:
    """Kraft's inequality. Several statements may have a query in common, which has one word."""
    workload = compile_workload(every_statement(), SCHEMA)
    shortest: dict[tuple[float, ...], int] = {}
    for query, bits in enumerate(code_lengths(workload, FAMILY).tolist()):
        asked = tuple(workload.combination(np.eye(1, workload.query_count, query)[0]).tolist())
        shortest[asked] = min(bits, shortest.get(asked, bits))
    assert sum(max(asked) > 0 and set(asked) - {0.0, 1.0} != set() for asked in shortest) > 20
    assert math.fsum(2.0**-bits for bits in shortest.values()) <= 1


def test_no_code_word_is_longer_than_what_the_promise_allows() -> None:
    workload = compile_workload(every_statement(), SCHEMA)
    assert code_lengths(workload, FAMILY).max() <= most_bits(FAMILY)[0, 1]


def test_a_code_word_says_what_is_added_up_and_for_whom() -> None:
    """Added up by hand from `equipoise.residuals.reach`."""
    schema = Schema.from_json('{"a": 40, "b": 40}')
    family = ResidualFamily.closed(schema.sizes, [(0, 1)])
    asked: list[Statement] = [Sum("a", high=7), Sum("a", where=attribute("b") == "3"), Sum("a", ("b",))]
    lengths = code_lengths(compile_workload(asked, schema), family)
    of_three_sets, of_two_attributes, run = 2, 2, (40 * 41 // 2).bit_length()
    what = 2 + of_three_sets + of_two_attributes + run + 1
    category = 1 + run
    assert lengths[0] == what + 1 + of_three_sets + category  # all but the lowest value, whose weight is 0
    assert lengths[1] == what + 1 + of_three_sets + 2 * category
    assert set(lengths[2:].tolist()) == {lengths[1]}


def test_a_sum_about_more_than_was_measured_is_refused_by_name() -> None:
    schema = Schema.from_json('{"a": 4, "b": 3, "c": 2}')
    family = ResidualFamily.closed(schema.sizes, [(0, 1)])
    noise = ResidualNoise.of(family, [1 << 12] * len(family.residuals))
    check_statements(noise, compile_workload([Sum("a", ("b",))], schema))
    with pytest.raises(InvalidArgument, match="is about attributes 1, 3 of the schema together"):
        check_statements(noise, compile_workload([Sum("a", ("c",))], schema))
