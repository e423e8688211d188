"""The door for people without a certificate: they show what the provider gave them, and get a certificate.

It listens at an address of its own and offers one method. Nothing else can be reached through it, and all that
follows a login is mutual TLS. Whoever is at the door is a stranger, so what a stranger takes is counted for each
network address, before anything is looked at.
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
CALLS = 256  # open at once
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

    async def log_in(self, messages: AsyncIterator[bytes], context: Context) -> bytes:
        """Answer one request, in bytes, after what its address may take was counted."""
        raw = await receive_one(messages, self.config.handshake_seconds)
        try:
            request = enrolment_pb2.LogInRequest.FromString(raw)
        except DecodeError:
            raise InvalidArgument("request", "is not a LogInRequest") from None
        response = await self.threads.run(address_of(context), self._certified, request)
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
    door = _make_door(config, admission, threads)
    try:
        port = bind_port(door, config.login_listen, f"{settings}: login_listen", credentials)
        await door.start()
        _log.info("logins", listen=config.login_listen, port=port, issuer=config.login_issuer)
        yield
    finally:
        await door.stop(0)
        await asyncio.to_thread(threads.close)


def _make_door(config: Config, admission: Admission, threads: SharedThreads) -> aio.Server:
    keys, codes = ProviderKeys(config.login_issuer), DeviceCodes(config.login_issuer, config.login_client)
    door, strangers = LoginDoor(config, admission, keys, codes, threads), Strangers()

    @asynccontextmanager
    async def counted(call: Call) -> AsyncIterator[None]:
        strangers.count(address_of(call.context))
        yield

    guards = [GuardInterceptor(guard) for guard in (hide_errors, counted)]
    settings = dict(options(config)) | {"grpc.max_receive_message_length": MAX_MESSAGE}
    server = aio.server(interceptors=guards, options=list(settings.items()), maximum_concurrent_rpcs=CALLS)
    # One request is read as a stream of one, like those of all methods (`rpc.methods`).
    handler: Any = grpc.stream_unary_rpc_method_handler(cast("Any", door.log_in))
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(SERVICE.full_name, {"LogIn": handler}),))
    return server


def address_of(context: Context) -> str:
    """Return the network address of a caller, without the port."""
    return context.peer().rpartition(":")[0]
