"""Commands of operators for rounds and grants that are opened by the calendar."""

from __future__ import annotations

import re
from datetime import datetime
from typing import Annotated

import typer

from equipoise.clients.operator import Operator
from equipoise.commands.columns import pair, shown_time
from equipoise.commands.options import DEFAULT_PROFILE, TIME_FORMATS, AsJson, Profile, RequestId, with_fields
from equipoise.commands.printing import Columns, print_json, print_list, print_rows
from equipoise.commands.terms_options import RoundOptions
from equipoise.errors import InvalidArgument
from equipoise.model.accounts import Budget
from equipoise.model.calendar import Period, RoundSchedule

YearlyEpsilon = Annotated[
    float, typer.Option(help="The largest epsilon that all opened in one calendar year (UTC) may cost the people.")
]
YearlyDelta = Annotated[float, typer.Option(help="The delta of the yearly epsilon.")]
SCHEDULES: Columns[RoundSchedule] = {
    "schedule": lambda each: each.id,
    "dataset": lambda each: each.terms.dataset,
    "mechanism": lambda each: each.terms.mechanism,
    "analysts": lambda each: len(each.terms.shares),
    "period": lambda each: each.period,
    "next": lambda each: shown_time(each.next_time) or "stopped",
    "each": lambda each: pair(each.terms.data_budget),
    "a year": lambda each: pair(each.yearly_budget),
    "newest": lambda each: each.round_ids[0] if each.round_ids else "",
    "problem": lambda each: each.problem,
}
_SECONDS = {"m": 60, "h": 3_600, "d": 86_400}


def duration(text: str) -> int:
    """Return the seconds of a duration such as 36h. Raises `InvalidArgument`.

    Args:
        text: a number and m, h or d: minutes, hours or days.
    """
    match = re.fullmatch(r"([0-9]{1,6})([mhd])", text)
    if match is None:
        raise InvalidArgument("open-for", f"must be such as 3d, 36h or 90m, not {text!a}")
    return int(match[1]) * _SECONDS[match[2]]


@with_fields
def schedule(
    options: RoundOptions,
    every: Annotated[Period, typer.Option(help="How far apart two openings are.")],
    first: Annotated[
        datetime,
        typer.Option(
            formats=TIME_FORMATS,
            help="When the first round is opened, such as 2030-01-31T18:00Z. Monthly: the others on the same day "
            "of the month, or its last.",
        ),
    ],
    yearly_epsilon: YearlyEpsilon,
    yearly_delta: YearlyDelta,
    open_for: Annotated[
        str,
        typer.Option(
            help="How long each round accepts workloads, such as 3d, 36h or 90m. [default: until the next]",
            show_default=False,
        ),
    ] = "",
    request_id: RequestId = None,
    profile: Profile = DEFAULT_PROFILE,
    as_json: AsJson = False,
) -> None:
    """Have the server open rounds by the calendar, close, run and release each, within a yearly budget.

    Each is a round like any other, on the newest version of its dataset: charged when it is sealed, and on record.
    One that does not fit the yearly budget is not opened, and round schedules says so.
    """
    terms = options.terms()
    seconds = duration(open_for) if open_for else 0
    budget = Budget(yearly_epsilon, yearly_delta)
    with Operator.from_profile(profile) as operator:
        made = operator.schedule(terms, every, first, budget, open_seconds=seconds, request_id=request_id)
    _print(made, as_json)


def schedules(profile: Profile = DEFAULT_PROFILE, as_json: AsJson = False) -> None:
    """List what the server opens by the calendar, newest first: rounds and grants, also what was stopped."""
    with Operator.from_profile(profile) as operator:
        print_list("schedules", list(operator.schedules()), SCHEDULES, as_json)


def unschedule(
    schedule_id: Annotated[str, typer.Argument(metavar="SCHEDULE", help="The schedule's identifier.")],
    request_id: RequestId = None,
    profile: Profile = DEFAULT_PROFILE,
    as_json: AsJson = False,
) -> None:
    """Stop a schedule: it opens nothing more. What it has opened goes on. Safe to repeat."""
    with Operator.from_profile(profile) as operator:
        stopped = operator.stop_schedule(schedule_id, request_id)
    _print(stopped, as_json)


def _print(made: RoundSchedule, as_json: bool) -> None:
    if as_json:
        print_json(made)
    else:
        print_rows(SCHEDULES, [made])
