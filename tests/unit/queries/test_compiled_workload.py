"""Compiled workloads: errors with their fields, limits, shapes; the values are tested in tests/property."""

from __future__ import annotations

import itertools
import math
import tracemalloc
import typing
from collections.abc import Callable

import numpy as np
import pytest

from equipoise.errors import InvalidArgument
from equipoise.queries.compiled_workload import MAX_COEFFICIENTS
from equipoise.queries.joined_workloads import concatenate
from equipoise.queries.predicate_compiler import MAX_BOXES, MAX_DEPTH, PredicateCompiler
from equipoise.queries.predicates import AllOf, Among, AnyOf, Interval, Not, Predicate, attribute
from equipoise.queries.schema import Attribute, Schema
from equipoise.queries.schema_checks import bin_labels
from equipoise.queries.statements import Marginal, Statement
from equipoise.queries.workload_compiler import CompiledWorkload, compile_workload
from equipoise.wire.workloads import workload_from_bytes, workload_to_bytes

EDGES = (0.0, 15.0, 60.0)
SCHEMA = Schema(
    (
        Attribute("origin", ("EWR", "JFK", "LGA")),
        Attribute("delay", (*bin_labels(EDGES), "none"), EDGES, missing="none"),
        Attribute("day", tuple(map(str, range(40)))),
        Attribute("hour", tuple(map(str, range(24)))),
    )
)
ORIGIN = attribute("origin") == "JFK"


def wrong(value: object) -> typing.Any:
    """What the types forbid, and callers without a type checker send."""
    return value


def nested(levels: int) -> Predicate:
    predicate: Predicate = ORIGIN
    for _ in range(levels - 1):
        predicate = AllOf((predicate,))
    return predicate


def test_counts_by_hand() -> None:
    schema = Schema((Attribute("sex", ("f", "m")), Attribute("smokes", ("no", "yes"))))
    statements: list[Statement] = [attribute("sex") == "f", Marginal(("smokes",)), Marginal(("smokes", "sex"))]
    workload = compile_workload(statements, schema)
    assert workload.counts(np.array([10, 20, 30, 40])).tolist() == [30, 40, 60, 10, 30, 20, 40]
    assert workload.record_counts(np.array([1, 1, 3])).tolist() == [2, 0, 3, 0, 0, 2, 1]
    assert workload.transpose(np.array([1, 10, 20, 0, 0, 300, 0])).tolist() == [11, 321, 10, 20]
    assert workload.transpose_sparse(np.array([0, 0, 6]), np.array([2, 3, 7])).tolist() == [5, 5, 0, 7]
    assert workload.statement_offsets.tolist() == [0, 1, 3, 7]
    assert (workload.statement_count, workload.query_count, workload.empty) == (3, 7, False)
    assert [workload.statement_sensitivity(i) for i in range(3)] == [1, 2, 2]
    assert workload.covered().tolist() == [2, 2, 2, 1, 1, 1, 1]
    l1, l2, linf = workload.sensitivities()
    assert (l1, linf) == (5, 1)
    assert l2 == pytest.approx(math.sqrt(5), rel=1e-15)
    assert l2 > math.sqrt(5)


@pytest.mark.parametrize(
    ("predicate", "always"),
    [
        (ORIGIN & ~ORIGIN, 0),
        (ORIGIN | ~ORIGIN, 1),
        (Interval("delay", 15.0, 15.0), 0),
        (Interval("delay", math.inf, math.inf), 0),
        (Among("origin", ("EWR", "JFK", "LGA", "JFK")), 1),
        (Not(Interval("delay", -math.inf, math.inf)) & Interval("delay", 0.0, 60.0), 0),
    ],
)
def test_constant_predicates_are_legal(predicate: Predicate, always: int) -> None:
    workload = compile_workload([predicate], SCHEMA)
    histogram = np.arange(SCHEMA.universe_size)
    assert workload.counts(histogram).tolist() == [always * histogram.sum()]
    assert workload.record_counts(np.array([5, 6])).tolist() == [2 * always]
    assert set(workload.transpose(np.array([7])).tolist()) == {7 * always}
    assert set(workload.transpose_sparse(np.array([0]), np.array([7])).tolist()) == {7 * always}
    assert workload.statement_sensitivity(0) == 1


