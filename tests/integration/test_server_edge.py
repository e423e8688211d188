"""The edge of a real server: who gets in, what roles may call, how it refuses. Attacks: `tests/hostile/abuse`."""

from __future__ import annotations

import asyncio
import re
import socket
import threading
import time
from collections import Counter
from collections.abc import Iterator
from datetime import timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import grpc
import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID
from harness.callers_at_the_edge import crafted, identity, identity_refusal, raw_refusal, record, uploaded
from harness.server_process import (
    Credentials,
    Refusal,
    ServerProcess,
    key_to_pem,
    make_state,
    refusal_of,
    running,
    signing_request,
)
from harness.waiting import PATIENCE

from equipoise.model.identities import Role
from equipoise.queries.schema import Attribute, Schema
from equipoise.v1 import operator_pb2, operator_pb2_grpc, types_pb2
from equipoise_server.admin.state_directory import open_deployment
from equipoise_server.clock import system_clock
from equipoise_server.identity.authority import Authority
from equipoise_server.identity.names import identity_uri
from equipoise_server.identity.policy import POLICY
from equipoise_server.memory import HEAPS

WORKLOAD_LIMIT = 100_000
UNITS = ("rho", "epsilon", "delta", "divergence")  # in which accounts count
HEAP_BYTES = 1 << 26  # of addresses, as glibc takes them on 64 bits


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    settings = [f"workload_limit_bytes = {WORKLOAD_LIMIT}"]
    with running(make_state(tmp_path_factory.mktemp("edge") / "state", settings)) as started:
        yield started


@pytest.fixture(scope="module")
def authority(server: ServerProcess) -> Authority:
    return open_deployment(server.state, system_clock()).authority


async def test_everyone_may_ask_who_they_are(server: ServerProcess) -> None:
    alice = await server.admit("alice")
    assert await identity(server, alice) == ("alice", types_pb2.ROLE_ANALYST)
    assert await identity(server, server.operator()) == ("operator", types_pb2.ROLE_OPERATOR)
    assert await identity(server, server.auditor()) == ("auditor", types_pb2.ROLE_AUDITOR)


async def test_the_client_refuses_a_server_of_another_authority(server: ServerProcess) -> None:
    mine = server.operator()
    stranger = Authority.create("elsewhere", system_clock())
    refused = await identity_refusal(server, Credentials(stranger.pem, mine.certificate, mine.key))
    assert refused.status == "UNAVAILABLE"


async def test_ambiguous_foreign_and_missing_identities_are_not_authenticated(
    server: ServerProcess, authority: Authority
) -> None:
    own, until = identity_uri(authority.deployment, "operator"), system_clock() + timedelta(days=1)
    refused_uris: tuple[list[str], ...] = (
        [],  # only a common name, which says "operator"
        [own, own],
        [own, identity_uri(authority.deployment, "auditor")],
        ["equipoise://x/operator"],
    )
    for credentials in (
        *(crafted(authority, uris, until) for uris in refused_uris),
        crafted(authority, [own], until, [ExtendedKeyUsageOID.SERVER_AUTH]),
        crafted(authority, [own], until, []),
    ):
        record(server, credentials)
        refused = await identity_refusal(server, credentials)
        # Without any use for clients TLS may be the one to refuse.
        assert refused.status in ("UNAUTHENTICATED", "UNAVAILABLE")
        assert refused.reason == ("IDENTITY" if refused.status == "UNAUTHENTICATED" else "")


async def test_only_recorded_certificates_are_in_force(server: ServerProcess, authority: Authority) -> None:
    own = [identity_uri(authority.deployment, "operator")]
    credentials = crafted(authority, own, system_clock() + timedelta(days=1))
    refused = await identity_refusal(server, credentials)
    assert (refused.status, refused.reason) == ("UNAUTHENTICATED", "IDENTITY")
    record(server, credentials)
    assert (await identity(server, credentials))[0] == "operator"


