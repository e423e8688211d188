"""Where the attacks happen: a real server with an attacker, a bystander, and things that are not the attacker's."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grpc
from cryptography.hazmat.primitives.asymmetric import ec
from harness.dangers import LARGE_CAPS, SMALL_TABLE
from harness.rounds_bench import SALT
from harness.server_process import (
    HURRIED,
    Credentials,
    Refusal,
    ServerProcess,
    key_to_pem,
    make_state,
    running,
    signing_request,
    wait_for_exit,
)
from harness.waiting import PATIENCE, until

from equipoise.clients.analyst import Client
from equipoise.clients.connection import Connection
from equipoise.clients.operator import Operator
from equipoise.model.accounts import Budget
from equipoise.model.rounds import SessionTerms, Share, Terms
from equipoise.queries.predicates import attribute
from equipoise.queries.schema import Attribute, Schema
from equipoise.queries.schema_checks import bin_labels
from equipoise.queries.statements import Marginal, Statement
from equipoise.v1 import analyst_pb2, operator_pb2

EDGES = (0.0, 0.1, 1.0, 2.0)
SCHEMA = Schema((Attribute("colour", ("red", "green")), Attribute("price", bin_labels(EDGES), EDGES)))
ASKED: list[Statement] = [attribute("colour") == "red", Marginal(("colour", "price"))]
MESSAGE_LIMIT = 2**20
WORKLOAD_LIMIT = 2**21
SETTINGS = (
    f"message_limit_bytes = {MESSAGE_LIMIT}",
    f"workload_limit_bytes = {WORKLOAD_LIMIT}",
    "handshake_seconds = 60",  # a busy machine is no attack
    *HURRIED,
)

ANALYST = "/equipoise.v1.AnalystService"
OPERATOR = "/equipoise.v1.OperatorService"
AUDITOR = "/equipoise.v1.AuditorService"


@dataclass(frozen=True)
class Place:
    """A server and who is there.

    Both rounds are open and of the dataset `shop`. `ann` has a share in both, `mal` in `shared` only. So it is with
    the two sessions, which protect nobody and answer at once.
    """

    server: ServerProcess
    operator: Credentials
    auditor: Credentials
    ann: Credentials
    mal: Credentials
    shared: str
    others: str
    session: str
    others_session: str

    @contextmanager
    def channel(self, credentials: Credentials, **options: Any) -> Iterator[grpc.Channel]:
        """A channel of its own with mutual TLS."""
        tls = grpc.ssl_channel_credentials(credentials.authority, credentials.key, credentials.certificate)
        settings = [("grpc.use_local_subchannel_pool", 1), *options.pop("settings", ())]
        with grpc.secure_channel(f"127.0.0.1:{self.server.port}", tls, options=settings, **options) as channel:
            yield channel

    def check_health(self) -> None:
        """Another analyst is served, and nothing unexpected has happened."""
        assert self.server.process.poll() is None, self.server.log()
        with self.channel(self.ann) as channel:
            method, request = f"{ANALYST}/GetAnalystRound", analyst_pb2.GetAnalystRoundRequest(round_id=self.shared)
            (answer,) = outcome(channel, method, [request.SerializeToString()])
        assert analyst_pb2.GetAnalystRoundResponse.FromString(answer).round.id == self.shared
        for mark in ("Traceback", '"unexpected"', "schedule_not_kept", "not_taken_over"):
            assert mark not in self.server.log(), self.server.log()


@contextmanager
def place(directory: Path) -> Iterator[Place]:
    """The place, made anew; at the end the server stops in order, as if nothing had been."""
    state = make_state(directory / "state", SETTINGS)
    for records, table in enumerate(("shop", "unshared", "unregistered"), start=400):
        rows = [f"{('red', 'green')[row % 2]},{row % 20 / 10}" for row in range(records)]
        (state / "data" / f"{table}.csv").write_text("\n".join(["colour,price", *rows]) + "\n")
    with running(state) as server:
        found = furnished(server)
        yield found
        found.check_health()
        server.process.terminate()
        assert wait_for_exit(server, PATIENCE) == 0
        assert "Traceback" not in server.log()


def furnished(server: ServerProcess) -> Place:
    """Admits the analysts and opens the rounds."""
    ann, mal = (admitted(server, name) for name in ("ann", "mal"))
    with connection(server, server.operator()) as way:
        operator = Operator(way)
        cap = Budget(50.0, 1e-3)
        for dataset in ("shop", "unshared"):
            operator.register_dataset(
                dataset, f"{dataset}.csv", SCHEMA, cap, cap, people="new", accepted=LARGE_CAPS
            )
        shared = operator.open(terms("ann", "mal")).round.id
        others = operator.open(terms("ann")).round.id
        session = operator.open_session(session_terms("ann", "mal")).round.id
        others_session = operator.open_session(session_terms("ann")).round.id
    return Place(server, server.operator(), server.auditor(), ann, mal, shared, others, session, others_session)


def played(here: Place) -> str:
    """A round of ann's alone, with results and a synopsis that can be read."""
    with connection(here.server, here.operator) as way, connection(here.server, here.ann) as her_way:
        operator, analyst = Operator(way), Client(her_way)
        released = operator.open(terms("ann")).round.id
        analyst.submit(released, ASKED)
        operator.seal(released)
        operator.run(released)
        until(lambda: operator.round(released).progress.complete)
        operator.release(released)
        analyst.wait(released)
    return released


