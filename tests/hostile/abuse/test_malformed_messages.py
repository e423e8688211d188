"""Workloads that nobody's client would send: each is refused with its status, and the server goes on."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
from harness.abuse.malformed import BEYOND_UTF8, BUDGET, DENORMAL, FINE, INVALID, LARGE_EDGE, NASTY
from harness.abuse.place import (
    ANALYST,
    EDGES,
    WORKLOAD_LIMIT,
    Place,
    attempt,
    outcome,
    refusal,
    upload,
)
from harness.server_process import Refusal

from equipoise.v1 import analyst_pb2, types_pb2

pytestmark = pytest.mark.usefixtures("nothing_charged")
Predicate = types_pb2.Predicate
Statement = types_pb2.Statement


def workload(*statements: Statement, version: int = 1) -> bytes:
    return types_pb2.Workload(version=version, statements=statements).SerializeToString()


def among(attribute: str, *categories: str) -> Statement:
    return Statement(predicate=Predicate(among=Predicate.Among(attribute=attribute, categories=categories)))


def interval(low: float, high: float) -> bytes:
    return workload(
        Statement(predicate=Predicate(interval=Predicate.Interval(attribute="price", low=low, high=high)))
    )


def marginal(*attributes: str) -> bytes:
    return workload(Statement(marginal=types_pb2.Marginal(attributes=attributes)))


def restricted(where: Predicate) -> Statement:
    return Statement(marginal=types_pb2.Marginal(attributes=["price"], where=where))


def field(number: int, content: bytes) -> bytes:
    """A length-delimited field of a message, of whatever content."""
    length, encoded = len(content), bytearray()
    while length >= 128:
        encoded.append(length % 128 + 128)
        length //= 128
    return bytes([number << 3 | 2]) + bytes(encoded) + bytes([length]) + content


def nested_predicate(depth: int, number: int = 5) -> bytes:
    """A predicate under so many negations (5), alls (3) or anys (4)."""
    content = among("colour", "red").predicate.SerializeToString()
    for _ in range(depth):
        content = field(number, content if number == 5 else field(1, content))
    return content


def nested(depth: int, number: int = 5) -> bytes:
    """The workload of such a predicate."""
    return b"\x08\x01" + field(2, field(1, nested_predicate(depth, number)))


SIZE = ("RESOURCE_EXHAUSTED", "SIZE")
ODD_NUMBERS = (
    math.nan,
    DENORMAL,
    -DENORMAL,
    LARGE_EDGE,
    -LARGE_EDGE,
    *(math.nextafter(edge, way) for edge in EDGES for way in (-math.inf, math.inf)),
)
RED = among("colour", "red")
CELLS = Statement(marginal=types_pb2.Marginal(attributes=["colour", "price"]))
BIN = Predicate.Interval(attribute="colour", low=0.0, high=1.0)


def any_of(count: int) -> bytes:
    return workload(Statement(predicate=Predicate(any=Predicate.Any(conditions=[RED.predicate] * count))))


def workloads() -> dict[str, tuple[bytes, tuple[str, str]]]:
    """What is refused, by name, with its status and reason."""
    return {
        "nothing": (b"", INVALID),
        "no statements": (workload(), INVALID),
        "an empty statement": (workload(Statement()), INVALID),
        "an empty predicate": (workload(Statement(predicate=Predicate())), INVALID),
        "no categories": (workload(among("colour")), INVALID),
        "an empty category": (workload(among("colour", "")), INVALID),
        "no attribute": (workload(among("", "red")), INVALID),
        "no attributes": (marginal(), INVALID),
        "where nothing is said": (workload(restricted(Predicate())), INVALID),
        "where there is no such category": (
            workload(
                Statement(marginal=types_pb2.Marginal(attributes=["price"], where=among("colour", "x").predicate))
            ),
            INVALID,
        ),
        "where it is nested too deeply": (
            b"\x08\x01" + field(2, field(2, field(1, b"price") + field(2, nested_predicate(32)))),
            INVALID,
        ),
        "where a stack would not reach": (
            b"\x08\x01" + field(2, field(2, field(1, b"price") + field(2, nested_predicate(20_000)))),
            INVALID,
        ),
        "a sum of nothing": (workload(Statement(sum=types_pb2.Sum())), INVALID),
        "a sum of labels": (workload(Statement(sum=types_pb2.Sum(attribute="colour"))), INVALID),
        "a sum by itself": (workload(Statement(sum=types_pb2.Sum(attribute="price", by=["price"]))), INVALID),
        "a sum without end": (workload(Statement(sum=types_pb2.Sum(attribute="price", high=math.inf))), INVALID),
        "a sum of less than nothing": (
            workload(Statement(sum=types_pb2.Sum(attribute="price", low=math.nan))),
            INVALID,
        ),
        "an attribute twice": (marginal("colour", "colour"), INVALID),
        "bins as categories": (workload(among("price", "0.0")), INVALID),
        "categories as bins": (workload(Statement(predicate=Predicate(interval=BIN))), INVALID),
        "the wrong way round": (interval(2.0, 0.0), INVALID),
        "no version": (workload(RED, version=0), INVALID),
        "a later version": (workload(RED, version=2), INVALID),
        "the largest version": (workload(RED, version=2**32 - 1), INVALID),
        "an unknown field": (workload(RED) + b"\x78\x01", INVALID),
        "an unknown field below": (b"\x08\x01" + field(2, RED.SerializeToString() + b"\x78\x01"), INVALID),
        "an unknown field far below": (
            b"\x08\x01" + field(2, field(1, field(1, RED.predicate.among.SerializeToString() + b"\x78\x01"))),
            INVALID,
        ),
        "an unknown field of 1 MB": (workload(RED) + field(15, bytes(10**6)), INVALID),
        "an unknown kind of condition": (b"\x08\x01" + field(2, field(1, field(9, b""))), INVALID),
        "a statement of the wrong type": (b"\x08\x01\x10\x05", INVALID),
        "a group": (b"\x08\x01\x13\x14", INVALID),
        "an endless number": (b"\x08" + b"\xff" * 11, INVALID),
        "a length beyond the end": (b"\x08\x01\x12\xff\xff\xff\xff\x0f", INVALID),
        "field number 0": (b"\x08\x01\x02\x00", INVALID),
        "half of a surrogate pair": (
            b"\x08\x01" + field(2, field(1, field(1, field(1, BEYOND_UTF8) + field(2, b"red")))),
            INVALID,
        ),
        "one level too deep": (nested(32), INVALID),
        "alls too deep": (nested(32, 3), INVALID),
        "anys too deep": (nested(32, 4), INVALID),
        "deeper than a parser goes": (nested(500), INVALID),
        "deeper than a stack": (nested(20_000), INVALID),
        "more statements than the share": (workload(*[RED] * 5), BUDGET),
        "many more statements": (workload(*[RED] * 90_000), BUDGET),
        "very many empty statements": (b"\x08\x01" + b"\x12\x00" * 900_000, BUDGET),
        "more queries than the share": (
            workload(*[Statement(marginal=types_pb2.Marginal(attributes=["colour", "price"]))] * 4),
            BUDGET,
        ),
        "a statement of 1.5 MB": (any_of(90_000), INVALID),
        "more than may be sent": (b"\x08\x01" + bytes(WORKLOAD_LIMIT), SIZE),
        **{f"from {number!r}": (interval(number, 2.0), INVALID) for number in ODD_NUMBERS},
        **{f"to {number!r}": (interval(0.0, number), INVALID) for number in ODD_NUMBERS},
        **{f"an attribute of {what}": (workload(among(text, "red")), INVALID) for what, text in NASTY.items()},
        **{f"a category of {what}": (workload(among("colour", text)), INVALID) for what, text in NASTY.items()},
        **{f"a marginal of {what}": (marginal("price", text), INVALID) for what, text in NASTY.items()},
    }


@pytest.mark.thin(2)
@pytest.mark.parametrize("method", ["DryRunWorkload", "SubmitWorkload"])
def test_malformed_workloads_are_refused_and_nothing_is_kept(here: Place, method: str) -> None:
    with here.channel(here.mal) as channel:
        for name, (content, expected) in workloads().items():
            # The same request_id each time: a refused request is not remembered.
            refused = attempt(channel, f"{ANALYST}/{method}", upload(here.shared, content, "malformed"))
            assert isinstance(refused, Refusal), name
            assert (refused.status, refused.reason) == expected, (name, refused)
            assert len(refused.message.encode()) <= 2000, name
            assert refused.message.partition(":")[0] or expected != INVALID, (name, refused)
        withdrawal = analyst_pb2.WithdrawWorkloadRequest(round_id=here.shared, request_id="malformed")
        refused = refusal(channel, f"{ANALYST}/WithdrawWorkload", [withdrawal.SerializeToString()])
        assert refused.status == "NOT_FOUND"


UNUSUAL: dict[str, Callable[[], bytes]] = {
    "infinite ends": lambda: interval(-math.inf, math.inf),
    "a negative zero": lambda: interval(-0.0, 2.0),
    "the deepest": lambda: nested(31),
    # Protobuf's own rule: of a field that may be there once the last counts.
    "a version twice": lambda: b"\x08\x07" + workload(RED),
    "two kinds of statement": lambda: (
        b"\x08\x01" + field(2, field(2, field(1, b"price")) + RED.SerializeToString())
    ),
    "a length written long": lambda: b"\x08\x81\x80\x80\x00" + field(2, RED.SerializeToString()),
    "many conditions": lambda: any_of(9000),
}


@pytest.mark.parametrize("name", UNUSUAL)
def test_unusual_workloads_are_what_they_say(here: Place, name: str) -> None:
    with here.channel(here.mal) as channel:
        (raw,) = outcome(channel, f"{ANALYST}/DryRunWorkload", upload(here.shared, UNUSUAL[name]()))
    priced = analyst_pb2.DryRunWorkloadResponse.FromString(raw)
    assert (priced.statements, priced.queries, priced.sensitivity) == (1, 1, 1)


def test_every_beginning_of_a_workload_is_refused_or_is_a_workload(here: Place) -> None:
    with here.channel(here.mal) as channel:
        for length in range(len(FINE) + 1):
            found = attempt(channel, f"{ANALYST}/DryRunWorkload", upload(here.shared, FINE[:length]))
            if isinstance(found, Refusal):
                assert (found.status, found.reason) == INVALID, length
            else:
                assert length in (2 + 2 + len(ASKED_FIRST), len(FINE)), length


ASKED_FIRST = types_pb2.Workload.FromString(FINE).statements[0].SerializeToString()
HEADER, PIECE = upload("shared", b"x")

UPLOADS: dict[str, Callable[[Place], list[bytes]]] = {
    "nothing": lambda _: [],
    "an empty message": lambda _: [b""],
    "a piece first": lambda here: [PIECE, *upload(here.shared, FINE)],
    "two headers": lambda here: [*upload(here.shared, FINE), *upload(here.shared, b"")],
    "nothing between": lambda here: [upload(here.shared, b"")[0], b"", *upload(here.shared, FINE)[1:]],
    "garbage after the header": lambda here: [upload(here.shared, b"")[0], b"\xff\xff"],
    "header and piece in one": lambda here: [upload(here.shared, b"")[0] + PIECE],
    "an unknown part": lambda here: [upload(here.shared, b"")[0], b"\x1a\x01x"],
    "a header only": lambda here: upload(here.shared, b""),
    "a thousand empty pieces": lambda here: [upload(here.shared, b"")[0], *[field(2, b"")] * 1000],
}


@pytest.mark.parametrize("name", UPLOADS)
def test_uploads_in_no_order_are_refused(here: Place, name: str) -> None:
    with here.channel(here.mal) as channel:
        for method in ("DryRunWorkload", "SubmitWorkload"):
            refused = refusal(channel, f"{ANALYST}/{method}", UPLOADS[name](here))
            assert (refused.status, refused.reason) == INVALID, refused


def test_request_ids_are_any_short_text(here: Place) -> None:
    with here.channel(here.mal) as channel:
        for what, text in {"none": "", **NASTY}.items():
            request = analyst_pb2.WithdrawWorkloadRequest(round_id=here.shared, request_id=text)
            refused = refusal(channel, f"{ANALYST}/WithdrawWorkload", [request.SerializeToString()])
            status = "NOT_FOUND" if 0 < len(text) <= 128 else "INVALID_ARGUMENT"
            assert refused.status == status, (what, refused)
