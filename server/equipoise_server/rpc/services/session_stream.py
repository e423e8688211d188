"""Serves an analyst's stream in a session: receives statements and sends their answers in the same order.

A stream reads the next statement only while few of its statements wait and its caller does not ask too fast. So a
caller who asks without reading fills only its own connection. A refused statement ends the stream, but only after
the answers to all earlier statements. After any end of a stream the caller can attach again: no answer is lost, and
none changes.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from concurrent.futures import Future
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any, TypeAlias, TypeVar

from equipoise.errors import InvalidArgument, Unavailable, WrongState
from equipoise.v1 import analyst_pb2
from equipoise_server.rpc.interceptors.token_bucket import Bucket
from equipoise_server.rpc.threads import Threads
from equipoise_server.sessions.answer_store import StoredAnswer
from equipoise_server.sessions.attachments import Attachment
from equipoise_server.sessions.service import NO_LONGER_KEPT, Sessions

ANSWERS_AT_ONCE = 4  # read from the store together; each may have a megabyte
STOPPING = "the server is stopping; attach again after what you received"
IDLE = "nothing was asked for too long; attach again after what you received"
ATTACH_FIRST = "must be sent once, before any piece of the workload"

Requests: TypeAlias = AsyncIterator[analyst_pb2.AskQueriesRequest]
Result = TypeVar("Result")


@dataclass(frozen=True)
class SessionStreamLimits:
    """The limits of session streams.

    Attributes:
        at_once: the number of waiting statements of one stream.
        per_second: the average number of statements per second of one caller, over all its streams.
        burst: the number of statements that one caller may ask at once.
        idle_seconds: the longest time without a statement on one stream.
    """

    at_once: int
    per_second: float
    burst: float
    idle_seconds: float


class SessionStreams:
    """The session streams of all callers. To be used in the event loop that serves them."""

    def __init__(
        self,
        sessions: Sessions,
        threads: Threads,
        stopping: asyncio.Event,
        limits: SessionStreamLimits,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.sessions = sessions
        self.threads = threads
        self.stopping = stopping
        self.limits = limits
        self._clock = clock
        self._buckets: dict[str, Bucket] = {}  # by certified name, so its size is bounded

    async def answers(self, caller: str, requests: Requests) -> AsyncGenerator[analyst_pb2.AskQueriesResponse]:
        """Yield the attachment, then the caller's stored answers, then the answers to new statements.

        Raises:
            InvalidArgument: messages come in a wrong order.
            Unavailable: nothing was asked for too long, or the server is stopping.
            EquipoiseError: as `Sessions.attach` and `Attachment.ask` raise.
        """
        stream = _Stream(self, caller, requests)
        try:
            async with aclosing(stream.answers()) as responses:
                async for response in responses:
                    yield response
        finally:
            await stream.close()

    async def may_ask(self, caller: str) -> None:
        """Wait until the caller may ask another statement."""
        bucket = self._buckets.get(caller)
        if bucket is None:
            bucket = self._buckets[caller] = Bucket(self.limits.per_second, self.limits.burst, self._clock())
        while wait := bucket.take(self._clock()):
            await asyncio.sleep(wait)


class _Stream:
    """One stream. A separate task reads its statements, so that new ones are taken while others wait."""

    def __init__(self, streams: SessionStreams, caller: str, requests: Requests) -> None:
        self._streams = streams
        self._caller = caller
        self._requests = requests
        self._room = asyncio.Semaphore(streams.limits.at_once)
        # The answers to the statements, in order; at the end None, or the error of the next statement.
        self._events: asyncio.Queue[Future[StoredAnswer] | Exception | None] = asyncio.Queue()
        # The error that ends the stream wherever it waits.
        self._cut: asyncio.Future[Exception] = asyncio.get_running_loop().create_future()
        self._tasks: list[asyncio.Future[Any]] = [asyncio.create_task(self._stop())]

    async def answers(self) -> AsyncGenerator[analyst_pb2.AskQueriesResponse]:
        attach = await self._attach_message()
        attachment = await self._attached(attach)
        try:
            attached = analyst_pb2.AskQueriesResponse.Attached(
                answered=attachment.answered, commitment_salt=attachment.salt
            )
            yield analyst_pb2.AskQueriesResponse(attached=attached)
            after, reading = attach.after_sequence, self._streams.threads.reading
            while after < attachment.answered:
                page = asyncio.ensure_future(reading.run(self._caller, attachment.stored, after, ANSWERS_AT_ONCE))
                if not (records := await self._first(page)):
                    raise WrongState(NO_LONGER_KEPT)
                for record in records:
                    yield _answered(record)
                    after = record.sequence
            if not attachment.open:
                return
            asyncio.wrap_future(attachment.ended).add_done_callback(self._end)
            self._tasks.append(asyncio.create_task(self._read(attachment)))
            while (event := await self._next(self._streams.limits.idle_seconds)) is not None:
                if isinstance(event, Exception):
                    raise event
                yield _answered(await self._first(asyncio.wrap_future(event)))
                self._room.release()
        finally:
            attachment.detach()

    async def close(self) -> None:
        """End the tasks. Statements that were taken are still answered, and their answers stored."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _attach_message(self) -> analyst_pb2.AttachSession:
        reading = asyncio.ensure_future(anext(self._requests, None))
        self._tasks.append(reading)
        request = await self._first(reading, self._streams.limits.idle_seconds)
        if request is None or request.WhichOneof("part") != "attach":
            raise InvalidArgument("attach", ATTACH_FIRST)
        return request.attach

    async def _attached(self, attach: analyst_pb2.AttachSession) -> Attachment:
        attaching = asyncio.ensure_future(
            self._streams.threads.working.run(
                self._caller,
                self._streams.sessions.attach,
                self._caller,
                attach.session_id,
                attach.after_sequence,
                attach.commitment_salt,
                attach.accept_unprotected,
            )
        )
        try:
            return await asyncio.shield(attaching)
        except asyncio.CancelledError:
            attaching.add_done_callback(_let_go)
            raise

    async def _read(self, attachment: Attachment) -> None:
        try:
            while True:
                await self._room.acquire()
                request = await anext(self._requests, None)
                if request is None:
                    self._events.put_nowait(None)
                    return
                if request.WhichOneof("part") != "asked":
                    raise InvalidArgument("attach", ATTACH_FIRST)
                if not request.asked.sequence:
                    raise InvalidArgument("sequence", "must count from 1")
                await self._streams.may_ask(self._caller)
                # Use the threads of look-ups: a statement is small, and must not wait for workloads and plans.
                asked = await self._streams.threads.reading.run(
                    self._caller, attachment.ask, request.asked.sequence, request.asked.statement
                )
                self._events.put_nowait(asked)
        except Exception as error:
            self._events.put_nowait(error)

    async def _next(self, seconds: float) -> Future[StoredAnswer] | Exception | None:
        getting = asyncio.ensure_future(self._events.get())
        try:
            return await self._first(getting, seconds)
        finally:
            getting.cancel()

    async def _first(self, waited: asyncio.Future[Result], seconds: float | None = None) -> Result:
        """Return the outcome of `waited`. Raises the error that cuts the stream off, `Unavailable` when idle."""
        waited.add_done_callback(_retrieve_outcome)
        either: set[asyncio.Future[Any]] = {waited, self._cut}
        await asyncio.wait(either, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        if self._cut.done():
            raise self._cut.result()
        if not waited.done():
            raise Unavailable(IDLE)
        return waited.result()

    async def _stop(self) -> None:
        await self._streams.stopping.wait()
        self._cut_off(Unavailable(STOPPING))

    def _end(self, ended: asyncio.Future[None]) -> None:
        """End the stream when the session takes no more statements from it: after its answers, or with an error."""
        error = None if ended.cancelled() else ended.exception()
        if error is None:
            self._events.put_nowait(None)
        elif isinstance(error, Exception):
            self._cut_off(error)

    def _cut_off(self, error: Exception) -> None:
        if not self._cut.done():
            self._cut.set_result(error)


def _answered(answer: StoredAnswer) -> analyst_pb2.AskQueriesResponse:
    answered = analyst_pb2.AskQueriesResponse.Answered(
        sequence=answer.sequence, slot=answer.slot, chunk=answer.chunk, envelope=answer.envelope, cost=answer.cost
    )
    return analyst_pb2.AskQueriesResponse(answered=answered)


def _retrieve_outcome(waited: asyncio.Future[Result]) -> None:
    """Retrieve an error that nobody may be waiting for, as asyncio would log a warning otherwise."""
    if not waited.cancelled():
        waited.exception()


def _let_go(attaching: asyncio.Future[Attachment]) -> None:
    """Detach an attachment whose caller is gone."""
    if not attaching.cancelled() and attaching.exception() is None:
        attaching.result().detach()
