"""The commands by which operators give, list and end grants."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from typing import Annotated

import typer

from equipoise.accounting import in_rho
from equipoise.clients.giving import Offer, Renewal
from equipoise.clients.operator import Operator
from equipoise.commands.dangers import Accept, warnings
from equipoise.commands.dataset_columns import GRANT_REQUESTS
from equipoise.commands.options import DEFAULT_PROFILE, TIME_FORMATS, AsJson, Profile, RequestId, with_fields
from equipoise.commands.printing import print_facts, print_json, print_line, print_list, print_rows, print_table
from equipoise.commands.round_lists import GRANTS
from equipoise.commands.rounds import act
from equipoise.commands.terms_options import Beta, DataDelta, Dataset
from equipoise.errors import InvalidArgument
from equipoise.model.accounts import Budget
from equipoise.model.calendar import Period
from equipoise.model.dangers import not_accepted
from equipoise.model.rounds import GRANT

grant_app = typer.Typer(
    help="Grants: parts of a dataset's budget that analysts spend statement by statement, at any time.",
    no_args_is_help=True,
)


@dataclass(frozen=True, kw_only=True)
class GrantOptions:
    """The options that say how large a grant is to be, and whose."""

    dataset: Dataset
    analyst: Annotated[str, typer.Argument(help="The analyst's name.")]
    data_epsilon: Annotated[
        float, typer.Option(help="The largest epsilon that all statements may cost the people in the table.")
    ]
    data_delta: DataDelta
    beta: Beta = 0.05
    measurement: Annotated[
        str | None,
        typer.Option(
            metavar="ROUND",
            help="The standing measurement that answers are combined with, by its round. [default: the newest one]",
            show_default=False,
        ),
    ] = None
    accept: Accept = None

    def offer(self) -> Offer:
        """Make the offer of such a grant. Nothing is given."""
        return Offer(
            dataset=self.dataset,
            analyst=self.analyst,
            budget=Budget(self.data_epsilon, self.data_delta),
            beta=self.beta,
            accepted=tuple(self.accept or ()),
            measurement=self.measurement,
        )


@grant_app.command("add")
@with_fields
def add(
    offered: GrantOptions,
    until: Annotated[
        datetime | None,
        typer.Option(
            "--until",
            formats=TIME_FORMATS,
            help="When the grant ends by itself, such as 2030-01-31T18:00Z. [default: when grant end is called]",
            show_default=False,
        ),
    ] = None,
    request: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Which of the analyst's requests this grants, as grant requests shows it; the analyst is told.",
            show_default=False,
        ),
    ] = None,
    renew: Annotated[
        Period | None,
        typer.Option(
            help="Give another grant like it each time one ends, by the calendar; round schedules lists these.",
            show_default=False,
        ),
    ] = None,
    yearly_epsilon: Annotated[
        float | None,
        typer.Option(help="With --renew: the largest epsilon of all that are given in one calendar year (UTC)."),
    ] = None,
    yearly_delta: Annotated[float | None, typer.Option(help="The delta of the yearly epsilon.")] = None,
    request_id: RequestId = None,
    profile: Profile = DEFAULT_PROFILE,
    as_json: AsJson = False,
) -> None:
    """Give an analyst a part of a dataset's budget: it can ask from now on, and pays for each statement.

    All of it is reserved on the data account now. What is not spent is counted no more when the grant has ended.
    With --renew the grant ends after that time, and the server gives the next one, within the yearly budget.
    """
    renewal = None
    if renew is not None:
        if yearly_epsilon is None or yearly_delta is None:
            raise InvalidArgument("renew", "needs --yearly-epsilon and --yearly-delta")
        renewal = Renewal(renew, Budget(yearly_epsilon, yearly_delta))
    offer = replace(offered.offer(), until=until, request=request, renewal=renewal)
    act(profile, as_json, lambda operator: offer.give(operator, request_id))


@grant_app.command("plan")
@with_fields
def plan(
    offered: GrantOptions,
    profile: Profile = DEFAULT_PROFILE,
    as_json: AsJson = False,
) -> None:
    """Show what a grant of this size would give, before it is given. Nothing is reserved.

    For 1, 10, 100 and 1,000 statements that share it evenly: the standard error of each count, and the half
    width of the last one's interval, in records. Every marginal has the same standard error, however many cells it
    has; half widths are those of 100 cells. Earlier answers and a standing measurement are left out: with these,
    answers err by less, or cost less. Which tables that measurement tells, and how precisely, is shown below: as
    precisely as that they cost nothing. Beside it is their standard error where they are paid for, too.
    """
    offer = offered.offer()
    with Operator.from_profile(profile) as operator:
        planned = offer.plan(operator)
    missing = not_accepted(planned.dangers, offer.accepted)
    if as_json:
        print_json(planned)
    else:
        rows = [
            (
                f"{each.statements:,}",
                in_rho(each.rho),
                f"{each.condition_error:,.4g}",
                f"+- {each.condition_half_width:,.4g}",
                f"{each.marginal_error:,.4g}",
                f"+- {each.marginal_half_width:,.4g}",
            )
            for each in planned.shared
        ]
        print_table(
            ("statements", "rho of each", "condition: error", "interval", "marginal: error", "interval"), rows
        )
        print_line(f"in records, of {planned.records:,}; all may cost rho {in_rho(planned.total)} together")
        if planned.measured:
            parts = [
                f"with 1/{each.statements:,}" if each.statements > 1 else "with all" for each in planned.shared
            ]
            told = [
                (", ".join(table.attributes), *(f"{error:,.4g}" for error in (table.standard_error, *errors)))
                for table, errors in zip(planned.measured, planned.improved, strict=True)
            ]
            print_table(("measured table", "error of a cell", *parts), told)
        print_facts([*warnings(planned.dangers, offer.accepted)])
        if planned.refusal:
            print_line(f"could not be given now: {planned.refusal}")
        else:
            print_line("could be given if the dangers are accepted" if missing else "could be given now")
    if planned.refusal or missing:
        raise typer.Exit(1)


@grant_app.command("requests")
def requests(
    every: Annotated[bool, typer.Option("--all", help="Also those that were granted or declined.")] = False,
    profile: Profile = DEFAULT_PROFILE,
    as_json: AsJson = False,
) -> None:
    """List what analysts have asked for, newest first. grant add with --request grants one."""
    with Operator.from_profile(profile) as operator:
        print_list("requests", list(operator.grant_requests(decided=every)), GRANT_REQUESTS, as_json)


@grant_app.command("decline")
def decline(
    analyst: Annotated[str, typer.Argument(help="The analyst's name.")],
    number: Annotated[int, typer.Argument(min=1, help="Which of the analyst's requests.")],
    answer: Annotated[str, typer.Argument(help="Why, in one sentence, which the analyst is shown.")],
    request_id: RequestId = None,
    profile: Profile = DEFAULT_PROFILE,
    as_json: AsJson = False,
) -> None:
    """Decline an analyst's request for a grant, for good. The analyst can ask again."""
    with Operator.from_profile(profile) as operator:
        decided = operator.decide_grant_request(analyst, number, answer=answer, request_id=request_id)
    if as_json:
        print_json(decided)
    else:
        print_rows(GRANT_REQUESTS, [decided])


@grant_app.command("list")
def list_grants(profile: Profile = DEFAULT_PROFILE, as_json: AsJson = False) -> None:
    """List all grants, newest first."""
    with Operator.from_profile(profile) as operator:
        grants = [each for each in operator.rounds() if each.round.mechanism == GRANT]
    print_list("grants", grants, GRANTS, as_json)


@grant_app.command("end")
def end(
    grant_id: Annotated[str, typer.Argument(metavar="GRANT", help="The grant's identifier.")],
    profile: Profile = DEFAULT_PROFILE,
    as_json: AsJson = False,
) -> None:
    """End a grant: compute its answers once more, release them, and count only what was spent. Safe to repeat."""
    act(profile, as_json, lambda operator: operator.end_grant(grant_id))
