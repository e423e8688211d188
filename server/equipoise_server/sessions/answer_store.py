"""The rows of a session's statements and answers.

Every function works in the transaction of the connection that it is given.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, Row, bindparam, func, select

from equipoise.model.times import from_microseconds, to_microseconds
from equipoise_server.storage.tables.round import rounds
from equipoise_server.storage.tables.session import asked, attached, sessions

ROWS_AT_ONCE = 32  # a row may hold a megabyte of cells
ALWAYS = (1 << 63) - 1  # microseconds: after every time that is stored

# Each answer or attachment needs these. They are built once, because building them takes longer than SQLite's work.
_STANDING = (
    select(rounds.c.state, sessions.c.answered)
    .join_from(sessions, rounds, rounds.c.id == sessions.c.round_id)
    .where(sessions.c.round_id == bindparam("session"))
)
_OWN = (asked.c.round_id == bindparam("session")) & (asked.c.analyst == bindparam("of"))
_NEWEST = select(asked).where(_OWN).order_by(asked.c.sequence.desc()).limit(1)
_LAST_DUE = (
    select(asked.c.sequence)
    .where(_OWN, asked.c.due_time <= bindparam("now"))
    .order_by(asked.c.sequence.desc())
    .limit(1)
)
_SIZE = select(func.sum(func.length(asked.c.statement))).where(_OWN)
_SPENT = select(func.sum(asked.c.cost)).where(asked.c.round_id == bindparam("session"))
_SALT = select(attached.c.salt).where(
    attached.c.round_id == bindparam("session"), attached.c.analyst == bindparam("of")
)
_INSERTED = asked.insert()
_COUNTED = sessions.update().where(sessions.c.round_id == bindparam("session")).values(answered=bindparam("now"))


@dataclass(frozen=True)
class StoredAnswer:
    """A statement with its stored answer. `due` is the time from which the answer may be sent.

    `sequence` counts the analyst's statements from 1; `slot` is the statement's place in the session's one order.
    `chunk` is the answer (`equipoise.wire.results.answers_to_chunk`); `envelope` is the signed receipt of all the
    analyst's answers up to this one (`equipoise.records.receipts`); `chain` is the hash that the receipt signs.
    `cost`: what it has cost of a grant, in units of 10^-12 of rho; 0 in any other session.
    """

    analyst: str
    sequence: int
    slot: int
    due: datetime
    statement: bytes
    chunk: bytes
    envelope: bytes
    chain: bytes
    cost: int = 0


def salt_in_force(connection: Connection, session_id: str, analyst: str) -> bytes | None:
    """Return the salt with which `analyst` attached to `session_id` first; None if the analyst never attached."""
    salt: bytes | None = connection.execute(_SALT, {"session": session_id, "of": analyst}).scalar()
    return salt


def keep_salt(connection: Connection, session_id: str, analyst: str, salt: bytes) -> bytes:
    """Store the salt if the analyst has none, and return the salt in force.

    Args:
        connection: in the transaction that attaches the analyst.
        session_id: the session.
        analyst: the analyst's name.
        salt: the one that the analyst has drawn now.
    """
    known = salt_in_force(connection, session_id, analyst)
    if known is None:
        connection.execute(attached.insert().values(round_id=session_id, analyst=analyst, salt=salt))
    return known or salt


def standing(connection: Connection, session_id: str) -> tuple[str, int]:
    """Return the session's state, and the number of its statements that were ever answered."""
    row = connection.execute(_STANDING, {"session": session_id}).one()
    return row.state, row.answered


def insert(connection: Connection, session_id: str, before: int, answers: Sequence[StoredAnswer]) -> None:
    """Store the next answers of a session.

    Args:
        connection: In a transaction.
        session_id: The session.
        before: How many answers it has.
        answers: The next ones, in the session's order.
    """
    rows = [
        {
            "round_id": session_id,
            "analyst": each.analyst,
            "sequence": each.sequence,
            "slot": each.slot,
            "due_time": to_microseconds(each.due),
            "statement": each.statement,
            "chunk": each.chunk,
            "envelope": each.envelope,
            "chain": each.chain,
            "cost": each.cost,
        }
        for each in answers
    ]
    connection.execute(_INSERTED, rows)
    connection.execute(_COUNTED, {"session": session_id, "now": before + len(rows)})