async def test_the_servers_own_certificate_lets_nobody_in(server: ServerProcess, authority: Authority) -> None:
    keys = server.state / "keys"
    credentials = Credentials(authority.pem, (keys / "server.pem").read_bytes(), (keys / "server.key").read_bytes())
    assert (await identity_refusal(server, credentials)).status in ("UNAVAILABLE", "UNAUTHENTICATED")


@pytest.mark.parametrize("role", list(Role))
async def test_every_method_keeps_to_its_row_of_the_policy(server: ServerProcess, role: Role) -> None:
    credentials = {
        Role.ANALYST: await server.admit(f"rita-{role}"),
        Role.OPERATOR: server.operator(),
        Role.AUDITOR: server.auditor(),
    }[role]
    with server.blocking_channel(credentials) as channel:
        for method, row in POLICY.items():
            refused = raw_refusal(channel, method, [b""])
            found = (refused.status, refused.reason) if refused else None
            if role not in row.roles:
                assert found == ("PERMISSION_DENIED", "ROLE"), method
            else:
                # Nothing was asked for, so lists answer and the rest finds something missing.
                missing = ("INVALID_ARGUMENT", "INVALID"), ("NOT_FOUND", "NOT_FOUND"), ("OUT_OF_RANGE", "RANGE")
                assert found in (None, *missing), method
        unknown = raw_refusal(channel, "/equipoise.v1.AnalystService/Unknown", [b""])
        assert unknown is not None
        assert (unknown.status, unknown.reason) == ("UNIMPLEMENTED", "UNIMPLEMENTED")


async def test_a_call_that_ends_without_a_message_is_answered(server: ServerProcess) -> None:
    """By every method, whoever calls it; before, gRPC told nobody, and the call stayed open for ever."""
    credentials = await server.admit("ella")
    with server.blocking_channel(credentials) as channel:
        for method, row in POLICY.items():
            refused = raw_refusal(channel, method, [])
            assert refused is not None, method
            wanted = ("INVALID_ARGUMENT", "INVALID") if Role.ANALYST in row.roles else ("PERMISSION_DENIED", "ROLE")
            assert (refused.status, refused.reason) == wanted, method


def test_calls_that_bring_no_message_count_against_their_caller_and_end(tmp_path: Path) -> None:
    state = make_state(tmp_path / "state", ["calls_per_caller = 3", "stall_seconds = 5"])
    method = "/equipoise.v1.AuditorService/ListAuditRounds"
    silence = threading.Event()

    def nothing() -> Iterator[bytes]:
        silence.wait(PATIENCE)
        yield from ()

    with running(state) as server, server.blocking_channel(server.auditor()) as channel:
        call: Any = channel.stream_stream(method)
        calls = [call(nothing(), timeout=PATIENCE) for _ in range(20)]
        refusals = [raised(each) for each in calls]
        silence.set()
        assert Counter(each.reason for each in refusals) == {"RATE": 17, "UNAVAILABLE": 3}
        assert raw_refusal(channel, method, [b""]) is None


@pytest.mark.full
def test_connections_without_a_certificate_keep_nobody_out_for_longer_than_a_handshake_may_take(
    tmp_path: Path,
) -> None:
    state = make_state(tmp_path / "state", ["connections = 3", "handshake_seconds = 2"])
    with running(state) as server:
        begin = time.monotonic()
        silent = [socket.create_connection(("127.0.0.1", server.port)) for _ in range(20)]
        try:
            with server.blocking_channel(server.auditor()) as channel:
                method = "/equipoise.v1.AuditorService/ListAuditRounds"
                while (refused := raw_refusal(channel, method, [b""])) is not None:
                    assert refused.status == "UNAVAILABLE"
                    assert time.monotonic() - begin < 60, "gRPC itself waits for two minutes"
                    time.sleep(0.1)
            # Each of them was closed by the server, which has told nobody anything.
            for each in silent:
                each.settimeout(10)
                assert ended(each)
        finally:
            for each in silent:
                each.close()


def ended(connection: socket.socket) -> bool:
    """Whether the other side ends a connection, orderly or not."""
    try:
        return connection.recv(1) == b""
    except ConnectionError:
        return True


