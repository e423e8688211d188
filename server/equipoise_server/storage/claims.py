"""Claims of rounds: which server runs which round, if several servers share a store.

A claim is a database lock, which lasts as long as the connection that took it. However a server dies, its claims
become free, and another server runs its rounds again. Claims only save work: should two servers ever run one round,
both compute the same bytes, and the store lets only one run be released.
"""

from __future__ import annotations

import hashlib
import os
import socket
import threading
from contextlib import suppress
from typing import Protocol

from sqlalchemy import Connection, TextClause, create_engine, text
from sqlalchemy.engine import URL
from sqlalchemy.exc import DBAPIError
from sqlalchemy.pool import NullPool

from equipoise_server.storage.failures import translated
from equipoise_server.storage.postgresql import CONNECTING, KEEPALIVES

MAX_NAME = 63  # bytes that PostgreSQL keeps of a connection's name

_TRY = text("SELECT pg_try_advisory_lock(:key)")
_FREE = text("SELECT pg_advisory_unlock(:key)")
_PING = text("SELECT :key")
_HOLDER = text(
    "SELECT activity.application_name FROM pg_locks AS lock JOIN pg_stat_activity AS activity USING (pid) "
    "WHERE lock.locktype = 'advisory' AND lock.granted AND lock.objsubid = 1 AND lock.pid <> pg_backend_pid() "
    "AND lock.database = (SELECT oid FROM pg_database WHERE datname = current_database()) "
    "AND (CAST(lock.classid AS bigint) << 32) | CAST(lock.objid AS bigint) = :key"
)


class Claims(Protocol):
    """The rounds that this server has claimed. Safe to use from several threads."""

    def take(self, round_id: str) -> bool:
        """Claim a round, and return whether it is this server's now. Raises `Unavailable`."""

    def give_back(self, round_id: str) -> None:
        """Give a claim back. Does nothing if the round is not this server's."""

    def holder(self, round_id: str) -> str:
        """Return the other server that has claimed the round; empty if none has. Raises `Unavailable`."""

    def lost(self) -> set[str]:
        """Return the rounds that another server has claimed since this server's connection broke."""

    def close(self) -> None:
        """Give all claims back."""


class SoleClaims:
    """The claims of a server that alone uses its store."""

    def take(self, round_id: str) -> bool:  # noqa: ARG002
        return True

    def give_back(self, round_id: str) -> None:
        pass

    def holder(self, round_id: str) -> str:  # noqa: ARG002
        return ""

    def lost(self) -> set[str]:
        return set()

    def close(self) -> None:
        pass


class SharedClaims:
    """The claims of one of several servers on one PostgreSQL: advisory locks of a separate connection."""

    def __init__(self, url: URL) -> None:
        name = f"process {os.getpid()} on {socket.gethostname()}"[:MAX_NAME]
        self._engine = create_engine(
            url,
            poolclass=NullPool,
            isolation_level="AUTOCOMMIT",
            connect_args={**CONNECTING, "application_name": name},
        )
        self._connection: Connection | None = None
        self._mine: set[str] = set()
        self._gone: set[str] = set()
        self._turn = threading.Lock()

    def take(self, round_id: str) -> bool:
        with self._turn, translated():
            if round_id not in self._mine and self._ask(_TRY, round_id):
                self._mine.add(round_id)
            return round_id in self._mine

    def give_back(self, round_id: str) -> None:
        with self._turn:
            if round_id in self._mine:
                self._mine.remove(round_id)
                # If the connection has broken, the lock is free already.
                with suppress(DBAPIError):
                    self._ask(_FREE, round_id)

    def holder(self, round_id: str) -> str:
        with self._turn, translated():
            return str(self._ask(_HOLDER, round_id) or "")

    def lost(self) -> set[str]:
        with self._turn, translated():
            if self._mine:
                try:
                    self._ask(_PING, "")
                except DBAPIError:
                    self._ask(_PING, "")
            gone, self._gone = self._gone, set()
            return gone

    def close(self) -> None:
        with self._turn:
            self._mine.clear()
            if self._connection is not None:
                # The database frees the locks with the connection, too, but a moment later.
                with suppress(DBAPIError):
                    self._connection.exec_driver_sql("SELECT pg_advisory_unlock_all()")
            self._disconnect()

    def _ask(self, question: TextClause, round_id: str) -> object:
        try:
            return self._connected().execute(question, {"key": _key(round_id)}).scalar()
        except DBAPIError:
            self._disconnect()
            raise

    def _connected(self) -> Connection:
        """Return the connection. A new one claims the rounds of a broken one again, unless others have them."""
        if self._connection is None:
            self._connection = self._engine.connect()
            self._connection.exec_driver_sql(KEEPALIVES)
            taken = [self._connection.execute(_TRY, {"key": _key(round_id)}).scalar() for round_id in self._mine]
            gone = {round_id for round_id, mine in zip(self._mine, taken, strict=True) if not mine}
            self._mine -= gone
            self._gone |= gone
        return self._connection

    def _disconnect(self) -> None:
        if self._connection is not None:
            self._connection.invalidate()
            self._connection.close()
            self._connection = None


def _key(round_id: str) -> int:
    """Return the 64-bit number of a round's lock: PostgreSQL names advisory locks by number."""
    return int.from_bytes(hashlib.sha256(round_id.encode()).digest()[:8], "big", signed=True)
