"""The loops and workers of the open sessions that this server answers."""

from __future__ import annotations

import threading
import time
from weakref import WeakValueDictionary

import structlog
from sqlalchemy import Connection, select

from equipoise.errors import DataLoss, EquipoiseError, Unavailable
from equipoise.model.rounds import RoundState
from equipoise_server.ledger.rollback_guard import Guard
from equipoise_server.rounds.clock_watch import UNTRUSTED
from equipoise_server.rounds.context import Context
from equipoise_server.rounds.store.rounds import IS_GRANT, IS_SESSION, read_round, session_from_json
from equipoise_server.sessions.answer_journal import AnswerJournal
from equipoise_server.sessions.grant_tables import GrantTables
from equipoise_server.sessions.open_session import by_turns, is_grant, read_open_session
from equipoise_server.sessions.session_loop import SessionLoop
from equipoise_server.storage.tables.round import rounds
from equipoise_server.workers.session_process import NOT_NOW

RETRY_SECONDS = 30.0
STOPPING = "the server is stopping"
MAX_WORKERS = 16  # each holds the counts of its dataset's universe
MAX_GRANTS = 64  # open at once, which operators see: each has a worker of its own once its analyst asks
OTHER_SERVER = "the session is answered by another server"

_GRANTS = select(rounds.c.id).where(rounds.c.state == RoundState.OPEN.value, IS_GRANT).order_by(rounds.c.id)

log = structlog.get_logger(__name__)


