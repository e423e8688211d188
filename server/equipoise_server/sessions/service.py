"""All that can be done with sessions, for whoever serves them. Synchronous and thread-safe."""

from __future__ import annotations

import threading
import time
from datetime import timedelta

import structlog
from sqlalchemy import Connection, select

from equipoise.errors import (
    DataLoss,
    EquipoiseError,
    InvalidArgument,
    NotFound,
    OutOfRange,
    Unavailable,
    WrongState,
)
from equipoise.model.rounds import Ending, Progress, RoundState, Terms
from equipoise.model.times import to_microseconds
from equipoise.records.record import SALT_BYTES
from equipoise_server.computation.session import SessionJob
from equipoise_server.ledger.rollback_guard import Guard
from equipoise_server.rounds.analyst_views import AnalystViews
from equipoise_server.rounds.context import Context
from equipoise_server.rounds.lifecycle import Lifecycle
from equipoise_server.rounds.opening import Opening
from equipoise_server.rounds.records import RoundRecord
from equipoise_server.rounds.round_job import read_seed
from equipoise_server.rounds.store.results import kept
from equipoise_server.rounds.store.rounds import (
    IS_SESSION,
    NO_ROUND,
    read_dataset,
    read_round,
    read_share,
    session_from_json,
)
from equipoise_server.rounds.store.step_records import registered_digest
from equipoise_server.rounds.terms.checks import setting_of
from equipoise_server.sessions import answer_store
from equipoise_server.sessions.attachments import Attachment
from equipoise_server.sessions.session_loop import OpenSession, SessionLoop
from equipoise_server.sessions.turns import AnswerSchedule, Immediate, TurnBased
from equipoise_server.storage.tables import asked, rounds
from equipoise_server.workers.session_process import NOT_NOW

RETRY_SECONDS = 30.0
STOPPING = "the server is stopping"
MAX_WORKERS = 16  # each holds the counts of its dataset's universe
NO_ROOM = "as many sessions by turns are open as a server has room for; close one first"
NO_LONGER_KEPT = "the session's answers are no longer kept"
OTHER_SERVER = "the session is answered by another server"
UNPROTECTED = (
    "the session does not protect you from its other analysts: say that you know with accept_unprotected=True, "
    "or --accept-unprotected"
)

log = structlog.get_logger(__name__)


