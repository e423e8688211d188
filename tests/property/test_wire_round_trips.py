"""Whatever can be asked travels unchanged; whatever else arrives raises the one right error."""

from __future__ import annotations

import contextlib
import json
import math

import numpy as np
from harness.answers import flat, some_answers
from harness.schema_strategies import names, schemas
from hypothesis import given
from hypothesis import strategies as st

from equipoise.errors import DataLoss, InvalidArgument
from equipoise.queries.predicates import AllOf, Among, AnyOf, Interval, Not, Predicate
from equipoise.queries.schema import Attribute, Schema
from equipoise.queries.schema_checks import bin_labels
from equipoise.queries.statements import (
    CappedSum,
    CountDistinct,
    Marginal,
    Quantile,
    Statement,
    Statistic,
    Sum,
    Variance,
)
from equipoise.queries.workload_compiler import compile_statistic, compile_workload
from equipoise.v1 import types_pb2
from equipoise.wire.results import chunk_from_bytes, results_to_chunks
from equipoise.wire.workloads import schema_from_message, schema_to_message, workload_from_bytes, workload_to_bytes

numbers = st.floats(allow_nan=False)
leaves = st.builds(Among, names, st.lists(names, min_size=1, max_size=4).map(tuple)) | st.builds(
    Interval, names, numbers, numbers
)


def combined(inner: st.SearchStrategy[Predicate]) -> st.SearchStrategy[Predicate]:
    several = st.lists(inner, min_size=1, max_size=4).map(tuple)
    return st.builds(AllOf, several) | st.builds(AnyOf, several) | st.builds(Not, inner)


predicates: st.SearchStrategy[Predicate] = st.recursive(leaves, combined, max_leaves=10)
axes = st.lists(names, min_size=1, max_size=4, unique=True).map(tuple)
marginals = st.builds(Marginal, axes, st.none() | predicates)
statistics: st.SearchStrategy[Statistic] = (
    st.builds(Quantile, names, numbers, numbers)
    | st.builds(Variance, names)
    | st.builds(CountDistinct, axes)
    | st.builds(CappedSum, names, numbers)
)
bounds = st.none() | numbers
cells = st.just(()) | axes.filter(lambda by: "summed" not in by)
sums = st.builds(Sum, st.just("summed"), cells, st.none() | predicates, bounds, bounds)
workloads: st.SearchStrategy[list[Statement]] = st.lists(
    predicates | marginals | sums | statistics, min_size=1, max_size=5
)


@given(schemas)
def test_schemas_come_back_from_messages_and_from_json(schema: Schema) -> None:
    data = schema_to_message(schema).SerializeToString()
    assert schema_from_message(types_pb2.Schema.FromString(data)) == schema
    assert Schema.from_json(schema.to_json()) == schema


@given(workloads)
def test_workloads_come_back(statements: list[Statement]) -> None:
    data = workload_to_bytes(statements)
    assert workload_from_bytes(data) == tuple(statements)
    assert workload_to_bytes(workload_from_bytes(data)) == data


SCHEMA = Schema((Attribute("a", ("x", "y")), Attribute("b", bin_labels((0.0, 1.0, 2.0)), (0.0, 1.0, 2.0))))


@given(workloads)
def test_whatever_is_asked_compiles_or_names_a_field(statements: list[Statement]) -> None:
    with contextlib.suppress(InvalidArgument):
        compile_workload(statements, SCHEMA)


@given(statistics)
def test_whatever_statistic_is_asked_compiles_or_names_a_field(statistic: Statistic) -> None:
    with contextlib.suppress(InvalidArgument):
        compile_statistic(statistic, SCHEMA, "statement")


@given(st.binary(max_size=200))
def test_garbage_is_an_invalid_argument(data: bytes) -> None:
    with contextlib.suppress(InvalidArgument):
        workload_from_bytes(data)
    with contextlib.suppress(DataLoss):
        chunk_from_bytes(data)


@given(workloads, st.data())
def test_damaged_workloads_are_invalid_arguments(statements: list[Statement], data: st.DataObject) -> None:
    damaged = bytearray(workload_to_bytes(statements))
    for _ in range(data.draw(st.integers(1, 3))):
        damaged[data.draw(st.integers(0, len(damaged) - 1))] = data.draw(st.integers(0, 255))
    with contextlib.suppress(InvalidArgument):
        for statement in workload_from_bytes(bytes(damaged)):
            compile_workload([statement], SCHEMA)


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_garbage_is_an_invalid_schema(text: str) -> None:
    with contextlib.suppress(InvalidArgument):
        Schema.from_json(text)


json_values: st.SearchStrategy[object] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)
keys = st.sampled_from(["name", "categories", "edges", "missing", "unknown", "clamp"])
documents = st.dictionaries(keys, json_values | st.lists(st.floats() | st.integers()) | st.lists(names), max_size=6)


@given(st.lists(documents, max_size=3))
def test_odd_json_is_an_invalid_schema(entries: list[dict[str, object]]) -> None:
    with contextlib.suppress(InvalidArgument):
        schema = Schema.from_json(json.dumps({"version": 1, "attributes": entries}))
        assert Schema.from_json(schema.to_json()) == schema


@given(st.text(max_size=20), st.lists(st.integers(-(2**63), 2**63 - 1), max_size=50))
def test_results_come_back(round_id: str, values: list[int]) -> None:
    with contextlib.suppress(UnicodeEncodeError):
        answers = some_answers(np.array(values, dtype=np.int64) // 4, np.array(values) % 10 + 1, 1 << 30)
        (chunk,) = results_to_chunks(round_id, answers)
        read = chunk_from_bytes(chunk)
        assert read.round_id == round_id
        assert flat(read.answers) == flat(answers)


def test_infinite_ends_travel() -> None:
    statement = Interval("delay", -math.inf, math.inf)
    assert workload_from_bytes(workload_to_bytes([statement])) == (statement,)
