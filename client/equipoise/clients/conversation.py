"""A stream both ways that survives the loss of its connection, and of the server."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from queue import SimpleQueue
from typing import Generic, Protocol, TypeVar

import grpc
from google.protobuf.message import Message

from equipoise.errors import Unavailable

ATTEMPTS = 17  # in a row without any progress: about 15 seconds
CONVERSATION_ATTEMPTS = 123  # for one that was begun: about two minutes, in which a server starts again

Request = TypeVar("Request", bound=Message)
Response = TypeVar("Response")
Response_co = TypeVar("Response_co", covariant=True)


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

    @property
    def open(self) -> bool:
        """Tells whether a stream was begun and, as far as is known here, has not ended."""
        return self._call is not None and self._call.is_active()

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
    def is_active(self) -> bool: ...
