"""Refusals of a real server as the client raises them, and what its log, metrics and health say meanwhile."""

from __future__ import annotations

import asyncio
import json
import re
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grpc
import pytest
from google.protobuf.message_factory import GetMessageClass
from grpc_health.v1 import health_pb2, health_pb2_grpc
from harness.rounds_bench import SALT
from harness.server_process import Credentials, Refusal, ServerProcess, make_state, running, signing_request
from harness.server_rounds import COLOUR, SIZE, registration, terms
from harness.waiting import PATIENCE

from equipoise import errors
from equipoise.clients.analyst import Client
from equipoise.clients.connection import Connection
from equipoise.clients.operator import Operator
from equipoise.queries.statements import Marginal
from equipoise.v1 import analyst_pb2, operator_pb2
from equipoise.v1.operator_pb2_grpc import OperatorServiceStub
from equipoise_server.admin.state_directory import open_deployment
from equipoise_server.clock import system_clock
from equipoise_server.identity.authority import new_key
from equipoise_server.identity.policy import POLICY, Ownership
from equipoise_server.storage.tables.identity import certificates

ASKED = (COLOUR == "red",)
SETTINGS = (
    'health_listen = "127.0.0.1:0"',
    'metrics_listen = "127.0.0.1:0"',
    "workload_limit_bytes = 1024",
    "upload_total_bytes = 1048576",
)
METHODS = {
    f"/{service.full_name}/{method.name}": method
    for service in analyst_pb2.DESCRIPTOR.services_by_name.values()
    for method in service.methods
}


@dataclass(frozen=True)
class Place:
    """A server with an open round in which ann and bob have shares, and eve has none."""

    server: ServerProcess
    round_id: str
    people: dict[str, Credentials]
    stack: ExitStack

    def channel(self, name: str) -> grpc.Channel:
        """A connection of somebody's own."""
        return self.stack.enter_context(self.server.blocking_channel(self.people[name]))

    def analyst(self, name: str) -> Client:
        """The client of an analyst, or of whoever pretends to be one."""
        return Client(Connection(self.channel(name)))

    def log(self) -> list[dict[str, Any]]:
        """The lines of the server's log."""
        return [json.loads(line) for line in self.server.log().splitlines() if line.startswith("{")]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    state = make_state(tmp_path_factory.mktemp("catalogue") / "state", SETTINGS)
    (state / "data" / "shop.csv").write_text("colour,size\n" + "red,s\ngreen,m\n" * 200)
    with running(state) as server, ExitStack() as stack:
        people = {name: asyncio.run(server.admit(name)) for name in ("ann", "bob", "eve", "gone", "lost")}
        people["operator"] = server.operator()
        place = Place(server, "", people, stack)
        operator = OperatorServiceStub(place.channel("operator"))
        operator.RegisterDataset(registration())
        opened = operator.OpenRound(operator_pb2.OpenRoundRequest(terms=terms(), request_id="o"))
        yield Place(server, opened.detail.round.id, people, stack)


def twice_the_same_request(place: Place) -> None:
    ann = place.analyst("ann")
    receipt = ann.submit(place.round_id, ASKED, "same")
    assert ann.submit(place.round_id, ASKED, "same") == receipt
    ann.submit(place.round_id, (SIZE == "m",), "same")


def with_a_revoked_certificate(place: Place) -> None:
    gone = place.analyst("gone")
    assert gone.identity().name == "gone"
    store = open_deployment(place.server.state, system_clock()).open_store()
    with store.write() as connection:
        connection.execute(certificates.update().where(certificates.c.name == "gone").values(revoked=1))
    store.close()
    # On the same connection: nothing about who calls outlives a call.
    gone.identity()


def after_a_record_was_lost(place: Place) -> None:
    operator, signed = Operator(Connection(place.channel("operator"))), signing_request(new_key())
    operator.admit_analyst("ida", signed, request_id="i")
    store = open_deployment(place.server.state, system_clock()).open_store()
    with store.write() as connection:
        connection.execute(certificates.delete().where(certificates.c.name == "ida"))
    store.close()
    operator.admit_analyst("ida", signed, request_id="i")


