"""An open session: its public facts, the schedule of its answers, and the job of its worker."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import NamedTuple

import structlog

from equipoise.errors import InvalidArgument, TooLarge, Unavailable
from equipoise.model.rounds import GRANT, Ending
from equipoise.queries.grant_account import GrantAccount, Wanted
from equipoise.queries.schema import Schema
from equipoise.queries.statement_work import most_work
from equipoise.queries.workload_compiler import CompiledStatement
from equipoise.residuals.told_counts import StandingNoise
from equipoise.wire.results import ANSWERS_TO_STATEMENT
from equipoise.wire.session_workload import as_wanted, compile_with_work, offer_of
from equipoise.wire.statements import NO_PRICE
from equipoise_server.computation.session import SessionJob
from equipoise_server.mechanisms.registry import session_mechanism
from equipoise_server.rounds.context import Context
from equipoise_server.rounds.records import RoundRecord
from equipoise_server.rounds.round_job import read_seed
from equipoise_server.rounds.store.dataset_records import registered_digest
from equipoise_server.rounds.store.datasets import dataset_of
from equipoise_server.rounds.store.measurements import run_setting
from equipoise_server.rounds.store.opened_terms import check_opened
from equipoise_server.rounds.store.paid_statements import standing_noise
from equipoise_server.rounds.store.rounds import read_audit_nonce
from equipoise_server.rounds.terms.turns import turns_before_answers
from equipoise_server.sessions.turns import AnswerSchedule, Immediate, TurnBased
from equipoise_server.workers.session_process import NOT_NOW
from equipoise_server.workers.shared_tables import SharedTable

MAX_STATEMENT = 1 << 16  # bytes; many statements wait in memory at once

log = structlog.get_logger(__name__)


class Question(NamedTuple):
    """A statement that was checked: how many cells it has, and what it asks of a grant; None elsewhere."""

    cells: int
    wanted: Wanted | None


@dataclass(frozen=True)
class OpenSession:
    """The facts of a session that do not depend on its statements.

    `standing`: the noise of the measurement that a grant's answers are combined with; None without one. `table`:
    what is read for several sessions; None where the worker reads it.
    """

    record: RoundRecord
    schema: Schema
    job: SessionJob
    schedule: AnswerSchedule
    standing: StandingNoise | None = None
    table: SharedTable | None = None

    def compile(self, statement: bytes) -> CompiledStatement:
        """Compile a statement and check it against the session's plan, and in a session by turns its work.

        A statement that its part of a turn cannot hold could make the turn late, which all analysts would see.

        Raises:
            TooLarge: the statement has more than 65,536 bytes.
            InvalidArgument: a field of the statement is wrong, or it is too much work; its name begins with
                `statement`.
        """
        if len(statement) > MAX_STATEMENT:
            raise TooLarge(f"the statement is larger than {MAX_STATEMENT:,} bytes")
        compiled, work = compile_with_work(statement, self.schema)
        if compiled.query_count > ANSWERS_TO_STATEMENT:
            raise InvalidArgument(
                "statement",
                f"has {compiled.query_count:,} cells, but at most {ANSWERS_TO_STATEMENT:,} are answered",
            )
        session_mechanism(self.record.plan.mechanism).check_statement(self.record.plan, compiled)
        if (allowed := self.most_work) is not None and work > allowed:
            problem = f"is {work:,} units of work, and the session's turns hold {allowed:,} for each statement"
            raise InvalidArgument("statement", f"{problem}: ask for fewer cells, or set a condition of fewer parts")
        return compiled

    def question(self, statement: bytes) -> Question:
        """Check a statement, and what it may cost: each of a grant says so, and no other. Raises as `compile`."""
        compiled, offer = self.compile(statement), offer_of(statement)
        if offer.rho and not is_grant(self.record):
            raise InvalidArgument("statement.rho", NO_PRICE)
        if not offer.rho and is_grant(self.record):
            raise InvalidArgument("statement.rho", "must be set: each statement of a grant says what it may cost")
        return Question(
            compiled.query_count, as_wanted(compiled, offer, standing=self.standing) if offer.rho else None
        )

    def unspent(self) -> GrantAccount | None:
        """Return the account of a grant of which nothing is spent; None in any other session."""
        return GrantAccount(self.record.plan.data_cost.rho) if is_grant(self.record) else None

    @property
    def begins_late(self) -> bool:
        """Whether turns may end before the worker can answer anything, as it fits a prior first. It is public."""
        session = self.record.terms.session
        return by_turns(self.record) and session is not None and turns_before_answers(session, self.record.plan) > 0

    @property
    def most_work(self) -> int | None:
        """The most work of one statement (`equipoise.queries.statement_work`); None without turns."""
        terms = self.record.terms
        if terms.session is None or not terms.session.turn_seconds:
            return None
        return most_work(terms.session.turn_seconds, len(terms.shares))


def read_open_session(context: Context, record: RoundRecord, table: SharedTable | None = None) -> OpenSession:
    """Read a session's facts from the store.

    Args:
        context: of the server.
        record: the session.
        table: what is read for several sessions; None where the worker reads it.

    Raises:
        Unavailable: the table is gone.
        DataLoss: the seed does not open, or the stored terms are not those on record.
    """
    session = record.terms.session
    assert session is not None
    try:
        with context.store.read() as connection:
            check_opened(connection, record)
            dataset = dataset_of(connection, record)
            seed = read_seed(connection, record, context.storage_key)
            digest = registered_digest(connection, dataset.name, dataset.version)
            nonce = read_audit_nonce(connection, record.id)
            setting = run_setting(connection, record, dataset)
            standing = standing_noise(record, dataset)
        source = context.tables.table(dataset)
    except InvalidArgument as error:
        log.error("session_not_started", session_id=record.id, problem=error.message)
        raise Unavailable(NOT_NOW) from None
    job = SessionJob(
        session_id=record.id,
        source=source,
        schema=dataset.schema.to_json(),
        setting=setting,
        plan=record.plan,
        seed=seed,
        data_digest=digest,
        stops=session.ending is Ending.STOP,
        audit_nonce=nonce,
    )
    return OpenSession(record, dataset.schema, job, schedule_of(record), standing, table)


def is_grant(record: RoundRecord) -> bool:
    """Return whether a session is a grant, whose analyst pays for each statement."""
    return record.terms.session is not None and record.terms.mechanism == GRANT


def by_turns(record: RoundRecord) -> bool:
    """Return whether a session answers by turns."""
    return record.terms.session is not None and record.terms.session.turn_seconds > 0


def due_until(record: RoundRecord, now: datetime) -> datetime | None:
    """Return the time until which the session's answers must have been due to be told; None: all are told.

    Without turns, answers are told when they are stored. If the clock was set back a little since then, they must
    not seem to be due later: their receipts say that they were told.
    """
    return now if by_turns(record) else None


def schedule_of(record: RoundRecord) -> AnswerSchedule:
    """Return the schedule by which a session's statements are answered."""
    session, close_time = record.terms.session, record.terms.close_time
    assert session is not None
    if not session.turn_seconds:
        return Immediate(session.length)
    assert close_time is not None
    turn = timedelta(seconds=session.turn_seconds)
    return TurnBased(record.open_time, turn, (close_time - record.open_time) // turn, len(record.terms.shares))
