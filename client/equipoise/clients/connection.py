"""One channel to one server: deadlines, retries, and gRPC's errors as ours.

Every call that changes something carries a `request_id`, and the server answers a repeated one with its first
answer. So a call whose answer was lost is simply sent again, for longer than a server takes to be started again,
and one that came too early waits as it was told.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from queue import SimpleQueue
from typing import Generic, Protocol, TypeVar, cast

import grpc

from equipoise.errors import (
    BY_REASON,
    EquipoiseError,
    InternalError,
    NotAuthenticated,
    NotServed,
    TooFast,
    TooLarge,
    Unavailable,
    from_reason,
)
from equipoise.profile.profile import Profile

REASON_KEY = "equipoise-reason"
RETRY_KEY = "equipoise-retry-seconds"
DEADLINE_SECONDS = 120.0
ATTEMPTS = 17  # in a row without any progress: about 15 seconds
CONVERSATION_ATTEMPTS = 123  # for one that was begun: about two minutes, in which a server starts again
FIRST_PAUSE_SECONDS = 0.2  # each is twice as long as the one before
MAX_PAUSE_SECONDS = 1.0

_OPTIONS = [
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

Request = TypeVar("Request")
Response = TypeVar("Response")
Response_co = TypeVar("Response_co", covariant=True)
Result = TypeVar("Result")


class Connection:
    """A channel, for stubs, and the way their methods are called on it. Thread-safe."""

    def __init__(self, channel: grpc.Channel, target: str = "", deadline_seconds: float = DEADLINE_SECONDS) -> None:
        self.channel = channel
        self.target = target
        self._deadline = deadline_seconds

    @classmethod
    def from_profile(cls, directory: str | Path) -> Connection:
        """A connection with the certificate of a profile. Nothing is sent before the first call."""
        profile = Profile.load(Path(directory))
        return cls(grpc.secure_channel(profile.target, profile.credentials(), options=_OPTIONS), profile.target)

    def close(self) -> None:
        """Ends the connection and every call on it."""
        self.channel.close()

    def call(self, method: grpc.UnaryUnaryMultiCallable[Request, Response], request: Request) -> Response:
        """One request, one response. Sent again while the server cannot be reached."""
        return self._retry(lambda: method(request, timeout=self._deadline))

    def upload(
        self, method: grpc.StreamUnaryMultiCallable[Request, Response], requests: Callable[[], Iterable[Request]]
    ) -> Response:
        """A stream of requests, made anew for every attempt, and one response."""
        return self._retry(lambda: method(iter(requests()), timeout=self._deadline))

    def pages(
        self, method: grpc.UnaryUnaryMultiCallable[Request, Response], request: Callable[[str], Request]
    ) -> Iterator[Response]:
        """The responses of a List method: `request` is made for the token at which the page before ended."""
        token = ""
        while True:
            page = self.call(method, request(token))
            yield page
            token = cast("_Page", page).next_page_token
            if not token:
                return

    def stream(
        self, method: grpc.UnaryStreamMultiCallable[Request, Response], next_request: Callable[[], Request]
    ) -> Iterator[Response]:
        """One request, a stream of responses; where it breaks, resumed with what `next_request` then gives.

        Given up when `ATTEMPTS` in a row bring nothing.
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
        """A stream both ways. It begins with what `opening` gives, also where it is begun anew after it broke."""
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
        ours = self._translated(error)
        wait = ours.retry_seconds if isinstance(ours, TooFast) else 0.0
        again = isinstance(ours, Unavailable) or 0 < wait <= self._deadline
        if not again or _ended_here(error) or failures + 1 >= attempts:
            raise ours from None
        time.sleep(max(wait, min(FIRST_PAUSE_SECONDS * 2**failures, MAX_PAUSE_SECONDS)))
        return failures + 1

    def _translated(self, error: grpc.RpcError) -> EquipoiseError:
        call = cast("_EndedCall", error)
        details = call.details() or ""
        trailing = dict(call.trailing_metadata() or ())
        reason = str(trailing.get(REASON_KEY, ""))
        if reason == TooFast.reason:
            return TooFast(details, float(trailing.get(RETRY_KEY, 0)))
        if reason in BY_REASON:
            return from_reason(reason, details)
        place = self.target or "the server"
        match call.code():
            case grpc.StatusCode.UNAVAILABLE if "CERTIFICATE_VERIFY_FAILED" in details:
                return NotAuthenticated(f"{place} is not a server that this profile's authority certified")
            case grpc.StatusCode.UNAVAILABLE:
                refusal = " (or it does not accept this profile's certificate)" if "closed" in details else ""
                return Unavailable(f"{place} cannot be reached{refusal}: {details}")
            case grpc.StatusCode.DEADLINE_EXCEEDED:
                return Unavailable(f"{place} did not answer within {self._deadline:g} seconds")
            case grpc.StatusCode.CANCELLED:
                return Unavailable("the connection was closed")
            case grpc.StatusCode.UNAUTHENTICATED:
                return NotAuthenticated(details)
            case grpc.StatusCode.UNIMPLEMENTED:
                return NotServed(details)
            case grpc.StatusCode.RESOURCE_EXHAUSTED:
                return TooLarge(details)
            case _:
                return InternalError(details or "something unexpected happened")