def last_of(connection: Connection, session_id: str, analyst: str) -> StoredAnswer | None:
    """Return the analyst's newest answer, also one that is not due yet; None without one.

    Args:
        connection: to the store.
        session_id: the session.
        analyst: the analyst's name.
    """
    row = connection.execute(_NEWEST, {"session": session_id, "of": analyst}).first()
    return None if row is None else _answer(row)


def count_due(connection: Connection, session_id: str, analyst: str, now: datetime | None) -> int:
    """Return how many of the analyst's answers are due.

    Args:
        connection: to the store.
        session_id: the session.
        analyst: the analyst's name.
        now: the time by which they are due; None: all that are stored.
    """
    at = {"session": session_id, "of": analyst, "now": ALWAYS if now is None else to_microseconds(now)}
    return int(connection.execute(_LAST_DUE, at).scalar() or 0)


def size_of(connection: Connection, session_id: str, analyst: str) -> int:
    """Return the total size of the statements of `analyst` that were answered in `session_id`, in bytes."""
    return int(connection.execute(_SIZE, {"session": session_id, "of": analyst}).scalar() or 0)


def answer_to(connection: Connection, session_id: str, analyst: str, sequence: int) -> StoredAnswer | None:
    """Return the answer to one statement of the analyst; None without one.

    Args:
        connection: to the store.
        session_id: the session.
        analyst: the analyst's name.
        sequence: the statement's number among the analyst's, from 1.
    """
    own = (asked.c.round_id == session_id) & (asked.c.analyst == analyst) & (asked.c.sequence == sequence)
    row = connection.execute(select(asked).where(own)).first()
    return None if row is None else _answer(row)


def due_after(
    connection: Connection, session_id: str, analyst: str, after: int, limit: int, now: datetime | None = None
) -> list[StoredAnswer]:
    """Return some of an analyst's answers, in order.

    Args:
        connection: Reads the store.
        session_id: The session.
        analyst: Whose answers.
        after: The sequence number that the first one follows.
        limit: The most that are returned.
        now: Leaves out what is due later; None: all are returned.
    """
    own = (asked.c.round_id == session_id) & (asked.c.analyst == analyst) & (asked.c.sequence > after)
    query = select(asked).where(own)
    if now is not None:
        query = query.where(asked.c.due_time <= to_microseconds(now))
    return [_answer(row) for row in connection.execute(query.order_by(asked.c.sequence).limit(limit))]


def from_slot(connection: Connection, session_id: str, slot: int) -> list[StoredAnswer]:
    """Return the next answers in `session_id` from `slot` on, in order, at most 32; none if there are no more."""
    query = select(asked).where(asked.c.round_id == session_id, asked.c.slot >= slot)
    return [_answer(row) for row in connection.execute(query.order_by(asked.c.slot).limit(ROWS_AT_ONCE))]


def costs(connection: Connection, session_id: str) -> Iterator[tuple[bytes, int]]:
    """Yield each statement in `session_id` with what it has cost of a grant, in the order of slots."""
    query = select(asked.c.statement, asked.c.cost).where(asked.c.round_id == session_id).order_by(asked.c.slot)
    for row in connection.execute(query, execution_options={"yield_per": 1000}):
        yield row.statement, row.cost


def spent(connection: Connection, session_id: str) -> int:
    """Return what all statements in `session_id` have cost of a grant, in units of 10^-12 of rho."""
    return int(connection.execute(_SPENT, {"session": session_id}).scalar() or 0)


def count_slots(connection: Connection, session_id: str) -> int:
    """Return one more than the last slot that has an answer; 0 without answers."""
    last = connection.execute(select(func.max(asked.c.slot)).where(asked.c.round_id == session_id)).scalar()
    return 0 if last is None else int(last) + 1


def _answer(row: Row[Any]) -> StoredAnswer:
    return StoredAnswer(
        row.analyst,
        row.sequence,
        row.slot,
        from_microseconds(row.due_time),
        row.statement,
        row.chunk,
        row.envelope,
        row.chain,
        row.cost,
    )
