"""What operators and analysts do with sessions, beside the rounds of the same server. Synchronous, thread-safe."""

from __future__ import annotations

from sqlalchemy import select

from equipoise.errors import InvalidArgument, NotFound, OutOfRange, WrongState
from equipoise.model.rounds import Progress, RoundState, Terms
from equipoise.model.times import to_microseconds
from equipoise.records.record import SALT_BYTES
from equipoise_server.ledger.rollback_guard import Guard
from equipoise_server.rounds.analyst_views import AnalystViews
from equipoise_server.rounds.context import Context
from equipoise_server.rounds.lifecycle import Lifecycle
from equipoise_server.rounds.opening import Opening
from equipoise_server.rounds.records import RoundRecord
from equipoise_server.rounds.store.results import kept
from equipoise_server.rounds.store.rounds import IS_SESSION, NO_ROUND, read_round, read_share
from equipoise_server.sessions import answer_store
from equipoise_server.sessions.attachments import Attachment
from equipoise_server.sessions.session_loop import SessionLoop
from equipoise_server.sessions.session_loops import MAX_WORKERS, SessionLoops
from equipoise_server.storage.tables.session import asked

NO_ROOM = "as many sessions by turns are open as a server has room for; close one first"
NO_LONGER_KEPT = "the session's answers are no longer kept"
UNPROTECTED = (
    "the session does not protect you from its other analysts: say that you know with accept_unprotected=True, "
    "or --accept-unprotected"
)


class Sessions:
    """The sessions of one server. `caller` is the operator's name; `loops` has the workers that answer."""

    def __init__(
        self,
        context: Context,
        opening: Opening,
        lifecycle: Lifecycle,
        guard: Guard,
        max_workers: int = MAX_WORKERS,
    ) -> None:
        self._context = context
        self._opening = opening
        self._lifecycle = lifecycle
        self._views = AnalystViews(context.store, context.clock, context.signer, context.deployment)
        self.loops = SessionLoops(context, guard, max_workers)

    # Operators

    def open(self, terms: Terms, request_id: str, caller: str = "") -> RoundRecord:
        """Open a session, and charge both budgets. Raises as `Opening.open` does."""
        if terms.session is None:
            raise InvalidArgument("session", "is missing")
        if terms.session.turn_seconds and not self.loops.has_room_for_turns():
            # Before anything is charged: its turns would pass unanswered.
            raise WrongState(NO_ROOM)
        opened = self._opening.open(terms, request_id, caller)
        self.loops.look_after()
        return opened

    def close(self, session_id: str, request_id: str, caller: str = "") -> RoundRecord:
        """Seal a session: no more statements are answered. Raises as `Lifecycle.seal`, `NotFound` for a round."""
        with self._context.store.read() as connection:
            _session(read_round(connection, session_id))
        sealed = self._lifecycle.seal(session_id, request_id, caller)
        self.loops.look_after()
        return sealed

    def progress(self, record: RoundRecord) -> Progress:
        """Return how many statements of an open session have answers, of those its shares allow; for operators."""
        with self._context.store.read() as connection:
            _, answered = answer_store.standing(connection, record.id)
        return Progress(
            "answering", answered, sum(share.statements for share in record.terms.shares), 0.0, False, 0
        )

    # Analysts

    def list_for_analyst(
        self, analyst: str, page_size: int = 0, page_token: str = ""
    ) -> tuple[list[RoundRecord], str]:
        """Return the sessions in which the analyst has a share, newest first, as it may see them."""
        return self._views.page(analyst, page_size, page_token, IS_SESSION)

    def answered(self, analyst: str, session_id: str) -> int:
        """How many answers the analyst can read: those of its own that are due, so others do not show in it."""
        own = (asked.c.round_id == session_id) & (asked.c.analyst == analyst)
        due = asked.c.due_time <= to_microseconds(self._context.clock())
        with self._context.store.read() as connection:
            newest = select(asked.c.sequence).where(own & due).order_by(asked.c.sequence.desc()).limit(1)
            return int(connection.execute(newest).scalar() or 0)

    def attach(
        self, analyst: str, session_id: str, after_sequence: int, salt: bytes, accept_unprotected: bool
    ) -> Attachment:
        """Attach a stream of the analyst's; an earlier one of the same session ends.

        Raises `NotFound` without a share, `InvalidArgument` for a malformed salt, `WrongState` where the session
        protects no analysts and that is not accepted, and where its answers are no longer kept, `OutOfRange` beyond
        the answers that there are, `Unavailable` where this server cannot answer the session, `DataLoss`.
        """
        with self._context.store.read() as connection:
            read_share(connection, session_id, analyst)
            record = _session(read_round(connection, session_id))
            expired = record.state is RoundState.RELEASED and not kept(connection, session_id)
        if len(salt) != SALT_BYTES:
            raise InvalidArgument("commitment_salt", f"must have {SALT_BYTES} random bytes")
        if record.terms.analyst_budget is None and not accept_unprotected:
            raise WrongState(UNPROTECTED)
        if expired:
            raise WrongState(NO_LONGER_KEPT)
        loop: SessionLoop | None = None
        if record.state is RoundState.OPEN:
            salt = self._salt(session_id, analyst, salt)
            loop = self.loops.loop(record)
        with self._context.store.read() as connection:
            salt = answer_store.salt_in_force(connection, session_id, analyst) or salt
            last = answer_store.last_of(connection, session_id, analyst, self._context.clock())
        answered = 0 if last is None else last.sequence
        if not 0 <= after_sequence <= answered:
            raise OutOfRange(f"after: the answers end at {answered:,}, {after_sequence:,} is beyond them")
        return Attachment(self._context, session_id, analyst, answered, salt, loop, record.terms.close_time)

    def _salt(self, session_id: str, analyst: str, salt: bytes) -> bytes:
        """Return the salt in force, which is this one if there was none."""
        with self._context.store.read() as connection:
            known = answer_store.salt_in_force(connection, session_id, analyst)
        if known is not None:
            return known
        with self._context.store.write() as connection:
            return answer_store.keep_salt(connection, session_id, analyst, salt)


def _session(record: RoundRecord) -> RoundRecord:
    if record.terms.session is None:
        raise NotFound(NO_ROUND)
    return record