def raised(call: Any) -> Refusal:
    """How a call ended that was refused."""
    with pytest.raises(grpc.RpcError) as error:
        list(call)
    return Refusal.of(error.value)


def test_calls_beyond_the_role_and_of_unknown_methods_are_limited_as_others_are(tmp_path: Path) -> None:
    state = make_state(tmp_path / "state", ["changes_per_second = 1", "reads_per_second = 1", "burst_seconds = 2"])
    with running(state) as server, server.blocking_channel(server.auditor()) as channel:
        blocking: Any = channel
        stub: Any = operator_pb2_grpc.OperatorServiceStub(blocking)
        calls = [stub.SealRound.future(operator_pb2.SealRoundRequest(), timeout=PATIENCE) for _ in range(100)]
        assert all(call.exception() is not None for call in calls)
        assert {Refusal.of(call).reason for call in calls} == {"ROLE", "RATE"}
        unknown = [raw_refusal(channel, f"/equipoise.v1.AuditorService/Unknown{each}", [b""]) for each in range(20)]
        assert {each.reason for each in unknown if each} == {"UNIMPLEMENTED", "RATE"}


async def test_oversize_uploads_are_refused(server: ServerProcess) -> None:
    method, allowed = "/equipoise.v1.AnalystService/SubmitWorkload", WORKLOAD_LIMIT // 1000
    with server.blocking_channel(await server.admit("olga")) as channel:
        refused = raw_refusal(channel, method, uploaded(b"x" * 1000, allowed + 1))
        assert refused is not None
        assert (refused.status, refused.reason) == ("RESOURCE_EXHAUSTED", "SIZE")
        refused = raw_refusal(channel, method, uploaded(b"x" * 1000, allowed))
        assert refused == Refusal("NOT_FOUND", "NOT_FOUND", "there is no such round")


async def test_admission_is_idempotent_and_refuses_by_name(server: ServerProcess) -> None:
    key = ec.generate_private_key(ec.SECP256R1())
    request = operator_pb2.AddAnalystRequest(name="ida", signing_request=signing_request(key), request_id="r1")

    def changed(**fields: str | bytes) -> operator_pb2.AddAnalystRequest:
        other = operator_pb2.AddAnalystRequest()
        other.CopyFrom(request)
        for name, value in fields.items():
            setattr(other, name, value)
        return other

    async with server.channel(server.operator()) as channel:
        stub = operator_pb2_grpc.OperatorServiceStub(channel)
        first = await stub.AddAnalyst(request)
        assert await stub.AddAnalyst(request) == first
        for other, status, named in (
            (changed(name="ivy"), "ALREADY_EXISTS", "request_id"),
            (changed(signing_request=signing_request(key, "x")), "ALREADY_EXISTS", "request_id"),
            (changed(request_id="r2"), "ALREADY_EXISTS", "'ida'"),
            (changed(name="operator", request_id="r3"), "ALREADY_EXISTS", "'operator'"),
            (changed(name="../ida", request_id="r4"), "INVALID_ARGUMENT", "name: "),
            (changed(signing_request=b"no", request_id="r5"), "INVALID_ARGUMENT", "signing_request: "),
            (changed(request_id=""), "INVALID_ARGUMENT", "request_id: "),
        ):
            refused = await refusal_of(stub.AddAnalyst(other))
            assert (refused.status, named in refused.message) == (status, True), refused
        found = (await stub.ListAnalysts(operator_pb2.ListAnalystsRequest())).analysts
        names = [each.name for each in found]
        assert names.count("ida") == 1
        assert "operator" not in names
    issued = Credentials(first.authority, first.certificate, key_to_pem(key))
    assert await identity(server, issued) == ("ida", types_pb2.ROLE_ANALYST)


