"""Strangers at the login door of a real server, without any certificate, who keep nobody out."""

from __future__ import annotations

import resource
import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from pathlib import Path

import grpc
import pytest
from harness.server_process import ServerProcess, make_state, running
from harness.waiting import PATIENCE, until

from equipoise.v1 import enrolment_pb2, enrolment_pb2_grpc
from equipoise_lab.demo.process import free_address
from equipoise_server.rpc.login_door import AT_ONCE

# The preface of HTTP/2 and empty SETTINGS: a connection that is complete, and asks for nothing.
COMPLETE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00"
MOST = 6


@pytest.fixture(scope="module")
def door(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[ServerProcess, str]]:
    """A server, and the address of its login door. Nothing ends on the other port before a day has passed."""
    address = free_address()
    settings = [
        f'login_listen = "{address}"',
        'login_issuer = "https://127.0.0.1:1/nobody"',
        'login_client = "equipoise"',
        f"login_connections = {MOST}",
        "idle_seconds = 86400",
        "connection_seconds = 86400",
        "handshake_seconds = 10",
    ]
    with running(make_state(tmp_path_factory.mktemp("door") / "state", settings)) as server:
        yield server, address


def stranger(address: str, source: str) -> ssl.SSLSocket:
    """A connection that is complete, from an address of this machine."""
    host, _, port = address.rpartition(":")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    context.set_alpn_protocols(["h2"])
    bare = socket.create_connection((host, int(port)), PATIENCE, (source, 0))
    made = context.wrap_socket(bare, server_hostname="localhost")
    made.sendall(COMPLETE)
    assert made.recv(100)
    return made


def ask(server: ServerProcess, address: str, times: int = 1) -> list[grpc.StatusCode]:
    """The statuses of so many logins without a token, one after the other and without a pause."""
    authority = (Path(server.state) / "ca" / "authority.pem").read_bytes()
    told = []
    with grpc.secure_channel(address, grpc.ssl_channel_credentials(authority)) as channel:
        service = enrolment_pb2_grpc.EnrolmentServiceStub(channel)
        for _ in range(times):
            with pytest.raises(grpc.RpcError) as refused:
                service.LogIn(enrolment_pb2.LogInRequest(id_token="a"), timeout=PATIENCE, wait_for_ready=True)
            told.append(refused.value.code())
    return told


@contextmanager
def coming_from(source: str, address: str) -> Iterator[str]:
    """An address whose connections arrive at another one as if they came from an address of this machine."""
    host, _, port = address.rpartition(":")
    own = socket.create_server(("127.0.0.1", 0))

    def pass_on(one: socket.socket, other: socket.socket) -> None:
        with suppress(OSError):
            while data := one.recv(1 << 16):
                other.sendall(data)
            other.shutdown(socket.SHUT_WR)

    def take() -> None:
        with suppress(OSError), ExitStack() as ends:
            while True:
                near = ends.enter_context(closing(own.accept()[0]))
                arrived = socket.create_connection((host, int(port)), PATIENCE, (source, 0))
                far = ends.enter_context(closing(arrived))
                for way in ((near, far), (far, near)):
                    threading.Thread(target=pass_on, args=way, daemon=True).start()

    thread = threading.Thread(target=take, daemon=True)
    thread.start()
    yield f"127.0.0.1:{own.getsockname()[1]}"
    own.shutdown(socket.SHUT_RDWR)
    thread.join(PATIENCE)
    own.close()


def test_strangers_who_hold_all_connections_keep_no_newcomer_out(door: tuple[ServerProcess, str]) -> None:
    server, address = door
    held = [stranger(address, f"127.0.0.{2 + number % 2}") for number in range(MOST)]
    assert ask(server, address) == [grpc.StatusCode.INVALID_ARGUMENT]
    for each in held:
        each.close()


def test_whoever_knocks_without_pause_is_told_to_wait_and_nobody_else_is(door: tuple[ServerProcess, str]) -> None:
    server, address = door
    with coming_from("127.0.0.9", address) as own:
        told = ask(server, own, 5 * AT_ONCE)
    assert told[:AT_ONCE] == [grpc.StatusCode.INVALID_ARGUMENT] * AT_ONCE
    assert grpc.StatusCode.RESOURCE_EXHAUSTED in told[AT_ONCE:]
    assert ask(server, address) == [grpc.StatusCode.INVALID_ARGUMENT]


@pytest.mark.full
def test_a_connection_that_asks_for_nothing_ends_after_seconds(door: tuple[ServerProcess, str]) -> None:
    """Also on a server whose other port keeps idle connections for a day."""
    _, address = door
    idle = stranger(address, "127.0.0.5")
    idle.settimeout(PATIENCE)
    received = b""
    try:
        while data := idle.recv(1000):
            received += data
    except (ConnectionError, ssl.SSLError):
        pass
    except TimeoutError:
        pytest.fail("it was kept")
    idle.close()


@pytest.mark.full
def test_the_server_has_room_for_the_connections_of_both_ports(tmp_path: Path) -> None:
    """It raises the soft limit of descriptors with which it was started."""
    settings = [
        f'login_listen = "{free_address()}"',
        'login_issuer = "https://127.0.0.1:1/nobody"',
        'login_client = "equipoise"',
        "connections = 1300",
        "login_connections = 300",
    ]
    stack = ExitStack()
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(1024, soft), hard))
    try:
        server = stack.enter_context(running(make_state(tmp_path / "state", settings)))
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    with stack:

        def allowed() -> bool:
            limits = Path(f"/proc/{server.process.pid}/limits").read_text()
            (line,) = [each for each in limits.splitlines() if each.startswith("Max open files")]
            return int(line.split()[3]) >= 1300 + 3 * 300 + 200

        until(allowed)
