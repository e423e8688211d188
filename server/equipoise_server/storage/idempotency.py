"""Remembered requests: the same request again gets the first answer, another one under its id is refused.

A `request_id` belongs to its caller: two callers may use the same one and never notice each other.

The memory is bounded: of each caller the newest `MAX_REQUESTS` requests, for `REQUEST_LIFE`. A request that is sent
again after that is carried out again. Without the bounds one caller could make the work of all others slower, as
transactions that write take turns. What is kept for ever is one row for each caller (`callers`).
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import Connection, bindparam, func, select

from equipoise.errors import AlreadyExists, InvalidArgument
from equipoise.model.times import from_microseconds, to_microseconds
from equipoise_server.storage.tables.identity import callers, requests

MAX_ID = 128
MAX_REQUESTS = 1000  # of one caller: 100 seconds' worth of uploads at the default limits
REQUEST_LIFE = timedelta(days=7)
_FORGOTTEN_AT_ONCE = 1000  # rows that are removed in one transaction: nobody waits long for it


@dataclass(frozen=True)
class Request:
    """A request that must not be carried out twice. `content` is a digest of all it asks for."""

    caller: str
    request_id: str
    method: str
    content: bytes


# The one row that is read for the time of a caller's next request.
LAST_TIME = select(callers.c.last_time).where(callers.c.caller == bindparam("name"))


def make_request(caller: str, request_id: str, method: str, *parts: bytes | str) -> Request:
    """A request of `caller`. Raises `InvalidArgument` for an empty or overlong `request_id`.

    `parts`: all that the request asks for, names and exact bytes, objects as canonical JSON with keys of their own:
    nothing in them follows from how an attribute is called (`equipoise.records.codec`).
    """
    if not request_id or len(request_id) > MAX_ID:
        raise InvalidArgument("request_id", f"must have 1 to {MAX_ID} characters")
    content = hashlib.sha256(b"equipoise request v1\n")
    for part in (method, *parts):
        encoded = part.encode() if isinstance(part, str) else part
        content.update(len(encoded).to_bytes(8, "big") + encoded)
    return Request(caller, request_id, method, content.digest())


def first_answer(connection: Connection, request: Request) -> str | None:
    """The answer kept for this request, or None if it is new. Raises `AlreadyExists` for other content."""
    row = connection.execute(
        select(requests.c.content, requests.c.answer).where(
            requests.c.caller == request.caller, requests.c.request_id == request.request_id
        )
    ).first()
    if row is None:
        return None
    if row.content != request.content:
        raise AlreadyExists("request_id: was used before for another request")
    return str(row.answer)


def keep_answer(connection: Connection, request: Request, answer: str, time: datetime) -> None:
    """Keep the first answer, in the transaction that carries the request out, and forget the caller's oldest.

    A crash before the commit means: nothing happened, and the same request will be carried out.
    """
    number = _count(connection, request.caller, to_microseconds(time))
    connection.execute(
        requests.insert().values(
            caller=request.caller,
            request_id=request.request_id,
            method=request.method,
            content=request.content,
            answer=answer,
            time=to_microseconds(time),
            number=number,
        )
    )
    oldest = (requests.c.caller == request.caller) & (requests.c.number <= number - MAX_REQUESTS)
    connection.execute(requests.delete().where(oldest))


def last_time(connection: Connection, caller: str) -> datetime | None:
    """The latest time of the caller's requests, also of those that are forgotten; None without one."""
    latest = connection.execute(LAST_TIME, {"name": caller}).scalar_one_or_none()
    return None if latest is None else from_microseconds(latest)


def count_requests(connection: Connection) -> int:
    """How many requests were ever carried out. It never falls, whatever is forgotten."""
    return int(connection.execute(select(func.coalesce(func.sum(callers.c.requests), 0))).scalar_one())


def outlived(connection: Connection, now: datetime) -> datetime | None:
    """The time up to which requests may be forgotten next, as they are older than `REQUEST_LIFE`; None for none."""
    before = to_microseconds(now - REQUEST_LIFE)
    oldest = select(requests.c.time).where(requests.c.time < before).order_by(requests.c.time)
    last = connection.execute(select(func.max(oldest.limit(_FORGOTTEN_AT_ONCE).subquery().c.time))).scalar_one()
    return None if last is None else from_microseconds(last)


def forget_until(connection: Connection, time: datetime) -> None:
    """Forget the requests up to and with a time."""
    connection.execute(requests.delete().where(requests.c.time <= to_microseconds(time)))


def forget_caller(connection: Connection, caller: str) -> None:
    """Forget the requests of a caller that is deleted; their number and last time stay."""
    connection.execute(requests.delete().where(requests.c.caller == caller))


def _count(connection: Connection, caller: str, time: int) -> int:
    """Count one more request of a caller; the number of this one."""
    row = connection.execute(
        select(callers.c.requests, callers.c.last_time).where(callers.c.caller == caller)
    ).first()
    if row is None:
        connection.execute(callers.insert().values(caller=caller, requests=1, last_time=time))
        return 1
    values = {"requests": row.requests + 1, "last_time": max(row.last_time, time)}
    connection.execute(callers.update().where(callers.c.caller == caller).values(values))
    return int(row.requests) + 1