async def test_unknown_names_and_those_of_other_roles_are_not_found(server: ServerProcess) -> None:
    async with server.channel(server.operator()) as channel:
        operator: Any = operator_pb2_grpc.OperatorServiceStub(channel)
        csr = signing_request(ec.generate_private_key(ec.SECP256R1()))
        for name in ("nobody", "operator", "auditor", "no/name", ""):
            for call in (
                operator.RevokeAnalyst(operator_pb2.RevokeAnalystRequest(name=name, request_id="1")),
                operator.DeleteAnalyst(operator_pb2.DeleteAnalystRequest(name=name, request_id="2")),
                operator.RenewAnalyst(
                    operator_pb2.RenewAnalystRequest(name=name, signing_request=csr, request_id="3")
                ),
            ):
                refused = await refusal_of(call)
                assert refused.status in ("NOT_FOUND", "INVALID_ARGUMENT")
                if refused.status == "NOT_FOUND":
                    assert refused.message == "there is no such analyst"
                else:
                    assert refused.message.startswith("name: ")


async def test_analysts_connect_with_keys_on_p384_too(server: ServerProcess) -> None:
    admitted = await server.admit("pia", ec.generate_private_key(ec.SECP384R1()))
    assert await identity(server, admitted) == ("pia", types_pb2.ROLE_ANALYST)


async def test_an_unexpected_error_is_a_reference_to_the_log(server: ServerProcess) -> None:
    secret = "secret of another analyst"
    store = open_deployment(server.state, system_clock()).open_store()
    with store.write() as connection:
        # SQLite puts any text into a column of numbers; the program, and its own error's text, meet it unprepared.
        connection.exec_driver_sql(
            "INSERT INTO datasets (name, account, analyst_epsilon, analyst_delta) VALUES ('broken', 'broken', 1, 0)"
        )
        amounts = [f"{kind}_{unit}" for kind in ("limit", "spent", "committed") for unit in UNITS]
        connection.exec_driver_sql(
            "INSERT INTO accounts (name, account, composition, cap_epsilon, cap_delta, renyi_order,"
            f" {', '.join(amounts)}) VALUES ('data/broken', 'broken', 'sum', 1, 0.001, 2{', 0' * len(amounts)})"
        )
        connection.exec_driver_sql(
            "INSERT INTO dataset_versions (dataset, version, source, schema, records, person, person_mode,"
            " person_records, create_time) VALUES ('broken', 1, 's', ?, ?, '', 'rows', 1, 0)",
            (Schema((Attribute("colour", ("red", "green")),)).to_json(), secret),
        )
    try:
        async with server.channel(server.operator()) as channel:
            stub = operator_pb2_grpc.OperatorServiceStub(channel)
            refused = await refusal_of(stub.ListDatasets(operator_pb2.ListDatasetsRequest()))
        assert (refused.status, refused.reason) == ("INTERNAL", "INTERNAL")
        assert secret not in refused.message
        reference = re.search(r"[0-9a-f]{16}$", refused.message)
        assert reference is not None
        assert reference[0] in server.log()
        assert await identity(server, server.operator()) == ("operator", types_pb2.ROLE_OPERATOR)
    finally:
        with store.write() as connection:
            connection.exec_driver_sql("DELETE FROM accounts WHERE account = 'broken'")
            connection.exec_driver_sql("DELETE FROM dataset_versions WHERE dataset = 'broken'")
            connection.exec_driver_sql("DELETE FROM datasets WHERE name = 'broken'")
        store.close()


async def test_all_threads_share_the_c_librarys_heaps(server: ServerProcess) -> None:
    async with server.channel(server.operator()) as channel:
        asking: Any = operator_pb2_grpc.OperatorServiceStub(channel)
        await asyncio.gather(*(asking.ListRounds(operator_pb2.ListRoundsRequest()) for _ in range(20)))
    maps = [line.split()[:2] for line in Path(f"/proc/{server.process.pid}/maps").read_text().splitlines()]
    places = [([int(end, 16) for end in ends.split("-")], access) for ends, access in maps]
    # One for threads is 64 MiB of addresses, of which the beginning is in use; the first of all is elsewhere.
    heaps = [
        start
        for ((start, middle), used), ((begin, end), unused) in pairwise(places)
        if (used, unused, start % HEAP_BYTES) == ("rw-p", "---p", 0)
        and middle == begin
        and end >= start + HEAP_BYTES
    ]
    assert len(heaps) < HEAPS
