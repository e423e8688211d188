"""The wire: every malformed message gets a named field, or is data loss."""

from __future__ import annotations

import math
import typing
from collections.abc import Callable

import pytest

from equipoise.errors import BudgetExhausted, InvalidArgument
from equipoise.queries.predicate_compiler import MAX_DEPTH
from equipoise.queries.predicates import AllOf, Among, AnyOf, Interval, Not, Predicate
from equipoise.queries.schema import Attribute, Schema
from equipoise.queries.schema_checks import bin_labels
from equipoise.queries.statements import (
    KINDS,
    CappedSum,
    CountDistinct,
    Marginal,
    Quantile,
    Statement,
    Sum,
    Variance,
    kind_of,
)
from equipoise.v1 import types_pb2
from equipoise.wire.workloads import schema_from_message, schema_to_message, workload_from_bytes, workload_to_bytes

EDGES = (0.0, 0.1, 15.0)
SCHEMA = Schema(
    (
        Attribute("carrier", ("AA", "Ü", "other"), missing="other", unknown="other"),
        Attribute("delay", (*bin_labels(EDGES), "none"), EDGES, missing="none", clamp=True),
    )
)


def wrong(value: object) -> typing.Any:
    """What the types forbid, and callers without a type checker send."""
    return value


AMONG = Among("carrier", ("AA",))


def test_schemas_come_back() -> None:
    message = schema_to_message(SCHEMA)
    assert schema_from_message(types_pb2.Schema.FromString(message.SerializeToString())) == SCHEMA


def damaged_schema(damage: Callable[[types_pb2.Schema], object]) -> types_pb2.Schema:
    message = schema_to_message(SCHEMA)
    damage(message)
    return message


@pytest.mark.parametrize(
    ("damage", "field"),
    [
        (lambda m: m.Clear(), "schema.attributes"),
        (lambda m: m.attributes.add(), "schema.attributes[2].name"),
        (lambda m: m.attributes[1].edges.append(math.nan), "schema.attributes[1].edges[3]"),
        (lambda m: m.attributes[1].edges.append(1.0), "schema.attributes[1].edges[3]"),
        (lambda m: m.attributes[0].categories.append("AA"), "schema.attributes[0].categories"),
        (lambda m: m.attributes[0].MergeFromString(b"\x78\x01"), "schema.attributes[0]"),
    ],
)
def test_malformed_schemas_name_the_field(damage: Callable[[types_pb2.Schema], object], field: str) -> None:
    with pytest.raises(InvalidArgument) as caught:
        schema_from_message(damaged_schema(damage))
    assert caught.value.field == field


STATEMENTS: tuple[Statement, ...] = (
    AMONG,
    Interval("delay", -math.inf, 0.1),
    Marginal(("delay", "carrier")),
    Marginal(("delay",), Not(AMONG)),
    AnyOf((AllOf((AMONG, Not(Among("carrier", ("Ü", "other"))))), Interval("delay", 0.0, math.inf))),
    Quantile("delay", 0.25, 0.1),
    Variance("delay"),
    CountDistinct(("delay", "carrier")),
    CappedSum("delay", 12.5),
    Sum("delay"),
    Sum("delay", ("carrier",), Not(AMONG), 0.1, 1e9),
)


def test_every_kind_of_statement_travels() -> None:
    kinds = [kind_of(each) for each in STATEMENTS]
    assert [kind for kind in KINDS if kind not in kinds] == []


def test_workloads_come_back() -> None:
    data = workload_to_bytes(STATEMENTS)
    assert workload_from_bytes(data) == STATEMENTS
    assert workload_to_bytes(list(STATEMENTS)) == data


def nested(levels: int, kind: Callable[[Predicate], Predicate]) -> Predicate:
    predicate: Predicate = AMONG
    for _ in range(levels - 1):
        predicate = kind(predicate)
    return predicate


@pytest.mark.parametrize("kind", [Not, lambda inner: AllOf((inner,)), lambda inner: AnyOf((inner,))])
def test_the_deepest_nesting_travels(kind: Callable[[Predicate], Predicate]) -> None:
    deepest = nested(MAX_DEPTH, kind)
    assert workload_from_bytes(workload_to_bytes([deepest])) == (deepest,)
    restricted = Marginal(("delay",), deepest)
    assert workload_from_bytes(workload_to_bytes([restricted])) == (restricted,)
    deeper = nested(MAX_DEPTH + 1, kind)
    for refused in (deeper, Marginal(("delay",), deeper)):
        with pytest.raises(InvalidArgument, match="nested deeper"):
            workload_to_bytes([refused])


@pytest.mark.parametrize("levels", [MAX_DEPTH + 1, 60, 5000])
def test_deeper_nesting_is_refused(levels: int) -> None:
    data = field(1, field(1, b"carrier") + field(2, b"AA"))
    for _ in range(levels - 1):
        data = field(5, data)
    for statement in (field(1, data), field(2, field(1, b"delay") + field(2, data))):
        with pytest.raises(InvalidArgument, match="nested"):
            workload_from_bytes(b"\x08\x01" + field(2, statement))