REFUSED: dict[str, tuple[type[errors.EquipoiseError], Callable[[Place], object]]] = {
    "a malformed workload": (
        errors.InvalidArgument,
        lambda place: place.analyst("ann").submit(place.round_id, (Marginal(("nothing",)),)),
    ),
    "an empty workload": (errors.InvalidArgument, lambda place: place.analyst("ann").submit(place.round_id, ())),
    "a revoked certificate": (errors.NotAuthenticated, with_a_revoked_certificate),
    "another role": (
        errors.PermissionDenied,
        lambda place: list(Operator(Connection(place.channel("ann"))).rounds()),
    ),
    "another's round": (errors.NotFound, lambda place: place.analyst("eve").round(place.round_id)),
    "beyond the share": (
        errors.BudgetExhausted,
        lambda place: place.analyst("ann").submit(place.round_id, [COLOUR == "red"] * 5),
    ),
    "too large": (
        errors.TooLarge,
        lambda place: place.analyst("ann").submit(place.round_id, [COLOUR == "red"] * 500),
    ),
    "too early": (errors.WrongState, lambda place: list(place.analyst("ann").stream(place.round_id))),
    "the same request, other content": (errors.AlreadyExists, twice_the_same_request),
    "a lost record": (errors.DataLoss, after_a_record_was_lost),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refusals_come_back_as_typed_exceptions_with_advice(place: Place, case: str) -> None:
    kind, attempt = REFUSED[case]
    with pytest.raises(kind) as refused:
        attempt(place)
    assert refused.type is kind
    assert refused.value.message
    assert refused.value.advice


def refusal(channel: grpc.Channel, method: str, round_id: str) -> Refusal:
    """What a method of an analyst says to a request about a round."""
    request_class: Any = GetMessageClass(METHODS[method].input_type)
    fields = request_class.DESCRIPTOR.fields_by_name
    if "header" in fields:
        request = request_class(
            header=analyst_pb2.SubmitHeader(round_id=round_id, request_id="r", commitment_salt=SALT)
        )
    elif "attach" in fields:
        request = request_class(attach=analyst_pb2.AttachSession(session_id=round_id, commitment_salt=SALT))
    elif "round_id" in fields:
        request = request_class(round_id=round_id, **({"request_id": "r"} if "request_id" in fields else {}))
    else:
        request = request_class(name="shop" if round_id else "none")
    call: Any = channel.stream_stream(method)
    try:
        list(call(iter([request.SerializeToString()]), timeout=PATIENCE))
    except grpc.RpcError as error:
        return Refusal.of(error)
    raise AssertionError(f"{method} was not refused")


def test_what_needs_a_share_says_the_same_of_anothers_things_as_of_none(place: Place) -> None:
    channel = place.channel("eve")
    checked = [method for method, row in POLICY.items() if row.owned is Ownership.SHARE]
    assert len(checked) >= 8
    for method in checked:
        of_another = refusal(channel, method, place.round_id)
        assert of_another.status == "NOT_FOUND", method
        assert of_another == refusal(channel, method, "" if method.endswith("GetDataset") else "none"), method


def test_the_log_says_who_did_what_and_not_what_was_asked(place: Place) -> None:
    place.analyst("bob").submit(place.round_id, (COLOUR == "green",), "b")
    lines = place.log()
    assert {
        "event": "round_opened",
        "dataset": "shop",
        "round_id": place.round_id,
        "outcome": "OK",
    }.items() <= next(line.items() for line in lines if line["event"] == "round_opened")
    submitted = [line for line in lines if line["event"] == "workload_submitted" and line["caller"] == "bob"]
    assert [(line["round_id"], line["outcome"], line["role"]) for line in submitted] == [
        (place.round_id, "OK", "analyst")
    ]
    for word in ("green", "colour", "statements", "queries"):
        assert word not in place.server.log()


def test_metrics_name_nobody(place: Place) -> None:
    port = next(line["metrics_port"] for line in place.log() if line["event"] == "watched")
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=PATIENCE) as answer:
        text = answer.read().decode()
    assert 'equipoise_calls_total{method="AddAnalyst",status="OK"}' in text
    assert 'equipoise_rounds{state="open"} 1.0' in text
    for name in (*place.people, "shop", place.round_id):
        assert not re.search(rf"\b{re.escape(name)}\b", text.replace("_operator", "")), name
    assert set(re.findall(r'(\w+)="', text)) == {"method", "status", "state", "le", "certificate"}
    for told in (
        r"equipoise_data_budget_left [01]\.\d+",
        r'equipoise_certificate_seconds_left\{certificate="server"\} [1-9][\d.e+]+',
        r'equipoise_certificate_seconds_left\{certificate="authority"\} [1-9][\d.e+]+',
        r"equipoise_failed_runs_total 0\.0",
    ):
        assert re.search(rf"^{told}$", text, re.MULTILINE), told


def test_health_is_told_apart_and_the_main_address_tells_nothing_of_itself(place: Place) -> None:
    port = next(line["health_port"] for line in place.log() if line["event"] == "watched")
    with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
        stub: Any = health_pb2_grpc.HealthStub(channel)
        for service in ("", "equipoise.v1.AnalystService"):
            answer = stub.Check(health_pb2.HealthCheckRequest(service=service), timeout=60, wait_for_ready=True)
            assert answer.status == health_pb2.HealthCheckResponse.SERVING
    for method in (
        "/grpc.health.v1.Health/Check",
        "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo",
        "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo",
    ):
        call: Any = place.channel("operator").stream_stream(method)
        with pytest.raises(grpc.RpcError) as refused:
            list(call(iter([b""]), timeout=PATIENCE))
        assert Refusal.of(refused.value).status == "UNIMPLEMENTED"


@pytest.mark.full
def test_an_address_that_is_taken_keeps_the_server_from_starting(place: Place, tmp_path: Path) -> None:
    state = make_state(tmp_path / "state", [f'metrics_listen = "127.0.0.1:{place.server.port}"'])
    with pytest.raises(AssertionError, match="metrics_listen: cannot listen"), running(state):
        pass
