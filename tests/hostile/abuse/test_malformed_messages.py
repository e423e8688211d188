"""Messages that nobody's client would send: each is refused with its status, and the server goes on."""

from __future__ import annotations

import gzip
import math
import socket
import ssl
from collections.abc import Callable, Iterator

import grpc
import pytest
from google.protobuf.timestamp_pb2 import Timestamp
from harness.abuse.place import (
    ANALYST,
    ASKED,
    AUDITOR,
    EDGES,
    MESSAGE_LIMIT,
    OPERATOR,
    SCHEMA,
    WORKLOAD_LIMIT,
    Place,
    attempt,
    outcome,
    refusal,
    terms,
    upload,
)
from harness.abuse.raw_http2 import Header, call_headers, connected, endings, message
from harness.server_process import Refusal

from equipoise.model.identities import Role
from equipoise.v1 import analyst_pb2, auditor_pb2, operator_pb2, types_pb2
from equipoise.wire.terms import terms_to_message
from equipoise.wire.workloads import schema_to_message, workload_to_bytes
from equipoise_server.identity.policy import POLICY

Predicate = types_pb2.Predicate
Statement = types_pb2.Statement
FINE = workload_to_bytes(ASKED)
LARGE_EDGE = 1.7976931348623157e308
DENORMAL = 5e-324
BEYOND_UTF8 = b"\xed\xa0\x80"  # half of a surrogate pair

NASTY = {
    "control characters": "a\r\n\t\x1b]0;b\x07\x7f\x9b",
    "SQL": "a'); DROP TABLE rounds; --",
    "a format string": "%s%n{0.__class__.__init__.__globals__}${jndi:x}",
    "a path": "../../keys/storage.key",
    "right to left": "\u202etxt.a\u2066",
    "invisible": "\ufeff\u200b\u00ad",
    "combining": "a" + "\u0301" * 3000,
    "wide and long": "\U0001f600" * 50_000,
    "long": "a" * 200_000,
    "markup": "[red]a[/red]<b>&amp;</b>",
    "not quite the name": "colour\u0337",
}


@pytest.fixture(scope="module", autouse=True)
def nothing_charged(here: Place) -> Iterator[None]:
    """Whatever is tried here, no budget and no analyst's workload has changed."""

    def journal() -> bytes:
        with here.channel(here.auditor) as channel:
            request = auditor_pb2.ListJournalRequest(page_size=1000).SerializeToString()
            return b"".join(outcome(channel, f"{AUDITOR}/ListJournal", [request]))

    before = journal()
    yield
    assert journal() == before


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


INVALID = ("INVALID_ARGUMENT", "INVALID")
BUDGET = ("RESOURCE_EXHAUSTED", "BUDGET")
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