class Conversation(Generic[Request, Response]):
    """Messages sent and received in turn, by one thread. Where the stream breaks, it is begun anew.

    The first message of each stream answers its opening; who receives it again knows that what was sent since then
    may be lost. Given up when `CONVERSATION_ATTEMPTS` in a row bring nothing more than that, and where nothing was
    ever received, when `ATTEMPTS` bring nothing.
    """

    def __init__(
        self,
        method: grpc.StreamStreamMultiCallable[Request, Response],
        opening: Callable[[], Request],
        pause_or_raise: Callable[[grpc.RpcError, int, int], int],
    ) -> None:
        self._method = method
        self._opening = opening
        self._pause_or_raise = pause_or_raise
        self._call: _Call[Response] | None = None
        self._outgoing: SimpleQueue[Request | None] = SimpleQueue()
        self._received = self._failures = 0
        self._attempts = ATTEMPTS

    def send(self, message: Request) -> None:
        """Sends a message after all others. Nothing says whether it arrives but what is received."""
        self._outgoing.put(message)

    def receive(self) -> Response | None:
        """The next message; None where the server has ended the stream. Raises what it refused it for."""
        while True:
            try:
                call = self._call or self._start()
                message = next(call, None)
            except grpc.RpcError as error:
                self.close()
                self._failures = self._pause_or_raise(error, self._failures, self._attempts)
                continue
            except ValueError:
                raise Unavailable("the connection was closed") from None
            self._received += 1
            self._attempts = CONVERSATION_ATTEMPTS
            if self._received > 1:
                self._failures = 0
            return message

    def finish(self) -> None:
        """Says that nothing more will be sent, and lets the server end the stream if it has nothing more to say."""
        self._outgoing.put(None)
        if self._call is not None:
            with suppress(grpc.RpcError):
                next(self._call, None)

    def close(self) -> None:
        """Ends the stream."""
        # gRPC reads what is sent in a thread of its own, which ends with the queue.
        self._outgoing.put(None)
        if self._call is not None:
            self._call.cancel()
            self._call = None

    def _start(self) -> _Call[Response]:
        self._outgoing = SimpleQueue()
        self._outgoing.put(self._opening())
        self._received = 0
        self._call = self._method(iter(self._outgoing.get, None))
        return self._call


class _Call(Protocol[Response_co]):
    """A stream that is open."""

    def __next__(self) -> Response_co: ...
    def __iter__(self) -> Iterator[Response_co]: ...
    def cancel(self) -> object: ...


class _EndedCall(Protocol):
    """What gRPC's errors of ended calls offer; its own base class says nothing of it."""

    def code(self) -> grpc.StatusCode: ...
    def details(self) -> str | None: ...
    def trailing_metadata(self) -> Iterable[tuple[str, str | bytes]] | None: ...


class _Page(Protocol):
    """What the responses of all List methods have."""

    next_page_token: str


def _ended_here(error: grpc.RpcError) -> bool:
    """Whether waiting cannot help: the caller closed the connection, or time is up already."""
    return cast("_EndedCall", error).code() in (grpc.StatusCode.CANCELLED, grpc.StatusCode.DEADLINE_EXCEEDED)
