"""The operations of operators and analysts on sessions. Synchronous and safe to use from several threads."""

from __future__ import annotations

from sqlalchemy import Connection

from equipoise.errors import InvalidArgument, NotFound, OutOfRange, Unavailable, WrongState
from equipoise.model.rounds import GRANT, Grant, Progress, RoundState, Terms
from equipoise.records.canonical import canonical_json
from equipoise.records.record import SALT_BYTES
from equipoise_server.ledger.rollback_guard import Guard
from equipoise_server.mechanisms.interface import OnStep, unfollowed
from equipoise_server.rounds.analyst_views import AnalystViews
from equipoise_server.rounds.clock_watch import UNTRUSTED, Reading
from equipoise_server.rounds.context import Context
from equipoise_server.rounds.lifecycle import Lifecycle
from equipoise_server.rounds.opening import Opening
from equipoise_server.rounds.records import RoundRecord
from equipoise_server.rounds.store.results import has_results
from equipoise_server.rounds.store.rounds import IS_SESSION, NO_ROUND, combined_with, read_own_round, read_round
from equipoise_server.sessions import answer_store
from equipoise_server.sessions.attachments import Attachment
from equipoise_server.sessions.open_session import due_until, is_grant
from equipoise_server.sessions.session_loop import SessionLoop
from equipoise_server.sessions.session_loops import MAX_WORKERS, SessionLoops

NO_ROOM = "as many sessions by turns are open as a server has room for; close one first"
NO_ROOM_FOR_GRANTS = "as many grants are open as a server has room for; end one first"
NO_LONGER_KEPT = "the session's answers are no longer kept"
UNPROTECTED = (
    "the session does not protect analysts from one another: say that you know with accept_unprotected=True, "
    "or --accept-unprotected"
)