WORKLOADS: dict[str, tuple[bytes, tuple[str, str]]] = {
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


@pytest.mark.parametrize("method", ["DryRunWorkload", "SubmitWorkload"])
def test_malformed_workloads_are_refused_and_nothing_is_kept(here: Place, method: str) -> None:
    with here.channel(here.mal) as channel:
        for name, (content, expected) in WORKLOADS.items():
            # The same request_id each time: a refused request is not remembered.
            refused = attempt(channel, f"{ANALYST}/{method}", upload(here.shared, content, "malformed"))
            assert isinstance(refused, Refusal), name
            assert (refused.status, refused.reason) == expected, (name, refused)
            assert len(refused.message.encode()) <= 2000, name
            assert refused.message.partition(":")[0] or expected != INVALID, (name, refused)
        withdrawal = analyst_pb2.WithdrawWorkloadRequest(round_id=here.shared, request_id="malformed")
        refused = refusal(channel, f"{ANALYST}/WithdrawWorkload", [withdrawal.SerializeToString()])
        assert refused.status == "NOT_FOUND"


UNUSUAL: dict[str, bytes] = {
    "infinite ends": interval(-math.inf, math.inf),
    "a negative zero": interval(-0.0, 2.0),
    "the deepest": nested(31),
    # Protobuf's own rule: of a field that may be there once the last counts.
    "a version twice": b"\x08\x07" + workload(RED),
    "two kinds of statement": b"\x08\x01" + field(2, field(2, field(1, b"price")) + RED.SerializeToString()),
    "a length written long": b"\x08\x81\x80\x80\x00" + field(2, RED.SerializeToString()),
    "many conditions": any_of(9000),
}


@pytest.mark.parametrize("name", UNUSUAL)
def test_unusual_workloads_are_what_they_say(here: Place, name: str) -> None:
    with here.channel(here.mal) as channel:
        (raw,) = outcome(channel, f"{ANALYST}/DryRunWorkload", upload(here.shared, UNUSUAL[name]))
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


def open_with(**changed: object) -> bytes:
    asked = terms_to_message(terms("ann"))
    for name, value in changed.items():
        if isinstance(value, list):
            asked.ClearField(name)  # type: ignore[arg-type]
            getattr(asked, name).extend(value)
        elif isinstance(value, str | int | float):
            setattr(asked, name, value)
        else:
            getattr(asked, name).CopyFrom(value)
    return operator_pb2.OpenRoundRequest(terms=asked, request_id="malformed").SerializeToString()


def share(analyst: str = "ann", statements: int = 4, queries: int = 20, sensitivity: int = 0) -> types_pb2.Share:
    return types_pb2.Share(analyst=analyst, statements=statements, queries=queries, sensitivity=sensitivity)


NO_BUDGETS = tuple(
    types_pb2.Budget(epsilon=epsilon, delta=delta)
    for epsilon, delta in (
        (math.nan, 1e-6),
        (math.inf, 1e-6),
        (-math.inf, 1e-6),
        (0.0, 1e-6),
        (-0.0, 1e-6),
        (-DENORMAL, 1e-6),
        (1.0, math.nan),
        (1.0, -DENORMAL),
        (1.0, 1.0),
        (1.0, math.nextafter(1.0, 2.0)),
        (1.0, math.inf),
        (LARGE_EDGE, DENORMAL),
    )
)
NO_TIMES = ((2**63 - 1, 0), (-(2**63), 0), (253_402_300_800, 0), (0, -1), (0, 2**31 - 1), (0, 0), (-1, 0))
NO_OPTIONS = (
    "null",
    "[]",
    '"a"',
    "{",
    "[" * 60_000,
    '{"a":' * 10_000,
    '{"a":' * 500 + "1" + "}" * 500,
    '{"rounds": NaN}',
    '{"rounds": -Infinity}',
    '{"rounds": 1e999}',
    '{"rounds": %s}' % ("9" * 4000),
    '{"rounds": %s}' % ("9" * 9000),
    '{"\\ud800": 1}',
    '{"play": "\\udfff"}',
    '{"\\u0000": 1}',
    '{"a": "%s"}' % ("\U0001f600" * 60_000),
    '{"%s": 1}' % ("\U0001f600" * 60_000),
    '{"__class__": {"__init__": 1}}',
    " " * 70_000,
)
NO_SHARES: tuple[list[types_pb2.Share], ...] = (
    [],
    [share(), share()],
    [share(statements=0)],
    [share(queries=0)],
    [share(statements=5, queries=4)],
    [share(statements=2**64 - 1, queries=2**64 - 1)],
    [share(sensitivity=9)],
    [share(sensitivity=2**64 - 1)],
    [share(""), share()],
    [share(f"a{number}") for number in range(40_000)],
)
TERMS: dict[str, bytes] = {
    **{f"data budget {number}": open_with(data_budget=each) for number, each in enumerate(NO_BUDGETS)},
    **{f"analyst budget {number}": open_with(analyst_budget=each) for number, each in enumerate(NO_BUDGETS)},
    **{
        f"beta {beta!r}": open_with(beta=beta)
        for beta in (math.nan, math.inf, 0.0, -0.0, 1.0, -1.0, DENORMAL, -DENORMAL, LARGE_EDGE)
    },
    **{f"unit {unit}": open_with(unit=unit) for unit in (0, 3, 99, -1, 2**31 - 1)},
    **{
        f"closing {seconds} {nanos}": open_with(close_time=Timestamp(seconds=seconds, nanos=nanos))
        for seconds, nanos in NO_TIMES
    },
    **{f"options {number}": open_with(options=text) for number, text in enumerate(NO_OPTIONS)},
    **{f"shares {number}": open_with(shares=each) for number, each in enumerate(NO_SHARES)},
    **{f"an analyst of {what}": open_with(shares=[share(text)]) for what, text in NASTY.items()},
    **{f"a mechanism of {what}": open_with(mechanism=text) for what, text in NASTY.items()},
    "a grid of years": open_with(release_grid_seconds=2**32 - 1),
    "no mechanism": open_with(mechanism=""),
    "no dataset": open_with(dataset=""),
    "nothing": b"",
    "no request_id": operator_pb2.OpenRoundRequest(terms=terms_to_message(terms("ann"))).SerializeToString(),
}


def request_to(method: str, opening: bytes) -> bytes:
    """The same terms for another method than OpenRound."""
    if method == "OpenRound":
        return opening
    request = operator_pb2.OpenRoundRequest.FromString(opening)
    return operator_pb2.PlanRoundRequest(terms=request.terms).SerializeToString()


@pytest.mark.parametrize("method", ["PlanRound", "OpenRound"])
def test_malformed_terms_open_nothing(here: Place, method: str) -> None:
    with here.channel(here.operator) as channel:
        before = outcome(channel, f"{OPERATOR}/ListRounds", [b""])
        for name, content in TERMS.items():
            if method == "PlanRound" and name == "no request_id":
                continue
            refused = attempt(channel, f"{OPERATOR}/{method}", [request_to(method, content)])
            assert isinstance(refused, Refusal), name
            assert (refused.status, refused.reason) == INVALID, (name, refused)
        least = types_pb2.Budget(epsilon=DENORMAL, delta=DENORMAL)
        for content in (open_with(data_budget=least), open_with(analyst_budget=least)):
            refused = refusal(channel, f"{OPERATOR}/{method}", [request_to(method, content)])
            assert (refused.status, refused.reason) == BUDGET, refused
        for what, text in NASTY.items():
            refused = refusal(channel, f"{OPERATOR}/{method}", [request_to(method, open_with(dataset=text))])
            assert (refused.status, refused.reason) == ("NOT_FOUND", "NOT_FOUND"), what
        assert outcome(channel, f"{OPERATOR}/ListRounds", [b""]) == before


def register_with(**changed: object) -> bytes:
    cap = types_pb2.Budget(epsilon=1.0, delta=1e-6)
    request = operator_pb2.RegisterDatasetRequest(
        name="made", source="unregistered.csv", schema=schema_to_message(SCHEMA), data_cap=cap, analyst_cap=cap
    )
    request.request_id = "malformed"
    for name, value in changed.items():
        if isinstance(value, str | float):
            setattr(request, name, value)
        else:
            getattr(request, name).CopyFrom(value)
    return request.SerializeToString()


def attributes(*made: types_pb2.Attribute) -> types_pb2.Schema:
    return types_pb2.Schema(attributes=made)


COLOUR = types_pb2.Attribute(name="colour", categories=["red", "green"])
NO_SCHEMAS = (
    attributes(),
    attributes(types_pb2.Attribute()),
    attributes(COLOUR, COLOUR),
    attributes(types_pb2.Attribute(name="colour", categories=["red", "red"])),
    attributes(types_pb2.Attribute(name="colour", categories=["red"])),
    attributes(types_pb2.Attribute(name="price", categories=["a"], edges=[0.0])),
    attributes(types_pb2.Attribute(name="price", categories=["a"], edges=[0.0, math.nan])),
    attributes(types_pb2.Attribute(name="price", categories=["a"], edges=[-math.inf, math.inf])),
    attributes(types_pb2.Attribute(name="price", categories=["a"], edges=[1.0, 1.0])),
    attributes(types_pb2.Attribute(name="price", categories=["a"], edges=[0.0, -0.0])),
    attributes(types_pb2.Attribute(name="price", categories=["a"], edges=[0.0, DENORMAL])),
    attributes(types_pb2.Attribute(name="price", categories=["a"], edges=[-LARGE_EDGE, LARGE_EDGE])),
    attributes(types_pb2.Attribute(name="colour", categories=["red", "green"], clamp=True)),
    attributes(*(types_pb2.Attribute(name=f"a{number}", categories=["x"]) for number in range(61))),
    attributes(*(types_pb2.Attribute(name=f"a{number}", categories=["x", "y"]) for number in range(60))),
    attributes(*[types_pb2.Attribute()] * 100_000),
    attributes(types_pb2.Attribute(name="colour", categories=[str(number) for number in range(70_000)])),
    *(attributes(types_pb2.Attribute(name=text, categories=["red", "green"])) for text in NASTY.values()),
    *(attributes(types_pb2.Attribute(name="colour", categories=["red", text])) for text in NASTY.values()),
)
REGISTRATIONS: dict[str, bytes] = {
    **{f"schema {number}": register_with(schema=each) for number, each in enumerate(NO_SCHEMAS)},
    **{f"a name of {what}": register_with(name=text) for what, text in NASTY.items()},
    **{f"a source of {what}": register_with(source=text) for what, text in NASTY.items()},
    **{
        f"the source {source[:20]}": register_with(source=source)
        for source in (
            "",
            ".",
            "..",
            "/etc/passwd",
            "../equipoise.db",
            "a/" * 5000,
            "unregistered.csv/x",
            "UNREGISTERED.CSV",
            "~/x",
        )
    },
    **{f"data cap {number}": register_with(data_cap=each) for number, each in enumerate(NO_BUDGETS)},
    **{f"analyst cap {number}": register_with(analyst_cap=each) for number, each in enumerate(NO_BUDGETS)},
    **{
        f"order {order!r}": register_with(data_order=order)
        for order in (math.nan, math.inf, -1.0, DENORMAL, 1.0, math.nextafter(1.0, 2.0), LARGE_EDGE)
    },
}


def test_malformed_registrations_register_nothing(here: Place) -> None:
    with here.channel(here.operator) as channel:
        for name, content in REGISTRATIONS.items():
            refused = attempt(channel, f"{OPERATOR}/RegisterDataset", [content])
            assert isinstance(refused, Refusal), name
            assert (refused.status, refused.reason) == INVALID, (name, refused)
            assert str(here.server.state) not in refused.message, name


def test_malformed_names_and_reasons_are_refused(here: Place) -> None:
    csr = b"-----BEGIN CERTIFICATE REQUEST-----\nAAAA\n-----END CERTIFICATE REQUEST-----\n"
    unprintable = {"control characters", "right to left", "invisible"}
    with here.channel(here.operator) as channel:
        for what, text in NASTY.items():
            add = operator_pb2.AddAnalystRequest(name=text, signing_request=csr, request_id="malformed")
            refused = refusal(channel, f"{OPERATOR}/AddAnalyst", [add.SerializeToString()])
            assert (refused.status, refused.message[:5]) == ("INVALID_ARGUMENT", "name:"), what
            abort = operator_pb2.AbortRoundRequest(round_id="none", reason=text, request_id="malformed")
            refused = refusal(channel, f"{OPERATOR}/AbortRound", [abort.SerializeToString()])
            kept = len(text) <= 500 and what not in unprintable
            assert refused.status == ("NOT_FOUND" if kept else "INVALID_ARGUMENT"), what
            account = operator_pb2.ListAccountHistoryRequest(account=text)
            refused = refusal(channel, f"{OPERATOR}/ListAccountHistory", [account.SerializeToString()])
            assert refused.status == "NOT_FOUND", what
        for request in (b"", csr, csr * 1000, b"\xff" * 1000, csr.replace(b"AAAA", b"MIIB" * 2000)):
            add = operator_pb2.AddAnalystRequest(name="new", signing_request=request, request_id="malformed")
            refused = refusal(channel, f"{OPERATOR}/AddAnalyst", [add.SerializeToString()])
            assert (refused.status, refused.message[:16]) == ("INVALID_ARGUMENT", "signing_request:")


@pytest.mark.parametrize("compression", [grpc.Compression.Gzip, grpc.Compression.Deflate])
def test_compressed_messages_are_never_unpacked(here: Place, compression: grpc.Compression) -> None:
    bomb = upload(here.shared, bytes(64 * 2**20), piece_bytes=64 * 2**20)
    with here.channel(here.mal, compression=compression) as channel:
        for requests in (upload(here.shared, FINE + bytes(200)), bomb):
            refused = refusal(channel, f"{ANALYST}/DryRunWorkload", requests)
            assert (refused.status, refused.reason) == ("UNIMPLEMENTED", ""), refused


def test_a_message_beyond_the_limit_is_refused(here: Place) -> None:
    with here.channel(here.mal) as channel:
        for requests in (upload(here.shared, bytes(MESSAGE_LIMIT), piece_bytes=MESSAGE_LIMIT),):
            refused = refusal(channel, f"{ANALYST}/SubmitWorkload", requests)
            assert (refused.status, refused.reason) == ("RESOURCE_EXHAUSTED", "")


def test_bytes_that_are_no_message_are_refused_everywhere(here: Place) -> None:
    """By every method that is served, and however the bytes are wrong."""
    callers = {Role.ANALYST: here.mal, Role.OPERATOR: here.operator, Role.AUDITOR: here.auditor}
    expected = {"INVALID_ARGUMENT": "INVALID", "NOT_FOUND": "NOT_FOUND", "OUT_OF_RANGE": "RANGE"}
    for role, caller in callers.items():
        with here.channel(caller) as channel:
            for method, row in POLICY.items():
                if role not in row.roles:
                    continue
                for garbage in (b"\xff", b"\x0a\x05ab", b"\x0b" * 200, b"\x0a\x03" + BEYOND_UTF8):
                    found = attempt(channel, method, [garbage])
                    if isinstance(found, Refusal):
                        assert expected.get(found.status) == found.reason, (method, garbage, found)
                    else:
                        assert garbage == b"\x0a\x03" + BEYOND_UTF8, (method, garbage)


LOOK = f"{ANALYST}/GetAnalystRound"
GZIP = (b"grpc-encoding", b"gzip")


def changed(name: bytes, *values: bytes) -> list[Header]:
    """The headers of a call with these values of one of them instead."""
    return [*((name, value) for value in values), *(each for each in call_headers(LOOK) if each[0] != name)]


def added(*more: Header) -> list[Header]:
    """The headers of a call, and more."""
    return [*call_headers(LOOK), *more]


Framed = Callable[[bytes], tuple[list[Header], bytes]]
WELL_FORMED: Framed = lambda asked: (call_headers(LOOK), message(asked))  # noqa: E731
# gRPC answers them with a status of its own, or resets them, as its version is; none reaches a method of ours.
REFUSED_FRAMES: dict[str, Framed] = {
    "said to be compressed": lambda asked: (added(GZIP), message(asked, 1)),
    "compressed": lambda asked: (added(GZIP), message(gzip.compress(asked), 1)),
    "no te": lambda asked: (changed(b"te"), message(asked)),
    "GET": lambda asked: (changed(b":method", b"GET"), message(asked)),
    "no path": lambda asked: (changed(b":path"), message(asked)),
    "a path of bytes": lambda asked: (changed(b":path", b"/\xff\xfe"), message(asked)),
    "a path of a service only": lambda asked: (changed(b":path", b"/"), message(asked)),
    "a long path": lambda asked: (changed(b":path", b"/" + b"a" * 9000), message(asked)),
    "an unknown compression": lambda asked: (added((b"grpc-encoding", b"br")), message(asked, 1)),
    "no text in a binary header": lambda asked: (added((b"a-bin", b"!!!")), message(asked)),
    "a capital in a header": lambda asked: (added((b"A", b"a")), message(asked)),
}
# gRPC waits for the rest of these, which never comes; they hold their stream until their own connection ends.
UNFINISHED_FRAMES: dict[str, Framed] = {
    "cut off": lambda asked: (call_headers(LOOK), message(asked)[:-3]),
    "half a prefix": lambda asked: (call_headers(LOOK), message(asked)[:2]),
    "nothing": lambda _: (call_headers(LOOK), b""),
    "the largest length": lambda asked: (call_headers(LOOK), message(asked, length=2**32 - 1)),
    "an unknown flag": lambda asked: (call_headers(LOOK), message(asked, 7)),
}


def looked_at(here: Place) -> bytes:
    return analyst_pb2.GetAnalystRoundRequest(round_id=here.shared).SerializeToString()


@pytest.mark.parametrize("name", REFUSED_FRAMES)
def test_frames_that_no_library_writes_are_refused_alone(here: Place, name: str) -> None:
    asked = looked_at(here)
    first, second = endings(here.server.port, here.mal, [REFUSED_FRAMES[name](asked), WELL_FORMED(asked)])
    assert first.ended in ("trailers", "reset"), first
    assert (first.status != b"0", first.received) == (True, b""), first
    assert second.status == b"0", second


@pytest.mark.parametrize("name", UNFINISHED_FRAMES)
def test_unfinished_messages_hold_up_nobody(here: Place, name: str) -> None:
    asked = looked_at(here)
    unfinished = [UNFINISHED_FRAMES[name](asked)] * 20
    found = endings(here.server.port, here.mal, [*unfinished, WELL_FORMED(asked)], answered=False)
    assert found[-1].status == b"0", found


@pytest.mark.parametrize(
    "spoken",
    [b"GET / HTTP/1.1\r\nHost: a\r\n\r\n", bytes(10_000), b"\x16\x03\x01\x02\x00", b""],
    ids=["HTTP/1.1", "zeros", "half a handshake", "nothing"],
)
def test_what_is_not_even_a_call_is_dropped(here: Place, spoken: bytes) -> None:
    with socket.create_connection(("127.0.0.1", here.server.port), 60) as plain:
        plain.sendall(spoken)
    try:
        with connected(here.server.port, here.mal) as secured:
            secured.sendall(spoken)
            secured.sendall(bytes(100))
            while secured.recv(65_536):
                pass
    except (ConnectionError, ssl.SSLError):
        pass
