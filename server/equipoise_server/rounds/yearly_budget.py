"""What the rounds of a schedule may cost the people in the table in one calendar year."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from sqlalchemy import Connection, select

from equipoise.accounting import Cost, charge_at, events_from_json
from equipoise.errors import BudgetExhausted
from equipoise.model.accounts import Budget
from equipoise.model.rounds import MechanismPlan
from equipoise.model.times import to_microseconds
from equipoise_server.ledger.caps import at_order, checked_cap, fits, limits
from equipoise_server.rounds.store.rounds import plan_from_json
from equipoise_server.storage.tables.round import rounds
from equipoise_server.storage.tables.session import scheduled_rounds


def check_fits(yearly: Budget, plans: Sequence[MechanismPlan]) -> None:
    """Raise `BudgetExhausted` unless the plans together cost the people no more than a yearly budget.

    Args:
        yearly: the most that they may cost together, epsilon and delta.
        plans: of all that is opened in one year. They add as on an account of that cap, at its usual order
            (`docs/privacy-filter.md`).
    """
    cap = at_order("yearly_budget", checked_cap("yearly_budget", yearly.epsilon, yearly.delta))
    assert cap.order is not None
    total = sum((charge_at(events_from_json(plan.data_events), cap.order) for plan in plans), Cost())
    if not fits(total, cap, limits(cap)):
        allowed = f"({yearly.epsilon:g}, {yearly.delta:g})"
        if len(plans) == 1:
            raise BudgetExhausted(f"yearly_budget: a single opening would exceed {allowed}; raise it, or open less")
        raise BudgetExhausted(
            f"yearly_budget: {len(plans)} openings in a year would exceed {allowed}; "
            "none is opened before the next year"
        )


def plans_of_year(connection: Connection, schedule_id: str, due: datetime) -> list[MechanismPlan]:
    """Return the plans of what a schedule has opened in the calendar year (UTC) of an opening.

    Args:
        connection: to the store.
        schedule_id: the schedule.
        due: when the opening is due.
    """
    begin = datetime(due.astimezone(UTC).year, 1, 1, tzinfo=UTC)
    query = select(rounds.c.plan).join(scheduled_rounds, scheduled_rounds.c.round_id == rounds.c.id)
    own = (scheduled_rounds.c.schedule_id == schedule_id) & (rounds.c.open_time >= to_microseconds(begin))
    return [plan_from_json(text) for text in connection.execute(query.where(own)).scalars()]
