"""A real server in a process of its own, and raw gRPC channels to it, for tests of the edge.

The server is the composition root with a seed source that the test chooses: no option of a server does that.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grpc
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from grpc import aio

from equipoise.v1 import operator_pb2, operator_pb2_grpc
from equipoise_server.admin.new_state import create_state
from equipoise_server.clock import Clock, system_clock
from equipoise_server.config_file import CONFIG_FILE
from harness.preloaded import Program, start
from harness.waiting import PATIENCE

SEED = bytes(range(32))
# For tests that ask faster than any person does.
HURRIED = tuple(f"{kind}_per_second = 1000000" for kind in ("reads", "streams", "uploads", "changes"))

SCRIPT = """
import asyncio, pathlib, sys
from equipoise_server.app import serve

if __name__ == "__main__":
    state, seed = pathlib.Path(sys.argv[1]), bytes.fromhex(sys.argv[2])
    asyncio.run(serve(state, seeds=lambda: seed, ready=lambda port: print(port, flush=True)))
"""

# The first round has the known seed, and every other one its own.
EACH_ITS_SEED = SCRIPT.replace(
    "lambda: seed", "lambda drawn=[]: drawn.append(1) or (os.urandom(32) if drawn[1:] else seed)"
)
EACH_ITS_SEED = EACH_ITS_SEED.replace("import asyncio", "import os, asyncio")


@dataclass(frozen=True)
class Credentials:
    """What a client shows: certificate and key in PEM, either both or neither, and whom it trusts."""

    authority: bytes
    certificate: bytes | None = None
    key: bytes | None = None

    @classmethod
    def of_profile(cls, profile: Path) -> Credentials:
        """Those in a profile directory."""
        authority, certificate, key = (
            (profile / name).read_bytes() for name in ("ca.pem", "certificate.pem", "key.pem")
        )
        return cls(authority, certificate, key)


@dataclass(frozen=True)
class ServerProcess:
    """A server that is running."""

    state: Path
    port: int
    process: Program | subprocess.Popen[str]

    def channel(self, credentials: Credentials) -> aio.Channel:
        """A channel with mutual TLS."""
        tls = grpc.ssl_channel_credentials(credentials.authority, credentials.key, credentials.certificate)
        return aio.secure_channel(f"127.0.0.1:{self.port}", tls)

    def blocking_channel(self, credentials: Credentials) -> grpc.Channel:
        """The same without asyncio, whose client may lose the status of a call that is refused while it sends."""
        tls = grpc.ssl_channel_credentials(credentials.authority, credentials.key, credentials.certificate)
        return grpc.secure_channel(f"127.0.0.1:{self.port}", tls)

    def operator(self) -> Credentials:
        """The first operator's."""
        return Credentials.of_profile(self.state / "profiles" / "operator")

    def auditor(self) -> Credentials:
        """The first auditor's."""
        return Credentials.of_profile(self.state / "profiles" / "auditor")

    async def admit(self, name: str, key: ec.EllipticCurvePrivateKey | None = None) -> Credentials:
        """Admits an analyst through the operator's service."""
        key = key or ec.generate_private_key(ec.SECP256R1())
        request = operator_pb2.AddAnalystRequest(
            name=name, signing_request=signing_request(key), request_id=f"admit {name}"
        )
        async with self.channel(self.operator()) as channel:
            response = await operator_pb2_grpc.OperatorServiceStub(channel).AddAnalyst(request)
        return Credentials(response.authority, response.certificate, key_to_pem(key))

    def log(self) -> str:
        """What the server has logged so far."""
        return (self.state / "server.log").read_text()


def make_state(
    state: Path,
    settings: Sequence[str] = (),
    store: str = "sqlite:///equipoise.db",
    clock: Clock = system_clock,
) -> Path:
    """A state directory whose server takes a free port and releases every second; `settings` are TOML lines."""
    create_state(state, listen="127.0.0.1:0", store=store, release_grid_seconds=1, clock=clock)
    path = state / CONFIG_FILE
    keys = {line.partition(" = ")[0] for line in settings}
    kept = [line for line in path.read_text().splitlines() if line.partition(" = ")[0] not in keys]
    path.write_text("\n".join([*kept, *settings]) + "\n")
    return state


@contextmanager
def running(state: Path, seed: bytes = SEED, script: str = SCRIPT) -> Iterator[ServerProcess]:
    """A server on `state`, told to stop at the end."""
    with (
        (state / "server.log").open("a") as log,
        start(script, state, seed.hex(), stdout=subprocess.PIPE, stderr=log) as process,
    ):
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            assert line, (state / "server.log").read_text()
            yield ServerProcess(state, int(line), process)
        finally:
            process.terminate()
            try:
                process.wait(PATIENCE)
            except subprocess.TimeoutExpired:
                process.kill()
                raise


def wait_for_exit(server: ServerProcess, seconds: float) -> int:
    """The exit code of a server that is expected to end by itself."""
    return server.process.wait(seconds)


def signing_request(key: ec.EllipticCurvePrivateKey, common_name: str = "ignored") -> bytes:
    """A certificate request in PEM."""
    subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, common_name)])
    request = x509.CertificateSigningRequestBuilder().subject_name(subject).sign(key, hashes.SHA256())
    return request.public_bytes(serialization.Encoding.PEM)


def key_to_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    """A private key in PEM."""
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )


@dataclass(frozen=True)
class Refusal:
    """How a call ended: status name, reason in the trailing metadata, message."""

    status: str
    reason: str
    message: str

    @classmethod
    def of(cls, error: Any) -> Refusal:
        """What gRPC reports, with asyncio or without."""
        trailing = dict(tuple(error.trailing_metadata() or ()))
        return cls(error.code().name, str(trailing.get("equipoise-reason", "")), error.details() or "")


async def refusal_of(call: Any) -> Refusal:
    """The refusal a call ends with, unary or streaming; fails if it succeeds."""
    try:
        if hasattr(call, "__aiter__"):
            _ = [response async for response in call]
        else:
            await call
    except aio.AioRpcError as error:
        return Refusal.of(error)
    raise AssertionError("the call was not refused")


def command(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", "from equipoise_server.cli import main; main()", *arguments],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
