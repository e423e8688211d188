"""Terms and registrations with every kind of malformed value: nothing is opened, registered or charged."""

from __future__ import annotations

import math

import pytest
from google.protobuf.timestamp_pb2 import Timestamp
from harness.abuse.malformed import BUDGET, DENORMAL, INVALID, LARGE_EDGE, NASTY
from harness.abuse.place import (
    OPERATOR,
    SCHEMA,
    Place,
    attempt,
    outcome,
    refusal,
    terms,
)
from harness.dangers import LARGE_CAPS_SENT
from harness.server_process import Refusal

from equipoise.v1 import operator_pb2, types_pb2
from equipoise.wire.terms import terms_to_message
from equipoise.wire.workloads import schema_to_message

pytestmark = pytest.mark.usefixtures("nothing_charged")


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


def no_shares() -> tuple[list[types_pb2.Share], ...]:
    """Shares that nobody may have."""
    return (
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


def malformed_terms() -> dict[str, bytes]:
    """Requests to open a round that are refused, by name."""
    return {
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
        **{f"shares {number}": open_with(shares=each) for number, each in enumerate(no_shares())},
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


@pytest.mark.thin(2)
@pytest.mark.parametrize("method", ["PlanRound", "OpenRound"])
def test_malformed_terms_open_nothing(here: Place, method: str) -> None:
    with here.channel(here.operator) as channel:
        before = outcome(channel, f"{OPERATOR}/ListRounds", [b""])
        for name, content in malformed_terms().items():
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
        name="made",
        source="unregistered.csv",
        schema=schema_to_message(SCHEMA),
        data_cap=cap,
        analyst_cap=cap,
        accepted=LARGE_CAPS_SENT,
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


def no_schemas() -> tuple[types_pb2.Schema, ...]:
    """Schemas that no table has."""
    return (
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


def malformed_registrations() -> dict[str, bytes]:
    """Requests to register a table that are refused, by name."""
    return {
        **{f"schema {number}": register_with(schema=each) for number, each in enumerate(no_schemas())},
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
        for name, content in malformed_registrations().items():
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