def test_a_condition_and_its_complement_have_the_same_support() -> None:
    """Also where no array over the universe could be held."""
    wide = Schema((*SCHEMA.attributes, *(Attribute(f"more {n}", tuple(map(str, range(60)))) for n in range(6))))
    workload = compile_workload([ORIGIN, ~ORIGIN, ORIGIN & ~ORIGIN, Marginal(("day",))], wide)
    third = wide.universe_size // 3
    assert workload.covered()[:3].tolist() == [third, 2 * third, 0]
    assert workload.supports()[:3].tolist() == [third, third, 0]
    assert set(workload.supports()[3:].tolist()) == {wide.universe_size // 40}
    assert workload.support == third
    too_wide = Schema((*wide.attributes, Attribute("one more", tuple(map(str, range(60))))))
    with pytest.raises(ValueError, match="too large"):
        compile_workload([ORIGIN], too_wide).covered()


def test_open_intervals_end_at_the_bins() -> None:
    workload = compile_workload([attribute("delay") < 15, attribute("delay") >= 15], SCHEMA)
    table = np.array([1, 10, 100]).reshape(1, 3, 1, 1) * np.ones(SCHEMA.sizes, dtype=np.int64)
    rest = SCHEMA.universe_size // 3
    assert workload.counts(table.reshape(-1)).tolist() == [rest, 10 * rest]  # missing ones are in no interval


@pytest.mark.parametrize(
    ("statement", "field"),
    [
        (Among("carrier", ("AA",)), "statements[1].attribute"),
        (Among(wrong(["origin"]), ("AA",)), "statements[1].attribute"),
        (Among("origin", ("BOS",)), "statements[1].categories"),
        (Among("origin", ()), "statements[1].categories"),
        (Among("origin", wrong("JFK")), "statements[1].categories"),
        (Among("origin", wrong((1,))), "statements[1].categories"),
        (Among("origin", wrong(({},))), "statements[1].categories"),
        (Interval("origin", 0.0, 1.0), "statements[1].attribute"),
        (Interval("nowhere", 0.0, 1.0), "statements[1].attribute"),
        (Interval("delay", 1.0, 15.0), "statements[1].low"),
        (Interval("delay", 0.0, 14.0), "statements[1].high"),
        (Interval("delay", 60.0, 15.0), "statements[1].high"),
        (Interval("delay", math.nan, 15.0), "statements[1].low"),
        (Interval("delay", wrong("0"), 15.0), "statements[1].low"),
        (Interval("delay", 0, 10**400), "statements[1].high"),
        (AllOf(()), "statements[1].conditions"),
        (AnyOf(()), "statements[1].conditions"),
        (AllOf(wrong(ORIGIN)), "statements[1].conditions"),
        (AnyOf((ORIGIN, Not(Among("carrier", ("AA",))))), "statements[1].conditions[1].condition.attribute"),
        (Marginal(("origin", "carrier")), "statements[1].attributes[1]"),
        (Not(wrong(Marginal(("origin",)))), "statements[1].condition"),
        ("origin", "statements[1]"),
        (None, "statements[1]"),
        (nested(MAX_DEPTH + 1), f"statements[1]{'.conditions[0]' * MAX_DEPTH}"),
    ],
)
def test_malformed_statements_name_the_field(statement: object, field: str) -> None:
    statements: list[Statement] = [ORIGIN, statement]  # type: ignore[list-item]
    with pytest.raises(InvalidArgument) as caught:
        compile_workload(statements, SCHEMA)
    assert caught.value.field == field


def test_the_deepest_nesting_is_accepted() -> None:
    assert compile_workload([nested(MAX_DEPTH)], SCHEMA).query_count == 1


def test_marginals_beyond_the_limit_are_refused() -> None:
    digits = tuple(map(str, range(32)))
    schema = Schema(tuple(Attribute(f"a{i}", digits) for i in range(5)))
    largest = Marginal(("a0", "a1", "a2", "a3"))
    assert compile_workload([largest], schema).query_count == 1 << 20
    with pytest.raises(InvalidArgument, match=r"statements\[1\]\.attributes: make 33,554,432 cells"):
        compile_workload([ORIGIN_LIKE, Marginal(schema.names)], schema)
    with pytest.raises(InvalidArgument, match="more than 16,777,216 queries"):
        compile_workload([largest] * 17, schema)


ORIGIN_LIKE = Among("a0", ("1", "2"))


def cell(day: int) -> Predicate:
    return (
        (attribute("day") == str(day)) & (attribute("hour") == str(day * 7 % 24)) & (ORIGIN if day % 2 else ~ORIGIN)
    )


def test_disjunctions_of_disjoint_cells_stay_small() -> None:
    boxes = PredicateCompiler(SCHEMA).compile(AnyOf(tuple(cell(day) for day in range(40))), "p")
    assert len(boxes) <= 41


def test_like_boxes_merge() -> None:
    compiler = PredicateCompiler(SCHEMA)
    early = attribute("hour").isin(["1", "2"])
    assert len(compiler.compile(AnyOf(tuple((attribute("day") == str(d)) & early for d in range(40))), "p")) == 1
    assert len(compiler.compile(~(attribute("day") == "3"), "p")) == 1
    assert len(compiler.compile((attribute("day") == "3") | ORIGIN | early, "p")) == 2


def checkerboard(size: int) -> Predicate:
    """True where the parities of many attributes sum to an odd number: no few boxes add up to it."""
    predicate: Predicate = Among("a0", ("1",))
    for i in range(1, size):
        other = Among(f"a{i}", ("1",))
        predicate = (predicate & ~other) | (~predicate & other)
    return predicate


def test_too_complex_predicates_are_refused() -> None:
    schema = Schema(tuple(Attribute(f"a{i}", ("0", "1")) for i in range(20)))
    small = compile_workload([checkerboard(4)], schema)
    assert small.counts(np.ones(1 << 20, dtype=np.int64)).tolist() == [1 << 19]
    pairs = AllOf(tuple(Among(f"a{i}", ("1",)) & Among(f"a{i + 1}", ("1",)) for i in range(0, 20, 2)))
    assert compile_workload([pairs], schema).query_count == 1
    hard = AllOf(tuple(Not(AllOf((Among(f"a{i}", ("1",)), Among(f"a{i + 1}", ("1",))))) for i in range(0, 20, 2)))
    with pytest.raises(InvalidArgument, match=rf"statements\[0\]: is too complex: more than {MAX_BOXES} boxes"):
        compile_workload([hard], schema)


def test_the_same_input_compiles_to_the_same_arrays() -> None:
    statements: list[Statement] = [
        AnyOf(tuple(cell(day) for day in range(30))),
        ORIGIN,
        Marginal(("day", "origin")),
    ]
    one, other = compile_workload(statements, SCHEMA), compile_workload(statements, SCHEMA)
    for first, second in zip(one.groups, other.groups, strict=True):
        assert first.axes == second.axes
        np.testing.assert_array_equal(first.vectors, second.vectors)
        np.testing.assert_array_equal(first.coefficients, second.coefficients)


def test_the_empty_workload() -> None:
    workload = compile_workload([], SCHEMA)
    assert workload.empty
    assert workload.sensitivities() == (0, 0, 0)
    assert len(workload.counts(np.ones(SCHEMA.universe_size, dtype=np.int64))) == 0
    assert not workload.transpose(np.zeros(0, dtype=np.int64)).any()
    assert concatenate([workload, compile_workload([ORIGIN], SCHEMA)]).query_count == 1


@pytest.mark.parametrize("sizes", [(2,) * 17, (1, 4, 1, 1, 4, 4, 1, 1, 4, 4, 1, 1, 4, 4, 1, 4)])
def test_nothing_larger_than_the_universe_is_held_besides_the_result(sizes: tuple[int, ...]) -> None:
    schema = Schema(tuple(Attribute(f"a{i}", tuple(map(str, range(size)))) for i, size in enumerate(sizes)))
    workload = compile_workload([Marginal(names) for names in itertools.combinations(schema.names, 2)], schema)
    histogram = np.ones(schema.universe_size, dtype=np.int64)
    coefficients = np.ones(workload.query_count, dtype=np.int64)

    def peak(run: Callable[[], object]) -> float:
        """The most memory held at once, in arrays over the universe."""
        tracemalloc.start()
        run()
        most = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return most / histogram.nbytes

    # Partial sums are less than one, and here all small things are less than a quarter.
    assert peak(lambda: workload.counts(histogram)) <= 1.25
    assert peak(lambda: workload.transpose(coefficients)) <= 2.25


WORKLOAD = compile_workload([ORIGIN, Marginal(("day",))], SCHEMA)
INTEGERS = np.zeros(41, dtype=np.int64)


@pytest.mark.parametrize(
    "misuse",
    [
        lambda w: w.counts(np.zeros(7, dtype=np.int64)),
        lambda w: w.counts(np.full(SCHEMA.universe_size, 1 << 50)),
        lambda w: w.counts(np.full(SCHEMA.universe_size, -(1 << 63))),
        lambda w: w.record_counts(np.array([SCHEMA.universe_size])),
        lambda w: w.record_counts(np.array([-1])),
        lambda w: w.transpose(INTEGERS[:-1]),
        lambda w: w.transpose(INTEGERS + (MAX_COEFFICIENTS // 41 + 1)),
        lambda w: w.transpose_sparse(np.array([41]), np.array([1])),
        lambda w: w.transpose_sparse(np.array([-1]), np.array([1])),
        lambda w: w.transpose_sparse(np.array([1]), np.array([1, 2])),
        lambda w: w.transpose_sparse(np.array([1]), np.array([MAX_COEFFICIENTS + 1])),
        lambda w: w.statement_sensitivity(2),
        lambda w: concatenate([]),
        lambda w: concatenate([w, compile_workload([], Schema(SCHEMA.attributes[:2]))]),
    ],
)
def test_misuse_is_refused(misuse: Callable[[CompiledWorkload], object]) -> None:
    with pytest.raises(ValueError, match=r"must|outside|sum to|no such|there"):
        misuse(WORKLOAD)


def test_the_largest_coefficients_are_exact() -> None:
    largest = np.array([MAX_COEFFICIENTS - 39, *[-1] * 39, 0])
    tables = WORKLOAD.transpose(largest).reshape(SCHEMA.sizes)
    assert tables[1, 0, 0, 0] == MAX_COEFFICIENTS - 40
    assert tables[0, 0, 0, 0] == -1


def test_what_is_asked_twice_is_compiled_once_and_counted_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    """So whether a workload is too complex does not depend on whether equal statements are one object."""
    schema = Schema(tuple(Attribute(f"a{i}", ("0", "1")) for i in range(20)))
    shared, asked = checkerboard(4), [checkerboard(4) for _ in range(5)]
    alone = PredicateCompiler(schema)
    alone.compile(shared, "p")
    for statements in (asked, [shared] * 5, list(workload_from_bytes(workload_to_bytes(asked)))):
        monkeypatch.setattr("equipoise.queries.predicate_compiler.MAX_PRODUCTS_IN_ALL", 5 * alone.products_in_all)
        compiled = compile_workload(statements, schema)
        assert compiled.counts(np.ones(1 << 20, dtype=np.int64)).tolist() == [1 << 19] * 5
        monkeypatch.setattr(
            "equipoise.queries.predicate_compiler.MAX_PRODUCTS_IN_ALL", 5 * alone.products_in_all - 1
        )
        with pytest.raises(InvalidArgument, match="too complex together"):
            compile_workload(statements, schema)


def test_ways_are_the_most_attributes_of_one_statement_also_beyond_one_word_of_them() -> None:
    many = [Attribute(f"a{number}", ("0", "1")) for number in range(65)]
    schema = Schema((*many, Attribute("one", ("0",))))
    asked: list[Statement] = [
        attribute("a0") == "1",
        Marginal(("a1", "a61", "a62", "a64", "one")),
        attribute("a63") == "0",
    ]
    for statements, ways in ((asked, 4), (asked[:1], 1), ([Marginal(("one",))], 1)):
        workload = compile_workload(statements, schema)
        assert workload.ways == max(1, *map(len, workload.statement_tables())) == ways
