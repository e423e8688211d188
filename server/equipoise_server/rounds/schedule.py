"""What the server does by itself: rounds with a closing time go their way, old results expire.

Everything is decided from the store and the clock, through the same steps that an operator takes. So it survives
restarts, and several servers on one store may all look: the state machine lets each step happen once.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING

import structlog
from sqlalchemy import Connection, select

from equipoise.errors import BudgetExhausted, EquipoiseError
from equipoise.model.rounds import RoundState
from equipoise.model.times import from_microseconds, to_microseconds
from equipoise_server.rounds.state_machine import Action, due
from equipoise_server.rounds.store.results import completed
from equipoise_server.rounds.store.rounds import session_from_json
from equipoise_server.storage.idempotency import Request, make_request
from equipoise_server.storage.tables import rounds

if TYPE_CHECKING:
    from equipoise_server.rounds.lifecycle import Rounds

CALLER = "schedule"  # operators' requests are kept under "operator/NAME"
# The same words whichever account was full: after a repair wrote off budget, which happens for no analyst's doing.
NO_BUDGET = "at its closing time the privacy budgets no longer allowed the round"

log = structlog.get_logger(__name__)


def due_steps(connection: Connection, now: datetime) -> list[tuple[str, Action]]:
    """The rounds that have something to do now, in the order of their closing."""
    waiting = (rounds.c.close_time <= to_microseconds(now)) & rounds.c.state.in_(
        [state.value for state in RoundState if not state.ended]
    )
    columns = (rounds.c.id, rounds.c.state, rounds.c.close_time, rounds.c.terms)
    found = []
    for row in connection.execute(select(*columns).where(waiting).order_by(rounds.c.close_time)):
        complete = completed(connection, row.id) is not None
        session = session_from_json(row.terms)
        # The last turn of a session ends at its closing time, and takes another one to be answered.
        answering = timedelta(seconds=0 if session is None else session.turn_seconds)
        step = due(RoundState(row.state), from_microseconds(row.close_time) + answering, complete, now)
        if step is not None:
            found.append((row.id, step))
    return found


def take_due_step(service: Rounds, round_id: str, step: Action) -> None:
    """Take one step of one round. Where it cannot be taken now, it stays due; an operator may abort the round."""
    try:
        service.take(request_for(round_id, step), round_id, step)
    except BudgetExhausted:
        service.take(request_for(round_id, Action.ABORT), round_id, Action.ABORT, NO_BUDGET)
    except EquipoiseError as error:
        log.error("step_not_taken", round_id=round_id, step=step.value, problem=error.message)
    except Exception as error:
        # Whatever it is, other rounds must not wait for this one. Its text may hold what nobody may read here.
        log.error("step_not_taken", round_id=round_id, step=step.value, kind=type(error).__name__)


def request_for(round_id: str, step: Action) -> Request:
    """The one request with which the server itself takes this step of this round."""
    return make_request(CALLER, f"{round_id} {step.value}", step.value, round_id)