def field(number: int, content: bytes) -> bytes:
    """One length-delimited field of a message."""
    length, size = len(content), b""
    while length > 127:
        size += bytes([length & 127 | 128])
        length >>= 7
    return bytes([number << 3 | 2]) + size + bytes([length]) + content


@pytest.mark.parametrize(
    ("statements", "at"),
    [
        ([], "statements"),
        ([AMONG, "text"], "statements[1].predicate"),
        ([Among("", ("AA",))], "statements[0].predicate.among.attribute"),
        ([Among("carrier", ())], "statements[0].predicate.among.categories"),
        ([Among("carrier", wrong("AA"))], "statements[0].predicate.among.categories"),
        ([Among("carrier", wrong(("AA", 3)))], "statements[0].predicate.among.categories[1]"),
        ([Among("carrier", ("\ud800",))], "statements[0].predicate.among.categories[0]"),
        ([Interval(wrong(7), 0.0, 1.0)], "statements[0].predicate.interval.attribute"),
        ([Interval("delay", math.nan, 1.0)], "statements[0].predicate.interval.low"),
        ([Interval("delay", 0.0, 10**400)], "statements[0].predicate.interval.high"),
        ([Interval("delay", 0.0, True)], "statements[0].predicate.interval.high"),
        ([AllOf(())], "statements[0].predicate.all.conditions"),
        ([Not(AnyOf(()))], "statements[0].predicate.negation.any.conditions"),
        ([AllOf(wrong((AMONG, None)))], "statements[0].predicate.all.conditions[1]"),
        ([Marginal(("delay",), wrong("AA"))], "statements[0].marginal.where"),
        ([Marginal(("delay",), AllOf(()))], "statements[0].marginal.where.all.conditions"),
        ([AMONG, Quantile("", 0.5, 0.1)], "statements[1].statistic.quantile.attribute"),
        ([Quantile("delay", math.nan, 0.1)], "statements[0].statistic.quantile.level"),
        ([Quantile("delay", 0.5, wrong("0.1"))], "statements[0].statistic.quantile.window"),
        ([Variance(wrong(None))], "statements[0].statistic.variance.attribute"),
        ([CappedSum("delay", 10**400)], "statements[0].statistic.capped_sum.cap"),
        ([Sum("")], "statements[0].sum.attribute"),
        ([Sum("delay", where=AllOf(()))], "statements[0].sum.where.all.conditions"),
        ([Sum("delay", low=math.nan)], "statements[0].sum.low"),
        ([Sum("delay", high=wrong("1"))], "statements[0].sum.high"),
    ],
)
def test_what_cannot_be_written_names_the_field(statements: list[Statement], at: str) -> None:
    with pytest.raises(InvalidArgument) as caught:
        workload_to_bytes(statements)
    assert caught.value.field == at


def workload(**parts: object) -> types_pb2.Workload:
    message = types_pb2.Workload(version=1)
    message.statements.add().predicate.among.CopyFrom(
        types_pb2.Predicate.Among(attribute="carrier", categories=["AA"])
    )
    message.MergeFrom(types_pb2.Workload(**parts))  # type: ignore[arg-type]
    return message


def predicate(**parts: object) -> dict[str, object]:
    return {"statements": [{"predicate": parts}]}


def statistic(**parts: object) -> dict[str, object]:
    return {"statements": [{"statistic": parts}]}


