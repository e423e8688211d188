"""The calendar: rounds and grants that the server opens by itself, within a yearly budget."""

from __future__ import annotations

from collections.abc import Mapping

from starlette.responses import Response

from equipoise.commands.calendar import SCHEDULES, duration
from equipoise.commands.columns import SHARES, pair, shown_time
from equipoise.commands.dangers import in_short
from equipoise.commands.printing import counted
from equipoise.console.asked import Asked
from equipoise.console.desk import Desk, part_of
from equipoise.console.operator import planning
from equipoise.console.operator.terms import (
    REFUSALS,
    Typed,
    form_page,
    read_budget,
    read_choice,
    read_terms,
    read_time,
)
from equipoise.console.rendering import table_of
from equipoise.errors import InvalidArgument, NotFound
from equipoise.model.calendar import Period, RoundSchedule
from equipoise.model.rounds import GRANT

BLANK: Mapping[str, str] = {
    **{name: value for name, value in planning.BLANK.items() if name != "close"},
    "period": Period.MONTHLY.value,
    "first": "",
    "open_for": "",
    "yearly_epsilon": "",
    "yearly_delta": "",
}
PERIODS = tuple((each.value, each.value) for each in Period)


def home(desk: Desk, asked: Asked) -> Response:
    """All schedules, newest first, also what was stopped."""
    part = part_of(desk.operator.schedules(), asked)
    return desk.show(
        "operator/calendar.html",
        section="Calendar",
        part=part,
        schedules=table_of(SCHEDULES, part.items, [f"{desk.base}/calendar/{each.id}" for each in part.items]),
    )


def show(desk: Desk, asked: Asked) -> Response:
    """One schedule: what it opens and when, what it has opened, and what has gone wrong."""
    wanted = asked.path["schedule_id"]
    found = next((each for each in desk.operator.schedules() if each.id == wanted), None)
    if found is None:
        raise NotFound("there is no such schedule")
    grants = found.terms.mechanism == GRANT
    return desk.show(
        "operator/schedule.html",
        section="Calendar",
        schedule=found,
        kind="grant" if grants else "round",
        facts=_facts(found),
        shares=None if grants else table_of(SHARES, found.terms.shares),
    )


def blank(desk: Desk, asked: Asked) -> Response:
    """The empty form."""
    return _page(desk, Typed.blank(BLANK, asked))


def schedule(desk: Desk, asked: Asked) -> Response:
    """Has the server open rounds by the calendar."""
    try:
        terms = read_terms(asked, read_budget(asked, "analyst"))
        first, open_for = read_time(asked, "first"), asked.text("open_for").strip()
        if first is None:
            raise InvalidArgument("first", "is missing: say when the first round is opened")
        made = desk.operator.schedule(
            terms,
            read_choice(asked, "period", Period),
            first,
            read_budget(asked, "yearly"),
            open_seconds=duration(open_for) if open_for else 0,
            request_id=asked.needed("request_id"),
        )
    except REFUSALS as refusal:
        return _page(desk, Typed.of(BLANK, asked, refusal))
    return desk.go(f"/calendar/{made.id}")


def stop(desk: Desk, asked: Asked) -> Response:
    """Opens no more by a schedule."""
    stopped = desk.operator.stop_schedule(asked.path["schedule_id"], asked.needed("request_id"))
    return desk.go(f"/calendar/{stopped.id}")


def _facts(shown: RoundSchedule) -> list[tuple[str, str]]:
    terms = shown.terms
    facts = {
        "dataset": f"{terms.dataset}, in its newest version",
        "mechanism": terms.mechanism,
        "period": shown.period,
        "first": shown_time(shown.first_time),
        "next": shown_time(shown.next_time) or f"none: stopped {shown_time(shown.stop_time)}",
        "each is open for": counted(shown.open_seconds, "second") if shown.open_seconds else "until the next",
        "each costs the people at most": pair(terms.data_budget),
        "all of a year cost them at most": pair(shown.yearly_budget),
        "analyst": terms.shares[0].analyst if terms.mechanism == GRANT else None,
        "each costs an analyst at most": (
            None if terms.mechanism == GRANT or terms.analyst_budget is None else pair(terms.analyst_budget)
        ),
        "accepted dangers": in_short(terms.accepted),
    }
    return [(title, str(value)) for title, value in facts.items() if value is not None]


def _page(desk: Desk, typed: Typed) -> Response:
    return form_page(
        desk, "operator/new_schedule.html", "Calendar", typed, mechanisms=planning.MECHANISMS, periods=PERIODS
    )
