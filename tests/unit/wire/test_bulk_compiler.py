"""Workloads that are compiled from their bytes ask the same as those that are compiled one by one."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence

import numpy as np
import pytest
from harness.naive_workloads import SCHEMA, statements_of_all_kinds
from hypothesis import given
from hypothesis import strategies as st

from equipoise.errors import BudgetExhausted, EquipoiseError, InvalidArgument
from equipoise.queries.compiled_workload import CompiledWorkload
from equipoise.queries.predicates import AllOf, Among, Predicate
from equipoise.queries.schema import Attribute, Schema
from equipoise.queries.statements import Marginal, Statement
from equipoise.queries.workload_compiler import compile_workload
from equipoise.v1 import types_pb2
from equipoise.wire import bulk_compiler
from equipoise.wire.bulk_compiler import compile_workload_bytes
from equipoise.wire.statements import read_statement
from equipoise.wire.workloads import workload_from_bytes, workload_to_bytes

SIZES = (3, 4, 2, 5)
NAMES = tuple("abcd")
GRID = Schema(tuple(Attribute(name, tuple(map(str, range(size)))) for name, size in zip(NAMES, SIZES, strict=True)))
SIMPLE = [
    AllOf((Among("a", (a,)), Among("c", (c,)), Among("d", (d, other))))
    for a, c, d, other in itertools.product("012", "01", "0123", "0123")
    if d < other
]
conjunctions = st.lists(st.sampled_from(SIMPLE), max_size=6)


def one_by_one(data: bytes, schema: Schema) -> CompiledWorkload:
    return compile_workload(workload_from_bytes(data), schema)


def asks_the_same(one: CompiledWorkload, other: CompiledWorkload, schema: Schema) -> bool:
    """Every number that a workload gives is a function of these: all queries over the universe, and statements."""
    universe = int(np.prod(schema.sizes))
    records = np.random.default_rng(0).integers(0, universe, 200)
    histogram = np.bincount(records, minlength=universe).astype(np.int64)
    weights = np.arange(1, one.query_count + 1, dtype=np.int64)
    chosen = np.arange(0, one.query_count, 3)
    return (
        one.statement_offsets.tolist() == other.statement_offsets.tolist()
        and one.statement_sensitivities.tolist() == other.statement_sensitivities.tolist()
        and one.marginals == other.marginals
        and one.support == other.support
        and one.statement_tables() == other.statement_tables()
        and one.counts(histogram).tolist() == other.counts(histogram).tolist()
        and one.record_counts(records[:50]).tolist() == other.record_counts(records[:50]).tolist()
        and one.transpose(weights).tolist() == other.transpose(weights).tolist()
        and one.transpose_sparse(chosen, weights[chosen]).tolist()
        == other.transpose_sparse(chosen, weights[chosen]).tolist()
    )


@given(st.lists(statements_of_all_kinds, min_size=1, max_size=6))
def test_any_workload_asks_the_same(statements: list[Statement]) -> None:
    data = workload_to_bytes(statements)
    assert asks_the_same(compile_workload_bytes(data, SCHEMA), one_by_one(data, SCHEMA), SCHEMA)


@given(conjunctions, conjunctions, st.integers(0, 3))
def test_conjunctions_among_other_statements_ask_the_same(
    before: list[Predicate], after: list[Predicate], others: int
) -> None:
    statements: list[Statement] = [*before, *[Marginal(("b", "a"))] * others, Among("b", ("1",)), *after]
    data = workload_to_bytes(statements)
    assert asks_the_same(compile_workload_bytes(data, GRID), one_by_one(data, GRID), GRID)


def test_statements_are_looked_at_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bulk_compiler, "_AT_ONCE", 7)
    data = workload_to_bytes([*SIMPLE, Marginal(("a",)), *SIMPLE])
    assert asks_the_same(compile_workload_bytes(data, GRID), one_by_one(data, GRID), GRID)


def test_conditions_of_one_key_are_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    data = workload_to_bytes(SIMPLE)
    monkeypatch.setattr(bulk_compiler, "_key_words", lambda: np.zeros(16, dtype=np.uint64))
    assert asks_the_same(compile_workload_bytes(data, GRID), one_by_one(data, GRID), GRID)


def test_conjunctions_are_not_read_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[bytes] = []

    def counting(data: bytes, path: str) -> Statement:
        read.append(data)
        return read_statement(data, path)

    monkeypatch.setattr(bulk_compiler, "read_statement", counting)
    compile_workload_bytes(workload_to_bytes(SIMPLE * 10), GRID)
    assert len(read) == len({condition for each in SIMPLE for condition in each.conditions})


CONDITIONS: dict[str, Sequence[Predicate]] = {
    "an attribute twice": [Among("a", ("0", "1")), Among("a", ("1", "2"))],
    "an attribute twice, never true": [Among("a", ("0",)), Among("a", ("1",))],
    "always true": [Among("a", ("0", "1", "2")), Among("b", ("0",))],
    "one condition": [Among("a", ("0",))],
    "nested": [AllOf((Among("a", ("0",)), Among("b", ("0",)))), Among("c", ("0",))],
    "nine conditions": [Among("a", ("0",))] * 9,
    "many bytes": [Among("a", ("0",) * 60), Among("b", ("0",))],
}


@pytest.mark.parametrize("conditions", CONDITIONS.values(), ids=CONDITIONS)
def test_what_is_no_simple_conjunction_asks_the_same(conditions: Sequence[Predicate]) -> None:
    data = workload_to_bytes([SIMPLE[0], AllOf(tuple(conditions)), SIMPLE[1]])
    assert asks_the_same(compile_workload_bytes(data, GRID), one_by_one(data, GRID), GRID)


Compile = Callable[[bytes, Schema], CompiledWorkload]


def outcome(compiling: Compile, data: bytes) -> CompiledWorkload | tuple[type, str]:
    """What comes of a workload, or how it is refused."""
    try:
        return compiling(data, GRID)
    except EquipoiseError as error:
        return type(error), error.message


@pytest.mark.parametrize(
    "wrong",
    [
        AllOf((SIMPLE[0].conditions[1], Among("none", ("0",)))),
        AllOf((SIMPLE[0].conditions[1], Among("a", ("9",)))),
        Marginal(("a", "none")),
    ],
    ids=["name", "label", "marginal"],
)
def test_what_is_wrong_is_named_alike(wrong: Statement) -> None:
    check_alike(workload_to_bytes([*SIMPLE[:5], wrong, *SIMPLE[5:]]))


@pytest.mark.parametrize("names", [[], ["a", "a"]])
def test_marginals_that_no_client_writes_are_refused_alike(names: list[str]) -> None:
    message = types_pb2.Workload.FromString(workload_to_bytes(SIMPLE[:10]))
    message.statements[5].marginal.attributes[:] = names
    message.statements[5].marginal.SetInParent()
    check_alike(message.SerializeToString())


def check_alike(data: bytes) -> None:
    refused = outcome(compile_workload_bytes, data)
    assert refused == outcome(one_by_one, data)
    assert isinstance(refused, tuple)
    assert refused[1].startswith("statements[5]")


@pytest.mark.slow
def test_every_damaged_byte_is_read_alike() -> None:
    """Whatever bytes are: both ways refuse them, or both come to the same."""
    data = workload_to_bytes([*SIMPLE[:2], Marginal(("a",))])
    for at in range(len(data)):
        for bit in range(8):
            damaged = bytearray(data)
            damaged[at] ^= 1 << bit
            found, expected = (outcome(each, bytes(damaged)) for each in (compile_workload_bytes, one_by_one))
            if isinstance(found, CompiledWorkload) and isinstance(expected, CompiledWorkload):
                assert asks_the_same(found, expected, GRID)
            else:
                assert found == expected


def test_too_many_statements_and_too_much_work_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    data = workload_to_bytes(SIMPLE)
    with pytest.raises(BudgetExhausted):
        compile_workload_bytes(data, GRID, max_statements=len(SIMPLE) - 1)
    monkeypatch.setattr("equipoise.queries.predicate_compiler.MAX_PRODUCTS_IN_ALL", 3 * len(SIMPLE) - 1)
    for compiling in (compile_workload_bytes, one_by_one):
        with pytest.raises(InvalidArgument, match="too complex together"):
            compiling(data, GRID)
