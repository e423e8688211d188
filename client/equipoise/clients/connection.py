"""One channel to one server: deadlines, retries, and gRPC's errors as ours.

Methods are those of the generated stubs, which say the types of their requests and responses.

Every call that changes something carries a `request_id`, and the server answers a repeated one with its first
answer. So a call whose answer was lost is simply sent again, for longer than a server takes to be started again,
and one that came too early waits as it was told.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from types import TracebackType
from typing import Protocol, Self, TypeVar

import grpc
from google.protobuf.message import Message

from equipoise.clients.conversation import ATTEMPTS, Conversation
from equipoise.clients.refusals import ended_here, error_of
from equipoise.errors import TooFast, Unavailable
from equipoise.profile.profile import Profile

DEADLINE_SECONDS = 120.0
FIRST_PAUSE_SECONDS = 0.2  # each is twice as long as the one before
MAX_PAUSE_SECONDS = 1.0

OPTIONS = [
    ("grpc.max_receive_message_length", 64 * 2**20),
    # A dead connection under a long silent watch is noticed; the server permits pings this rare.
    ("grpc.keepalive_time_ms", 60_000),
    ("grpc.keepalive_timeout_ms", 20_000),
    # A server that was started again is found soon, however long it was away.
    ("grpc.initial_reconnect_backoff_ms", 200),
    ("grpc.max_reconnect_backoff_ms", 5_000),
    # A custodian's server is reached directly; a web proxy in the environment would only be in the way.
    ("grpc.enable_http_proxy", 0),
    # Otherwise one channel's broken connection to an address would delay a fresh channel to it.
    ("grpc.use_local_subchannel_pool", 1),
]

Request = TypeVar("Request", bound=Message)
Response = TypeVar("Response")
Page = TypeVar("Page", bound="_Page")
Result = TypeVar("Result")


class Connection:
    """A gRPC channel to a server, with deadlines and retries. Thread-safe.

    Args:
        channel: the channel, which the connection closes.
        target: the server's host and port, for messages.
        deadline_seconds: how long one attempt of a call may take.
    """

    def __init__(self, channel: grpc.Channel, target: str = "", deadline_seconds: float = DEADLINE_SECONDS) -> None:
        self.channel = channel
        self.target = target
        self._deadline = deadline_seconds

    @classmethod
    def from_profile(cls, directory: str | Path) -> Connection:
        """Makes a connection with the certificate of a profile. Nothing is sent before the first call.

        Raises:
            InvalidArgument: a file of the profile is missing or malformed.
        """
        profile = Profile.load(Path(directory))
        return cls(grpc.secure_channel(profile.target, profile.credentials(), options=OPTIONS), profile.target)

    def close(self) -> None:
        """Ends the connection and every call on it."""
        self.channel.close()

    def call(
        self,
        method: grpc.UnaryUnaryMultiCallable[Request, Response],
        request: Request,
        deadline_seconds: float | None = None,
    ) -> Response:
        """Sends one request and returns its response. The request is sent again while the server is not reached.

        Args:
            method: a method of a generated stub on this connection's channel.
            request: its request; one that changes something has a `request_id`, so that it is carried out once.
            deadline_seconds: how long one attempt may take; None: as long as of any other call.

        Raises:
            EquipoiseError: what the server refused, or `Unavailable` after the last attempt.
        """
        return self._retry(lambda: method(request, timeout=deadline_seconds or self._deadline))

    def upload(
        self, method: grpc.StreamUnaryMultiCallable[Request, Response], requests: Callable[[], Iterable[Request]]
    ) -> Response:
        """Sends a stream of requests, which `requests` begins anew for every attempt, and returns the response.

        Raises as `call`.
        """
        return self._retry(lambda: method(iter(requests()), timeout=self._deadline))

    def pages(
        self,
        method: grpc.UnaryUnaryMultiCallable[Request, Page],
        request: Callable[[str], Request],
        token: str = "",
    ) -> Iterator[Page]:
        """Yields the responses of a List method: `request` is made for the token at which the page before ended.

        `token`: that of the first page; empty: the list is read from its beginning. Raises as `call`.
        """
        while True:
            page = self.call(method, request(token))
            yield page
            token = page.next_page_token
            if not token:
                return

    def stream(
        self, method: grpc.UnaryStreamMultiCallable[Request, Response], next_request: Callable[[], Request]
    ) -> Iterator[Response]:
        """Yields the responses to one request; a stream that breaks is resumed with what `next_request` then gives.

        Raises as `call`; `Unavailable` when `ATTEMPTS` in a row bring nothing.
        """
        failures = 0
        while True:
            call = None
            try:
                call = method(next_request())
                for message in call:
                    failures = 0
                    yield message
                return
            except grpc.RpcError as error:
                failures = self._pause_or_raise(error, failures, ATTEMPTS)
            except ValueError:
                raise Unavailable("the connection was closed") from None
            finally:
                # A reader that stops in the middle must not leave the call open.
                if call is not None:
                    call.cancel()

    def converse(
        self, method: grpc.StreamStreamMultiCallable[Request, Response], opening: Callable[[], Request]
    ) -> Conversation[Request, Response]:
        """Opens a stream both ways, which begins with what `opening` gives, also each time it is begun anew."""
        return Conversation(method, opening, self._pause_or_raise)

    def _retry(self, attempt: Callable[[], Result]) -> Result:
        failures = 0
        while True:
            try:
                return attempt()
            except grpc.RpcError as error:
                failures = self._pause_or_raise(error, failures, ATTEMPTS)
            except ValueError:
                raise Unavailable("the connection was closed") from None

    def _pause_or_raise(self, error: grpc.RpcError, failures: int, attempts: int) -> int:
        ours = error_of(error, self.target, self._deadline)
        wait = ours.retry_seconds if isinstance(ours, TooFast) else 0.0
        again = isinstance(ours, Unavailable) or 0 < wait <= self._deadline
        if not again or ended_here(error) or failures + 1 >= attempts:
            raise ours from None
        time.sleep(max(wait, min(FIRST_PAUSE_SECONDS * 2**failures, MAX_PAUSE_SECONDS)))
        return failures + 1


class ServerClient:
    """One role's way to a server, on one connection. Thread-safe; a context that ends the connection."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    @classmethod
    def from_profile(cls, directory: str | Path) -> Self:
        """Makes a client with the certificate of a profile. Nothing is sent before the first call.

        Raises:
            InvalidArgument: a file of the profile is missing or malformed.
        """
        return cls(Connection.from_profile(directory))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Ends the connection and every call on it."""
        self._connection.close()


class _Page(Protocol):
    """What the responses of all List methods have."""

    @property
    def next_page_token(self) -> str: ...
