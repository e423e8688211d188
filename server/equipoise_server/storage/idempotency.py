"""Remembered requests: a repeated request gets the first answer, and another request with the same id is refused.

A `request_id` belongs to its caller: two callers may use the same id without any effect on each other.

Of each caller the newest `MAX_REQUESTS` requests are remembered, for `REQUEST_LIFE`. A request that is repeated
later is carried out again. Without these bounds one caller could slow the others down, because writing transactions
take turns. Only one row for each caller (`callers`) is kept for ever.
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
_FORGOTTEN_AT_ONCE = 1000  # rows that one transaction removes, so that others need not wait long


@dataclass(frozen=True)
class Request:
    """A request that must not be carried out twice. `content` is a digest of everything that it asks for."""

    caller: str
    request_id: str
    method: str
    content: bytes


# The one row that is read for the time of a caller's next request.
LAST_TIME = select(callers.c.last_time).where(callers.c.caller == bindparam("name"))


def make_request(caller: str, request_id: str, method: str, *parts: bytes | str) -> Request:
    """Return a request of `caller`.

    Args:
        caller: the caller's role and name.
        request_id: the caller's id of the request, 1 to 128 characters.
        method: the name of the operation.
        parts: everything that the request asks for: names, exact bytes, and objects as canonical JSON whose keys do
            not depend on the names of attributes in the code (`equipoise.records.codec`).

    Raises:
        InvalidArgument: the `request_id` is empty or too long.
    """
    check_request_id(request_id)
    content = hashlib.sha256(b"equipoise request v1\n")
    for part in (method, *parts):
        encoded = part.encode() if isinstance(part, str) else part
        content.update(len(encoded).to_bytes(8, "big") + encoded)
    return Request(caller, request_id, method, content.digest())


def check_request_id(request_id: str) -> None:
    """Raise `InvalidArgument` unless it has 1 to 128 characters."""
    if not request_id or len(request_id) > MAX_ID:
        raise InvalidArgument("request_id", f"must have 1 to {MAX_ID} characters")


def stored_response(connection: Connection, request: Request) -> str | None:
    """Return the answer kept for this request, or None if it is new. Raises `AlreadyExists` for other content."""
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


def store_response(connection: Connection, request: Request, answer: str, time: datetime) -> None:
    """Keep the first answer, in the transaction that carries the request out, and forget the caller's oldest one.

    After a crash before the commit nothing has happened, and the same request will be carried out.
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
    """Return the latest time of the caller's requests, including forgotten ones; None without requests."""
    latest = connection.execute(LAST_TIME, {"name": caller}).scalar_one_or_none()
    return None if latest is None else from_microseconds(latest)


def count_requests(connection: Connection) -> int:
    """Return the number of requests that were ever carried out. Forgetting requests does not reduce it."""
    return int(connection.execute(select(func.coalesce(func.sum(callers.c.requests), 0))).scalar_one())


def outlived(connection: Connection, now: datetime) -> datetime | None:
    """Return the time up to which requests, older than `REQUEST_LIFE`, are to be forgotten next; None for none."""
    before = to_microseconds(now - REQUEST_LIFE)
    oldest = select(requests.c.time).where(requests.c.time < before).order_by(requests.c.time)
    last = connection.execute(select(func.max(oldest.limit(_FORGOTTEN_AT_ONCE).subquery().c.time))).scalar_one()
    return None if last is None else from_microseconds(last)


def forget_until(connection: Connection, time: datetime) -> None:
    """Forget the requests up to a time, including that time."""
    connection.execute(requests.delete().where(requests.c.time <= to_microseconds(time)))


def forget_caller(connection: Connection, caller: str) -> None:
    """Forget the requests of a deleted caller. Their number and last time stay."""
    connection.execute(requests.delete().where(requests.c.caller == caller))


def _count(connection: Connection, caller: str, time: int) -> int:
    """Count one more request of a caller, and return its number."""
    row = connection.execute(
        select(callers.c.requests, callers.c.last_time).where(callers.c.caller == caller)
    ).first()
    if row is None:
        connection.execute(callers.insert().values(caller=caller, requests=1, last_time=time))
        return 1
    values = {"requests": row.requests + 1, "last_time": max(row.last_time, time)}
    connection.execute(callers.update().where(callers.c.caller == caller).values(values))
    return int(row.requests) + 1