class Sessions:
    """The sessions of one server. In every method `caller` is the operator's name; `loops` owns the workers."""

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
        self._views = AnalystViews(context.store, context.watch, context.signer, context.deployment)
        self.loops = SessionLoops(context, guard, max_workers)

    # Operators

    def open(self, terms: Terms, request_id: str, caller: str = "", progress: OnStep = unfollowed) -> RoundRecord:
        """Open a session, and charge both budgets.

        Args:
            terms: What the session is to be.
            request_id: Makes the call safe to repeat.
            caller: Who opens it.
            progress: Told how far the planning is.

        Returns:
            The session, opened.

        Raises:
            InvalidArgument: the terms are not those of a session, or are malformed.
            WrongState: the server has no room for another session by turns, or the dataset is retired.
            EquipoiseError: as `Opening.open` raises.
        """
        if terms.session is None:
            raise InvalidArgument("session", "is missing")
        if terms.mechanism == GRANT and not self.loops.has_room_for_grants():
            # Refuse by the number of grants, which is public: later a refusal would tell what others ask.
            raise WrongState(NO_ROOM_FOR_GRANTS)
        if terms.session.turn_seconds and not self.loops.has_room_for_turns():
            # Refuse before anything is charged: the session's turns would pass without answers.
            raise WrongState(NO_ROOM)
        opened = self._opening.open(terms, request_id, caller, progress)
        self.loops.look_after()
        return opened

    def close(self, session_id: str, request_id: str, caller: str = "") -> RoundRecord:
        """Seal a session, after which no more statements are answered.

        Args:
            session_id: The session.
            request_id: Makes the call safe to repeat.
            caller: Who closes it.

        Raises:
            NotFound: There is no such session; a round is none.
            EquipoiseError: As `Lifecycle.seal` raises.
        """
        with self._context.store.read() as connection:
            _session(read_round(connection, session_id))
        sealed = self._lifecycle.seal(session_id, request_id, caller)
        self.loops.look_after()
        return sealed

    def progress(self, record: RoundRecord) -> Progress:
        """Return how many statements of a session have answers, of those its shares allow; for operators only."""
        with self._context.store.read() as connection:
            _, answered = answer_store.standing(connection, record.id)
        return Progress(
            "answering", answered, sum(share.statements for share in record.terms.shares), 0.0, False, 0
        )

    def read_clock(self, connection: Connection) -> Reading:
        """Return a reading of the server's clock, and whether it is trusted."""
        return self._context.watch.read(connection)

    # Analysts

    def list_for_analyst(
        self, analyst: str, page_size: int = 0, page_token: str = ""
    ) -> tuple[list[RoundRecord], str]:
        """Return a page of the sessions in which the analyst has a share, newest first, as analysts see them."""
        return self._views.page(analyst, page_size, page_token, IS_SESSION)

    def answered(self, analyst: str, session_id: str) -> int:
        """Return how many answers the analyst can read: its own due ones, so the number says nothing of others."""
        with self._context.store.read() as connection:
            return answer_store.count_due(connection, session_id, analyst, self.read_clock(connection).reached)

    def grant(self, record: RoundRecord, *, whole: bool = False) -> Grant | None:
        """Return what an analyst's own grant allows and what was spent of it; None for any other session.

        Args:
            record: the session.
            whole: also the measurement that answers are combined with, which may be some 100,000 characters long.
        """
        if not is_grant(record):
            return None
        named = combined_with(record.terms) if whole else None
        with self._context.store.read() as connection:
            spent = answer_store.spent(connection, record.id)
        standing = "" if named is None else canonical_json(dict(named)).decode("ascii")
        return Grant(record.plan.data_cost.rho, spent, standing)

    def attach(
        self, analyst: str, session_id: str, after_sequence: int, salt: bytes, accept_unprotected: bool
    ) -> Attachment:
        """Attach a stream of the analyst. An earlier stream of the analyst in the same session ends.

        Args:
            analyst: the analyst's name.
            session_id: the session's id.
            after_sequence: the number of answers that the analyst has already.
            salt: 32 random bytes, which commit to the statements unless the analyst has attached with others.
            accept_unprotected: whether the analyst accepts a session that does not protect its analysts.

        Returns:
            The attachment, with the salt in force.

        Raises:
            NotFound: the analyst has no share in such a session.
            InvalidArgument: the salt has another length.
            WrongState: the session protects no analysts and `accept_unprotected` is false, or its answers are no
                longer kept.
            OutOfRange: `after_sequence` is beyond the due answers.
            Unavailable: this server cannot answer the session now.
            DataLoss: the session's stored answers are damaged.
        """
        with self._context.store.read() as connection:
            # The other shares would make an attachment take longer the more analysts there are.
            record = _session(read_own_round(connection, session_id, analyst))
            expired = record.state is RoundState.RELEASED and not has_results(connection, session_id)
            # By a wrong clock the session could seem closed, or answers not due that the analyst has already.
            trusted = record.state is not RoundState.OPEN or self.read_clock(connection).problem is None
            known = answer_store.salt_in_force(connection, session_id, analyst)
        if len(salt) != SALT_BYTES:
            raise InvalidArgument("commitment_salt", f"must have {SALT_BYTES} random bytes")
        if record.terms.analyst_budget is None and not accept_unprotected:
            raise WrongState(UNPROTECTED)
        if expired:
            raise WrongState(NO_LONGER_KEPT)
        if not trusted:
            raise Unavailable(UNTRUSTED)
        loop: SessionLoop | None = None
        if record.state is RoundState.OPEN:
            known = known or self._keep_salt(session_id, analyst, salt)
            loop = self.loops.loop(session_id)
        with self._context.store.read() as connection:
            reached = self.read_clock(connection).reached
            due = due_until(record, reached)
            answered = answer_store.count_due(connection, session_id, analyst, due)
        if not 0 <= after_sequence <= answered:
            raise OutOfRange(f"after: the answers end at {answered:,}, {after_sequence:,} is beyond them")
        return Attachment(self._context, record, analyst, answered, known or salt, loop, reached)

    def _keep_salt(self, session_id: str, analyst: str, salt: bytes) -> bytes:
        """Store the salt if the analyst has none, and return the salt in force."""
        with self._context.store.write() as connection:
            return answer_store.keep_salt(connection, session_id, analyst, salt)


def _session(record: RoundRecord) -> RoundRecord:
    if record.terms.session is None:
        raise NotFound(NO_ROUND)
    return record