@contextmanager
def connection(server: ServerProcess, who: Credentials) -> Iterator[Connection]:
    """The client's own way of calling."""
    tls = grpc.ssl_channel_credentials(who.authority, who.key, who.certificate)
    target = f"127.0.0.1:{server.port}"
    with grpc.secure_channel(target, tls) as channel:
        yield Connection(channel, target)


def terms(*names: str, **changed: Any) -> Terms:
    """A round of the pooled mechanism, which is quick and makes a synopsis."""
    budget = Budget(4.0, 1e-5)
    shares = tuple(Share(name, 4, 20) for name in names)
    fields: dict[str, Any] = {
        "dataset": "shop",
        "unit": "query",
        "data_budget": budget,
        "analyst_budget": budget,
        "beta": 0.05,
        "mechanism": "pooled",
        "shares": shares,
        "accepted": SMALL_TABLE,
    }
    return Terms(**fields | changed)


def session_terms(*names: str, **changed: Any) -> Terms:
    """A session of the mechanism that answers at once."""
    shares = tuple(Share(name, 3000, 10_000) for name in names)
    fields: dict[str, Any] = {
        "analyst_budget": None,
        "mechanism": "online",
        "shares": shares,
        "session": SessionTerms(5000),
    }
    return terms(*names, **fields | changed)


def admitted(server: ServerProcess, name: str) -> Credentials:
    """An analyst that the operator has admitted."""
    key = ec.generate_private_key(ec.SECP256R1())
    request = operator_pb2.AddAnalystRequest(name=name, signing_request=signing_request(key), request_id=name)
    with server.blocking_channel(server.operator()) as channel:
        (raw,) = outcome(channel, f"{OPERATOR}/AddAnalyst", [request.SerializeToString()])
    answer = operator_pb2.AddAnalystResponse.FromString(raw)
    return Credentials(answer.authority, answer.certificate, key_to_pem(key))


def upload(round_id: str, workload: bytes, request_id: str = "", piece_bytes: int = 500_000) -> list[bytes]:
    """The messages of a workload, as SubmitWorkload and DryRunWorkload both read them."""
    header = analyst_pb2.SubmitHeader(
        round_id=round_id, request_id=request_id, commitment_salt=SALT, workload_bytes=len(workload)
    )
    pieces = [workload[at : at + piece_bytes] for at in range(0, len(workload), piece_bytes)]
    return [
        analyst_pb2.SubmitWorkloadRequest(header=header).SerializeToString(),
        *(analyst_pb2.SubmitWorkloadRequest(piece=piece).SerializeToString() for piece in pieces),
    ]


def attempt(channel: grpc.Channel, method: str, requests: Iterable[bytes], **options: Any) -> list[bytes] | Refusal:
    """Calls any method with any bytes: on the wire, every kind of call is a stream each way."""
    call: Any = channel.stream_stream(method)
    try:
        return list(call(iter(requests), timeout=PATIENCE, **options))
    except grpc.RpcError as error:
        return Refusal.of(error)


def outcome(channel: grpc.Channel, method: str, requests: Iterable[bytes], **options: Any) -> list[bytes]:
    """What a call that must succeed answers."""
    answered = attempt(channel, method, requests, **options)
    assert isinstance(answered, list), answered
    return answered


def refusal(channel: grpc.Channel, method: str, requests: Iterable[bytes], **options: Any) -> Refusal:
    """How a call that must fail is refused."""
    answered = attempt(channel, method, requests, **options)
    assert isinstance(answered, Refusal), answered
    return answered