class Sessions:
    """The service, beside the rounds of the same server. `caller` is the operator's name.

    Sessions by turns have a worker from their opening on, so that how soon an answer comes says nothing of others;
    those that answer at once have one from when somebody first attaches.
    """

    def __init__(
        self,
        context: Context,
        opening: Opening,
        lifecycle: Lifecycle,
        guard: Guard,
        most_workers: int = MAX_WORKERS,
    ) -> None:
        self._base = context
        self._opening = opening
        self._lifecycle = lifecycle
        self._guard = guard
        self._most = most_workers
        self._claims = self._base.store.claims()
        self._views = AnalystViews(context.store, context.clock, context.signer, context.deployment)
        self._lock = threading.Lock()
        self._conductors: dict[str, SessionLoop] = {}
        self._not_before: dict[str, float] = {}  # when a worker that ended may be started again, by itself
        self._turns: dict[str, int] = {}  # of the sessions that were open when that was last looked at
        self._stopped = False

    # Operators

    def open(self, terms: Terms, request_id: str, caller: str = "") -> RoundRecord:
        """Open a session, and charge both budgets. Raises as `Opening.open` does."""
        if terms.session is None:
            raise InvalidArgument("session", "is missing")
        if terms.session.turn_seconds and not self._has_room_for_turns():
            # Before anything is charged: its turns would pass unanswered.
            raise WrongState(NO_ROOM)
        opened = self._opening.open(terms, request_id, caller)
        self.look_after()
        return opened

    def close(self, session_id: str, request_id: str, caller: str = "") -> RoundRecord:
        """Seal a session: no more statements are answered. Raises as `Lifecycle.seal`, `NotFound` for a round."""
        with self._base.store.read() as connection:
            _session(read_round(connection, session_id))
        sealed = self._lifecycle.seal(session_id, request_id, caller)
        self.look_after()
        return sealed

    def progress(self, record: RoundRecord) -> Progress:
        """How many statements of an open session have answers, of those its shares allow; for operators."""
        with self._base.store.read() as connection:
            _, answered = answer_store.standing(connection, record.id)
        return Progress(
            "answering", answered, sum(share.statements for share in record.terms.shares), 0.0, False, 0
        )

    # Analysts

    def list_for_analyst(
        self, analyst: str, page_size: int = 0, page_token: str = ""
    ) -> tuple[list[RoundRecord], str]:
        """The sessions in which the analyst has a share, newest first, as it may see them."""
        return self._views.page(analyst, page_size, page_token, IS_SESSION)

    def answered(self, analyst: str, session_id: str) -> int:
        """How many answers the analyst can read: those of its own that are due, so others do not show in it."""
        mine = (asked.c.round_id == session_id) & (asked.c.analyst == analyst)
        due = asked.c.due_time <= to_microseconds(self._base.clock())
        with self._base.store.read() as connection:
            newest = select(asked.c.sequence).where(mine & due).order_by(asked.c.sequence.desc()).limit(1)
            return int(connection.execute(newest).scalar() or 0)

    def attach(
        self, analyst: str, session_id: str, after_sequence: int, salt: bytes, accept_unprotected: bool
    ) -> Attachment:
        """Attach a stream of the analyst's; an earlier one of the same session ends.

        Raises `NotFound` without a share, `InvalidArgument` for a malformed salt, `WrongState` where the session
        protects no analysts and that is not accepted, and where its answers are no longer kept, `OutOfRange` beyond
        the answers that there are, `Unavailable` where this server cannot answer the session, `DataLoss`.
        """
        with self._base.store.read() as connection:
            read_share(connection, session_id, analyst)
            record = _session(read_round(connection, session_id))
            expired = record.state is RoundState.RELEASED and not kept(connection, session_id)
        if len(salt) != SALT_BYTES:
            raise InvalidArgument("commitment_salt", f"must have {SALT_BYTES} random bytes")
        if record.terms.analyst_budget is None and not accept_unprotected:
            raise WrongState(UNPROTECTED)
        if expired:
            raise WrongState(NO_LONGER_KEPT)
        if record.state is RoundState.OPEN:
            salt = self._salt(session_id, analyst, salt)
            conductor: SessionLoop | None = self._conductor(record)
        else:
            conductor = None
        with self._base.store.read() as connection:
            salt = answer_store.salt_in_force(connection, session_id, analyst) or salt
            last = answer_store.last_of(connection, session_id, analyst, self._base.clock())
        answered = 0 if last is None else last.sequence
        if not 0 <= after_sequence <= answered:
            raise OutOfRange(f"after: the answers end at {answered:,}, {after_sequence:,} is beyond them")
        return Attachment(self._base, session_id, analyst, answered, salt, conductor, record.terms.close_time)

    # The service itself

    def look_after(self) -> None:
        """Start and end workers as the store says; to be called about twice a second. Raises `Unavailable`."""
        with self._base.store.read() as connection:
            going = self._going(connection)
        lost = self._claims.lost()
        with self._lock:
            over = [each for each in self._conductors if each not in going]
            gone = [each for each in self._conductors if _claim(each) in lost]
        for session_id in over:
            self._end(session_id, None)
        for session_id in gone:
            self._end(session_id, Unavailable(OTHER_SERVER))
        for session_id, turn_seconds in going.items():
            if turn_seconds:
                self._start_waiting(session_id)

    def stop(self) -> None:
        """End every worker. Sessions stay as they are in the store."""
        with self._lock:
            self._stopped = True
            running = list(self._conductors)
        for session_id in running:
            self._end(session_id, Unavailable(STOPPING))
        self._claims.close()

    def process_id(self, session_id: str) -> int | None:
        """The process id of the session's worker, where this server has one."""
        with self._lock:
            conductor = self._conductors.get(session_id)
            return None if conductor is None or conductor.ended else conductor.process_id

    def _start_waiting(self, session_id: str) -> None:
        """Start the worker of a session by turns, again from time to time where it cannot be started."""
        with self._lock:
            known = self._conductors.get(session_id)
            waits = time.monotonic() < self._not_before.get(session_id, 0.0)
            if waits or (known is not None and not known.ended):
                return
            if not self._claims.take(_claim(session_id)):
                return  # another server's, as long as that lives
            self._not_before[session_id] = time.monotonic() + RETRY_SECONDS
        try:
            with self._base.store.read() as connection:
                record = read_round(connection, session_id)
            self._conductor(record)
        except EquipoiseError as error:
            log.error("session_not_started", session_id=session_id, problem=error.message)

    def _conductor(self, record: RoundRecord) -> SessionLoop:
        """The session's conductor on this server, started where it has none."""
        with self._lock:
            known = self._conductors.get(record.id)
            if known is not None and isinstance(known.problem, DataLoss):
                raise DataLoss(known.problem.message)
            if known is not None and not known.ended:
                return known
            if self._stopped:
                raise Unavailable(STOPPING)
            if not _by_turns(record):
                self._make_room()
            if not self._claims.take(_claim(record.id)):
                raise Unavailable(OTHER_SERVER)
            # Whoever has opened it, or answered in it, may have died before the guard knew.
            self._guard.advance(self._base.store)
            conductor = SessionLoop(self._open_session(record), self._base, self._guard.count)
            self._conductors[record.id] = conductor
            return conductor

    def _has_room_for_turns(self) -> bool:
        """Whether one more session by turns can be opened. Other sessions take none of their room."""
        with self._base.store.read() as connection:
            return sum(seconds > 0 for seconds in self._going(connection).values()) < self._most

    def _going(self, connection: Connection) -> dict[str, int]:
        """The open sessions, and how long their turns take. Terms may be long, so each one's are read once."""
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
        """See that one more worker that answers at once may be started: one that nobody uses may go."""
        going = {
            each: conductor
            for each, conductor in self._conductors.items()
            if not (conductor.ended or conductor.by_turns)
        }
        if len(going) < self._most:
            return
        for session_id, conductor in going.items():
            if conductor.idle:
                del self._conductors[session_id]
                conductor.end(Unavailable(NOT_NOW))
                self._claims.give_back(_claim(session_id))
                return
        raise Unavailable(NOT_NOW)

    def _end(self, session_id: str, problem: EquipoiseError | None) -> None:
        with self._lock:
            conductor = self._conductors.pop(session_id, None)
        if conductor is not None:
            conductor.end(problem)
            self._claims.give_back(_claim(session_id))

    def _salt(self, session_id: str, analyst: str, salt: bytes) -> bytes:
        """The salt in force, which is this one if there was none."""
        with self._base.store.read() as connection:
            known = answer_store.salt_in_force(connection, session_id, analyst)
        if known is not None:
            return known
        with self._base.store.write() as connection:
            return answer_store.keep_salt(connection, session_id, analyst, salt)

    def _open_session(self, record: RoundRecord) -> OpenSession:
        try:
            with self._base.store.read() as connection:
                dataset = read_dataset(connection, record.terms.dataset)
                seed = read_seed(connection, record, self._base.storage_key)
                digest = registered_digest(connection, dataset.name)
            source = self._base.tables.source(dataset.source)
        except InvalidArgument as error:
            log.error("session_not_started", session_id=record.id, problem=error.message)
            raise Unavailable(NOT_NOW) from None
        assert record.terms.session is not None
        job = SessionJob(
            session_id=record.id,
            source=source,
            schema=dataset.schema.to_json(),
            setting=setting_of(record.terms, record.records, record.universe_size, dataset.schema.sizes),
            plan=record.plan,
            seed=seed,
            data_digest=digest,
            stops=record.terms.session.ending is Ending.STOP,
        )
        return OpenSession(record, dataset.schema, job, pace_of(record))


def _by_turns(record: RoundRecord) -> bool:
    return record.terms.session is not None and record.terms.session.turn_seconds > 0


def pace_of(record: RoundRecord) -> AnswerSchedule:
    """How a session's statements are taken."""
    session, close_time = record.terms.session, record.terms.close_time
    assert session is not None
    if not session.turn_seconds:
        return Immediate(session.length)
    assert close_time is not None
    turn = timedelta(seconds=session.turn_seconds)
    return TurnBased(record.open_time, turn, (close_time - record.open_time) // turn, len(record.terms.shares))


def _session(record: RoundRecord) -> RoundRecord:
    if record.terms.session is None:
        raise NotFound(NO_ROUND)
    return record


def _claim(session_id: str) -> str:
    """Under which it is claimed: by another name than its run, which another part of the server claims."""
    return f"session {session_id}"
