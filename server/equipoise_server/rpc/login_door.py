"""The door for people without a certificate: they show what the provider gave them, and get a certificate.

It listens at an address of its own and offers one method. Nothing else can be reached through it, and all that
follows a login is mutual TLS. Whoever is at the door is a stranger, so connections and logins are counted for each
network address, before anything is looked at, and nothing stays for longer than a login takes.
"""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import grpc
import structlog
from google.protobuf.message import DecodeError
from grpc import aio

from equipoise.errors import InvalidArgument, NotAuthenticated, TooFast
from equipoise.v1 import enrolment_pb2
from equipoise_server.config import Config
from equipoise_server.identity.admission import Admission
from equipoise_server.identity.device_codes import DeviceCodes
from equipoise_server.identity.enrolment import MAX_REQUEST_BYTES, requested_key
from equipoise_server.identity.login_tokens import MAX_TOKEN, BadToken, account_of, check_extra
from equipoise_server.identity.logins import REFUSED
from equipoise_server.identity.provider_keys import ProviderKeys
from equipoise_server.rpc.configured import options
from equipoise_server.rpc.door_connections import DoorConnections, door_connections, listening
from equipoise_server.rpc.interceptors.error_translation import hide_errors
from equipoise_server.rpc.interceptors.interceptor import Call, Context, GuardInterceptor
from equipoise_server.rpc.interceptors.token_bucket import TOO_OFTEN, Bucket
from equipoise_server.rpc.methods import receive_one
from equipoise_server.rpc.ports import bind_port
from equipoise_server.rpc.threads import SharedThreads

SERVICE = enrolment_pb2.DESCRIPTOR.services_by_name["EnrolmentService"]
PER_SECOND, AT_ONCE = 5.0, 50  # logins from one address, which many people may share
ADDRESSES = 4096  # that are told apart; of more, the one that was silent for longest begins anew
THREADS = 4
CALLS = 1  # open at once on one connection
STAY_SECONDS, GRACE_SECONDS = 60, 30  # how long a connection may be used, and a call go on after that
MAX_MESSAGE = MAX_TOKEN + MAX_REQUEST_BYTES + 1024
_log = structlog.get_logger("equipoise.login")


@dataclass(frozen=True)
class LoginDoor:
    """Answers `LogIn`. `keys`: those of the provider; `codes`: of its device flow."""

    config: Config
    admission: Admission
    keys: ProviderKeys
    codes: DeviceCodes
    threads: SharedThreads
    connections: DoorConnections

    async def log_in(self, messages: AsyncIterator[bytes], context: Context) -> bytes:
        """Answer one request, in bytes, after what its address may take was counted."""
        raw = await receive_one(messages, self.config.handshake_seconds)
        try:
            request = enrolment_pb2.LogInRequest.FromString(raw)
        except DecodeError:
            raise InvalidArgument("request", "is not a LogInRequest") from None
        response = await self.threads.run(self.connections.address_of(context.peer()), self._certified, request)
        return response.SerializeToString()

    def _certified(self, request: enrolment_pb2.LogInRequest) -> enrolment_pb2.LogInResponse:
        now = self.admission.registry.operations.clock()
        key = requested_key(request.signing_request)
        issuer, client = self.config.login_issuer, self.config.login_client
        of_device = bool(request.device_code)
        if of_device and request.id_token:
            raise InvalidArgument("device_code", "must be empty where there is an ID token")
        try:
            token = self.codes.token(request.device_code) if of_device else request.id_token
            account = account_of(token, self.keys.named, issuer, client, key, now, of_device)
        except BadToken as reason:
            _log.info("login_refused", problem=str(reason))
            raise NotAuthenticated(REFUSED) from None
        name, pem = self.admission.log_in(account, request.signing_request, token)
        _log.info("logged_in", name=name)
        return enrolment_pb2.LogInResponse(name=name, certificate=pem)


@dataclass
class Strangers:
    """How often each network address has been at the door."""

    clock: Callable[[], float] = time.monotonic
    _buckets: OrderedDict[str, Bucket] = field(default_factory=OrderedDict)

    def count(self, address: str) -> None:
        """Count one call. Raises `TooFast`."""
        now = self.clock()
        bucket = self._buckets.setdefault(address, Bucket(PER_SECOND, AT_ONCE, now))
        self._buckets.move_to_end(address)
        if len(self._buckets) > ADDRESSES:
            self._buckets.popitem(last=False)
        if wait := bucket.take(now):
            raise TooFast(TOO_OFTEN, retry_seconds=wait)


@asynccontextmanager
async def door_served(
    config: Config, settings: Path, credentials: grpc.ServerCredentials, admission: Admission
) -> AsyncIterator[None]:
    """Serve the door while the context is open, where the configuration has one.

    Args:
        config: The configuration.
        settings: Its file, which errors name.
        credentials: Of the server alone.
        admission: What signs certificates.

    Raises:
        InvalidArgument: The address cannot be used, or packages are missing.
    """
    if not config.login_listen:
        yield
        return
    check_extra()
    threads = SharedThreads(THREADS, "login")
    try:
        async with door_connections(config.login_connections) as connections:
            door = _make_door(config, admission, threads, connections)
            try:
                bind_port(door, f"unix:{connections.inner}", f"{settings}: login_listen", credentials)
                await door.start()
                async with listening(connections, config.login_listen, f"{settings}: login_listen") as port:
                    _log.info("logins", listen=config.login_listen, port=port, issuer=config.login_issuer)
                    yield
            finally:
                await door.stop(0)
    finally:
        await asyncio.to_thread(threads.close)


def _make_door(
    config: Config, admission: Admission, threads: SharedThreads, connections: DoorConnections
) -> aio.Server:
    keys, codes = ProviderKeys(config.login_issuer), DeviceCodes(config.login_issuer, config.login_client)
    door, strangers = LoginDoor(config, admission, keys, codes, threads, connections), Strangers()

    @asynccontextmanager
    async def counted(call: Call) -> AsyncIterator[None]:
        strangers.count(connections.address_of(call.context.peer()))
        yield

    guards = [GuardInterceptor(guard) for guard in (hide_errors, counted)]
    server = aio.server(interceptors=guards, options=door_options(config))
    # One request is read as a stream of one, like those of all methods (`rpc.methods`).
    handler: Any = grpc.stream_unary_rpc_method_handler(cast("Any", door.log_in))
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(SERVICE.full_name, {"LogIn": handler}),))
    return server


def door_options(config: Config) -> list[tuple[str, int]]:
    """Return gRPC's settings where callers need no certificate: a connection is theirs for seconds."""
    own = {
        "grpc.max_receive_message_length": MAX_MESSAGE,
        "grpc.max_concurrent_streams": CALLS,
        # Twice as many as are passed on: gRPC notices later than we do that one has ended.
        "grpc.max_allowed_incoming_connections": 2 * config.login_connections,
        "grpc.max_connection_idle_ms": config.handshake_seconds * 1000,
        "grpc.max_connection_age_ms": STAY_SECONDS * 1000,
        "grpc.max_connection_age_grace_ms": GRACE_SECONDS * 1000,
    }
    return list((dict(options(config)) | own).items())
