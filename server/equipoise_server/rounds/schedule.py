"""Takes the steps that are due without an operator: rounds with a closing time move on, old results expire.

The schedule decides from the store and the clock alone, and takes the same steps as an operator. So it survives
restarts, and several servers may run it on one store: the state machine lets each step happen once.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial

import structlog
from sqlalchemy import Connection, select

from equipoise.errors import BudgetExhausted, EquipoiseError
from equipoise.model.rounds import RoundState
from equipoise.model.times import from_microseconds, to_microseconds
from equipoise_server.rounds.clock_watch import ClockWatch, record_time
from equipoise_server.rounds.lifecycle import Lifecycle
from equipoise_server.rounds.seeds import Seeds, kept_too_long
from equipoise_server.rounds.slow_steps import SlowSteps
from equipoise_server.rounds.state_machine import Action, due
from equipoise_server.rounds.store.results import completed, expire, kept_since_before
from equipoise_server.rounds.store.rounds import session_from_json
from equipoise_server.storage.idempotency import Request, forget_until, make_request, outlived
from equipoise_server.storage.operations import Operations
from equipoise_server.storage.tables.round import rounds
from equipoise_server.transparency.sequencing import Sequencer

CALLER = "schedule"  # operators' requests are kept under "operator/NAME"
# One text for every account. The case occurs only after a repair wrote off budget, which no analyst causes.
NO_BUDGET = "at its closing time the privacy budgets no longer allowed the round"

log = structlog.get_logger(__name__)


@dataclass(frozen=True)
class Schedule:
    """The steps that are due on one store.

    `retention` is how long results are kept, `audit_window` how long seeds are kept; 0 stands for ever.
    `slow_steps` take what may wait for a table.
    """

    operations: Operations
    lifecycle: Lifecycle
    seeds: Seeds
    sequencer: Sequencer
    retention: timedelta
    audit_window: timedelta
    watch: ClockWatch
    slow_steps: SlowSteps = field(default_factory=SlowSteps)

    def keep(self) -> None:
        """Do what is due now: take steps of closed rounds, extend the log, remove old results, requests and seeds.

        While the clock is not trusted, only the log is extended, because the rest cannot be undone; and of what is
        about rounds and datasets only with what was due by a time that has come for certain.

        Raises:
            Unavailable: the store or the guard cannot be used now.
            DataLoss: the store or the log is damaged.
        """
        store = self.operations.store
        with store.read() as connection:
            now, reached, problem = self.watch.read(connection)
        if problem is not None:
            self.operations.catch_up()
            self.sequencer.sequence(now, reached)
            return
        record_time(store, now)
        with store.read() as connection:
            steps = due_steps(connection, now)
            old = kept_since_before(connection, now - self.retention) if self.retention else []
            unneeded = kept_too_long(connection, now, self.audit_window)
            forgettable = outlived(connection, now)
        self.operations.catch_up()
        for round_id, step in steps:
            take = partial(self._take_due_step, round_id, step)
            if step is Action.RUN:
                self.slow_steps.take(round_id, take)  # it looks at the table first
            else:
                take()
        self.sequencer.sequence(now)
        for round_id in old:
            with store.write() as connection:
                expire(connection, round_id)
            log.info("results_expired", round_id=round_id)
        if forgettable is not None:
            with store.write() as connection:
                forget_until(connection, forgettable)
        for round_id in unneeded:
            self.seeds.destroy(round_id)
            log.info("seed_destroyed", round_id=round_id)

    def _take_due_step(self, round_id: str, step: Action) -> None:
        """Take one step of one round. A step that fails stays due; an operator may abort the round."""
        take = self.lifecycle.take
        try:
            take(request_for(round_id, step), round_id, step)
        except BudgetExhausted:
            take(request_for(round_id, Action.ABORT), round_id, Action.ABORT, NO_BUDGET)
        except EquipoiseError as error:
            log.error("step_not_taken", round_id=round_id, step=step.value, problem=error.message)
        except Exception as error:
            # Other rounds must not wait for this one. The error's text may contain private data, so only the type
            # is logged.
            log.error("step_not_taken", round_id=round_id, step=step.value, kind=type(error).__name__)


def due_steps(connection: Connection, now: datetime) -> list[tuple[str, Action]]:
    """Return the rounds with a step that is due now, each with the step, in the order of their closing times."""
    waiting = (rounds.c.close_time <= to_microseconds(now)) & rounds.c.state.in_(
        [state.value for state in RoundState if not state.ended]
    )
    columns = (rounds.c.id, rounds.c.state, rounds.c.close_time, rounds.c.terms)
    found = []
    for row in connection.execute(select(*columns).where(waiting).order_by(rounds.c.close_time)):
        complete = completed(connection, row.id) is not None
        session = session_from_json(row.terms)
        # The last turn of a session ends at its closing time, and the answers of that turn take another turn.
        answering = timedelta(seconds=0 if session is None else session.turn_seconds)
        step = due(RoundState(row.state), from_microseconds(row.close_time) + answering, complete, now)
        if step is not None:
            found.append((row.id, step))
    return found


def request_for(round_id: str, step: Action) -> Request:
    """Return the one request with which the server itself takes this step of this round."""
    return make_request(CALLER, f"{round_id} {step.value}", step.name.lower(), round_id)