@pytest.mark.parametrize(
    ("message", "at"),
    [
        (types_pb2.Workload(), "version"),
        (types_pb2.Workload(version=1), "statements"),
        (workload(version=2), "version"),
        (workload(statements=[{}]), "statements[1]"),
        (workload(**predicate()), "statements[1].predicate"),
        (workload(**predicate(among={})), "statements[1].predicate.among.attribute"),
        (workload(**predicate(among={"attribute": "carrier"})), "statements[1].predicate.among.categories"),
        (
            workload(**predicate(among={"attribute": "carrier", "categories": ["AA", ""]})),
            "statements[1].predicate.among.categories[1]",
        ),
        (workload(**predicate(interval={"low": 1.0})), "statements[1].predicate.interval.attribute"),
        (
            workload(**predicate(interval={"attribute": "delay", "high": math.nan})),
            "statements[1].predicate.interval.high",
        ),
        (workload(**predicate(all={})), "statements[1].predicate.all.conditions"),
        (workload(**predicate(any={"conditions": [{}]})), "statements[1].predicate.any.conditions[0]"),
        (workload(**predicate(negation={})), "statements[1].predicate.negation"),
        (workload(statements=[{"marginal": {}}]), "statements[1].marginal.attributes"),
        (workload(statements=[{"marginal": {"attributes": [""]}}]), "statements[1].marginal.attributes[0]"),
        (
            workload(statements=[{"marginal": {"attributes": ["delay"], "where": {}}}]),
            "statements[1].marginal.where",
        ),
        (workload(statements=[{"marginal": {"where": {}}}]), "statements[1].marginal.attributes"),
        (workload(statements=[{"marginal": {"attributes": ["a", "a"]}}]), "statements[1].marginal.attributes[1]"),
        (workload(**statistic()), "statements[1].statistic"),
        (workload(**statistic(quantile={"level": 0.5})), "statements[1].statistic.quantile.attribute"),
        (
            workload(**statistic(quantile={"attribute": "delay", "level": math.nan})),
            "statements[1].statistic.quantile.level",
        ),
        (
            workload(**statistic(quantile={"attribute": "delay", "window": math.nan})),
            "statements[1].statistic.quantile.window",
        ),
        (workload(**statistic(variance={})), "statements[1].statistic.variance.attribute"),
        (workload(**statistic(count_distinct={})), "statements[1].statistic.count_distinct.attributes"),
        (
            workload(**statistic(count_distinct={"attributes": ["delay", ""]})),
            "statements[1].statistic.count_distinct.attributes[1]",
        ),
        (workload(**statistic(capped_sum={"cap": 1.0})), "statements[1].statistic.capped_sum.attribute"),
        (
            workload(**statistic(capped_sum={"attribute": "delay", "cap": math.nan})),
            "statements[1].statistic.capped_sum.cap",
        ),
    ],
)
def test_malformed_workloads_name_the_field(message: types_pb2.Workload, at: str) -> None:
    with pytest.raises(InvalidArgument) as caught:
        workload_from_bytes(message.SerializeToString())
    assert caught.value.field == at


@pytest.mark.parametrize(
    ("data", "at"),
    [
        (workload().SerializeToString() + b"\x78\x01", "workload"),
        (workload().SerializeToString() + field(2, b"\x78\x01"), "statements[1]"),
        (b"\x08\x01" + field(2, field(1, field(1, b"\x78\x01"))), "statements[0].predicate.among"),
        (
            b"\x08\x01" + field(2, field(1, field(3, field(1, b"\x78\x01")))),
            "statements[0].predicate.all.conditions[0]",
        ),
        (b"\x08\x01" + field(2, field(2, field(2, b"\x78\x01"))), "statements[0].marginal.where"),
        (b"\x08\x01" + field(2, field(3, b"\x78\x01")), "statements[0].statistic"),
        (b"\x08\x01" + field(2, field(3, field(2, b"\x78\x01"))), "statements[0].statistic.variance"),
        (workload().SerializeToString()[:-1], "workload"),
        (b"\x08\x01" + field(2, field(2, field(1, b"\xff"))), "statements[0]"),
        (b"garbage", "workload"),
        (b"", "version"),
    ],
)
def test_unknown_fields_and_damaged_bytes_are_refused(data: bytes, at: str) -> None:
    with pytest.raises(InvalidArgument) as caught:
        workload_from_bytes(data)
    assert caught.value.field == at


ONE = field(2, field(2, field(1, b"delay")))
LARGE = field(2, field(2, field(1, bytes(2**20))))


@pytest.mark.parametrize(
    ("data", "at"),
    [
        (b"\x08\x01" + ONE + LARGE, "statements[1]"),
        (b"\x08\x01" * 17 + ONE, "workload"),
        (b"\x08\x02\x78\x01", "version"),
        (b"\x08\x01\x13\x14", "workload"),
        (b"\x08\x01" + ONE + b"\x14", "workload"),
        (b"\x08\x01\x02\x00", "workload"),
        (b"\x08" + b"\xff" * 10 + b"\x01", "workload"),
        (b"\x08\x01\x12\xff\xff\xff\xff\x0f", "workload"),
        (b"\x08\x01\x12", "workload"),
    ],
)
def test_what_encloses_statements_is_checked_before_they_are_read(data: bytes, at: str) -> None:
    with pytest.raises(InvalidArgument) as caught:
        workload_from_bytes(data, 2)
    assert caught.value.field == at


def test_the_last_version_counts_however_it_is_written() -> None:
    assert workload_from_bytes(b"\x08\x07" + ONE + b"\x08\x81\x80\x80\x00") == (Marginal(("delay",)),)


def test_no_more_statements_are_read_than_are_allowed() -> None:
    assert len(workload_from_bytes(b"\x08\x01" + ONE * 3, 3)) == 3
    # What comes behind the first too many is not even looked at, and those before it are not parsed.
    for data in (ONE * 4, field(2, b"\xff") * 4, ONE * 4 + b"garbage"):
        with pytest.raises(BudgetExhausted, match="more statements than the 3 of your share"):
            workload_from_bytes(b"\x08\x01" + data, 3)
