"""Remembered requests: the same request again gets the first answer, another one under its id is refused.

A `request_id` belongs to its caller: two callers may use the same one and never notice each other.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection, func, select

from equipoise.errors import AlreadyExists, InvalidArgument
from equipoise.model.times import from_microseconds, to_microseconds
from equipoise_server.storage.tables.identity import requests

MAX_ID = 128


@dataclass(frozen=True)
class Request:
    """A request that must not be carried out twice. `content` is a digest of all it asks for."""

    caller: str
    request_id: str
    method: str
    content: bytes


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
    """Keep the first answer, in the transaction that carries the request out.

    A crash before the commit means: nothing happened, and the same request will be carried out.
    """
    connection.execute(
        requests.insert().values(
            caller=request.caller,
            request_id=request.request_id,
            method=request.method,
            content=request.content,
            answer=answer,
            time=to_microseconds(time),
        )
    )


def last_time(connection: Connection, caller: str) -> datetime | None:
    """The time of the caller's newest request that is kept; None without one."""
    newest = connection.execute(select(func.max(requests.c.time)).where(requests.c.caller == caller)).scalar_one()
    return None if newest is None else from_microseconds(newest)


def remembered(connection: Connection) -> int:
    """How many requests are kept. None is ever removed."""
    return int(connection.execute(select(func.count()).select_from(requests)).scalar_one())