class SessionLoops:
    """The loops of the sessions that this server has claimed. Safe to use from several threads.

    A session by turns has a worker from its opening on, so the time of an answer says nothing of other analysts. A
    session that answers at once has a worker from the first attachment on.
    """

    def __init__(self, context: Context, guard: Guard, max_workers: int = MAX_WORKERS) -> None:
        self._context = context
        self._guard = guard
        self._max_workers = max_workers
        self._tables = GrantTables(context)
        self._claims = context.store.claims()
        self._lock = threading.Lock()
        self._loops: dict[str, SessionLoop] = {}
        self._gates: WeakValueDictionary[str, threading.Lock] = WeakValueDictionary()  # one start of each at a time
        self._beginning: set[str] = set()  # sessions that answer at once, for which there was room
        self._not_before: dict[str, float] = {}  # when a worker that ended may be started again without a caller
        self._turns: dict[str, int] = {}  # seconds of a turn, by session, of the sessions that were open last
        self._stopped = False

    def loop(self, session_id: str) -> SessionLoop:
        """Return the loop of an open session, and start one if there is none.

        All shares are read only where a loop starts, so a look-up takes as long for few analysts as for many.

        Raises:
            Unavailable: the server is stopping, has no room, does not trust its clock, or cannot start the session,
                or another server has it.
            DataLoss: the session's stored answers or its seed are damaged.
        """
        with self._lock:
            gate = self._gates.setdefault(session_id, threading.Lock())
        # Others do not wait meanwhile: how long it takes to read what was answered depends on what was asked.
        with gate:
            with self._lock:
                known = self._loops.get(session_id)
            if known is not None and isinstance(known.problem, DataLoss):
                raise DataLoss(known.problem.message)
            if known is not None and known.problem is None:
                return known
            return self._begin(session_id)

    def _begin(self, session_id: str) -> SessionLoop:
        """Start the loop of a session that has none. Raises as `loop` does."""
        with self._context.store.read() as connection:
            record = read_round(connection, session_id)
            if self._context.watch.problem(connection) is not None:
                raise Unavailable(UNTRUSTED)
        with self._lock:
            if self._stopped:
                raise Unavailable(STOPPING)
            if not (by_turns(record) or is_grant(record)):
                self._make_room()
                self._beginning.add(session_id)
            if not self._claims.take(_claim(session_id)):
                self._beginning.discard(session_id)
                raise Unavailable(OTHER_SERVER)
        try:
            # The server that opened the session, or answered in it, may have died before it advanced the guard.
            self._guard.advance(self._context.store)
            table = self._tables.table(record) if is_grant(record) else None
            session = read_open_session(self._context, record, table)
            journal = AnswerJournal(session, self._context, self._guard.count)
            started = SessionLoop(session, journal, self._context.watch.now, self._context.worker_idle_seconds)
            stopping = self._add(session_id, started)
        finally:
            with self._lock:
                self._beginning.discard(session_id)
        if stopping:
            self._end(session_id, Unavailable(STOPPING))
            raise Unavailable(STOPPING)
        return started

    def _add(self, session_id: str, loop: SessionLoop) -> bool:
        """Add a loop. Return whether it has to end, as the server is stopping."""
        with self._lock:
            self._loops[session_id] = loop
            return self._stopped

    def has_room_for_turns(self) -> bool:
        """Return whether the server has room for one more session by turns. Other sessions do not count."""
        with self._context.store.read() as connection:
            return sum(seconds > 0 for seconds in self._open_sessions(connection).values()) < self._max_workers

    def has_room_for_grants(self) -> bool:
        """Return whether the server has room for one more grant. Other sessions do not count.

        So a grant that is open never waits for a worker because of what other analysts do.
        """
        with self._context.store.read() as connection:
            return len(connection.execute(_GRANTS).all()) < MAX_GRANTS

    def look_after(self) -> None:
        """Start and end workers as the store requires. To be called about twice a second. Raises `Unavailable`."""
        with self._context.store.read() as connection:
            going, nonces = self._open_sessions(connection), _nonces(connection)
            trusted = self._context.watch.problem(connection) is None
            grants = connection.execute(_GRANTS).scalars().all()
        self._tables.look_after(grants)
        lost = self._claims.lost()
        with self._lock:
            if not trusted:
                self._not_before.clear()  # what ends for the clock begins again with it
            over = [session_id for session_id in self._loops if session_id not in going]
            gone = [session_id for session_id in self._loops if _claim(session_id) in lost]
            stale = [
                session_id
                for session_id, loop in self._loops.items()
                if loop.problem is None and loop.audit_nonce != nonces.get(session_id, loop.audit_nonce)
            ]
        for session_id in over:
            self._end(session_id, None)
        for session_id in gone:
            self._end(session_id, Unavailable(OTHER_SERVER))
        for session_id in stale:
            # Attached clients attach again and are answered under the nonce, whether or not anybody has asked.
            self._end(session_id, Unavailable(NOT_NOW))
            self._not_before.pop(session_id, None)
        for session_id, turn_seconds in going.items():
            if turn_seconds and trusted:
                self._start_by_turns(session_id)

    def stop(self) -> None:
        """End every worker. The store does not change."""
        with self._lock:
            self._stopped = True
            running = list(self._loops)
        for session_id in running:
            self._end(session_id, Unavailable(STOPPING))
        self._tables.close()
        self._claims.close()

    def process_id(self, session_id: str) -> int | None:
        """Return the process id of the session's worker; None if this server has none."""
        with self._lock:
            known = self._loops.get(session_id)
            return None if known is None or known.problem is not None else known.process_id

    def _start_by_turns(self, session_id: str) -> None:
        """Start the worker of a session by turns. A failed start is tried again after 30 seconds."""
        with self._lock:
            known = self._loops.get(session_id)
            waits = time.monotonic() < self._not_before.get(session_id, 0.0)
            if waits or (known is not None and known.problem is None):
                return
            if not self._claims.take(_claim(session_id)):
                return  # another server has claimed the session, and lives
            self._not_before[session_id] = time.monotonic() + RETRY_SECONDS
        try:
            self.loop(session_id)
        except EquipoiseError as error:
            log.error("session_not_started", session_id=session_id, problem=error.message)

    def _open_sessions(self, connection: Connection) -> dict[str, int]:
        """Return the seconds of a turn of each open session, 0 for those that answer at once.

        Terms may be long, so the terms of a session are read only once.
        """
        query = select(rounds.c.id).where(rounds.c.state == RoundState.OPEN.value, IS_SESSION)
        known, going = self._turns, {}
        for session_id in connection.execute(query).scalars():
            if (seconds := known.get(session_id)) is None:
                terms = connection.execute(select(rounds.c.terms).where(rounds.c.id == session_id)).scalar_one()
                session = session_from_json(terms)
                seconds = 0 if session is None else session.turn_seconds
            going[session_id] = seconds
        self._turns = going
        return going

    def _make_room(self) -> None:
        """Make room for one more session that answers at once by ending an idle one. Raises `Unavailable`."""
        at_once = {
            session_id: loop
            for session_id, loop in self._loops.items()
            if loop.problem is None and not (loop.by_turns or loop.of_grant)
        }
        if len(at_once.keys() | self._beginning) < self._max_workers:
            return
        for session_id, loop in at_once.items():
            if loop.idle:
                del self._loops[session_id]
                loop.end(Unavailable(NOT_NOW))
                self._claims.give_back(_claim(session_id))
                return
        raise Unavailable(NOT_NOW)

    def _end(self, session_id: str, problem: EquipoiseError | None) -> None:
        with self._lock:
            loop = self._loops.pop(session_id, None)
        if loop is not None:
            loop.end(problem)
            self._claims.give_back(_claim(session_id))


def _nonces(connection: Connection) -> dict[str, bytes]:
    """Return the auditors' nonces of those open sessions that have one, by session."""
    query = select(rounds.c.id, rounds.c.audit_nonce).where(rounds.c.state == RoundState.OPEN.value, IS_SESSION)
    rows = connection.execute(query.where(rounds.c.audit_nonce.is_not(None)))
    return {row.id: row.audit_nonce for row in rows}


def _claim(session_id: str) -> str:
    """Return the name under which a session is claimed. The session's run is claimed under another name."""
    return f"session {session_id}"
