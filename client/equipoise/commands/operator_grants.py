"""The commands by which operators give, list and end grants."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated

import typer

from equipoise.clients.operator import Operator
from equipoise.commands.columns import GRANTS
from equipoise.commands.dangers import Accept
from equipoise.commands.dataset_columns import GRANT_REQUESTS
from equipoise.commands.options import DEFAULT_PROFILE, AsJson, Profile, RequestId
from equipoise.commands.printing import print_json, print_list, print_rows
from equipoise.commands.rounds import act
from equipoise.commands.terms_options import Beta, DataDelta, Dataset
from equipoise.errors import EquipoiseError, InvalidArgument
from equipoise.model.accounts import Budget
from equipoise.model.calendar import Period, opening_time
from equipoise.model.grants import grant_terms
from equipoise.model.rounds import GRANT, RoundDetail

grant_app = typer.Typer(
    help="Grants: parts of a dataset's budget that analysts spend statement by statement, at any time.",
    no_args_is_help=True,
)


@grant_app.command("add")
def add(
    dataset: Dataset,
    analyst: Annotated[str, typer.Argument(help="The analyst's name.")],
    data_epsilon: Annotated[
        float, typer.Option(help="The largest epsilon that all statements may cost the people in the table.")
    ],
    data_delta: DataDelta,
    until: Annotated[
        datetime | None,
        typer.Option(
            "--until",
            formats=["%Y-%m-%dT%H:%M:%S%z", "%Y-%m-%dT%H:%M%z"],
            help="When it ends by itself, such as 2030-01-31T18:00Z. [default: when grant end is called]",
            show_default=False,
        ),
    ] = None,
    beta: Beta = 0.05,
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
            help="Give another one like it each time one ends, by the calendar; round schedules lists these.",
            show_default=False,
        ),
    ] = None,
    yearly_epsilon: Annotated[
        float | None,
        typer.Option(help="With --renew: the largest epsilon of all that are given in one calendar year (UTC)."),
    ] = None,
    yearly_delta: Annotated[float | None, typer.Option(help="The delta of the yearly epsilon.")] = None,
    accept: Accept = None,
    request_id: RequestId = None,
    profile: Profile = DEFAULT_PROFILE,
    as_json: AsJson = False,
) -> None:
    """Give an analyst a part of a dataset's budget: it can ask from now on, and pays for each statement.

    All of it is reserved on the data account now. What is not spent is counted no more when the grant has ended.
    With --renew the grant ends after that time, and the server gives the next one, within the yearly budget.
    """
    budget = Budget(data_epsilon, data_delta)
    yearly = None
    if renew is not None:
        if until is not None:
            raise InvalidArgument("until", "must not be given with --renew, which says when each ends")
        if yearly_epsilon is None or yearly_delta is None:
            raise InvalidArgument("renew", "needs --yearly-epsilon and --yearly-delta")
        yearly = Budget(yearly_epsilon, yearly_delta)
        until = opening_time(datetime.now(UTC).replace(microsecond=0), renew, 1)

    def give(operator: Operator) -> RoundDetail:
        if request is not None:
            _check_waiting(operator, analyst, request, dataset)
        accepted = tuple(accept or ())
        following = None
        if renew is not None and until is not None and yearly is not None:
            terms = grant_terms(dataset, analyst, budget, None, beta, accepted)
            following = operator.schedule(terms, renew, until, yearly)
        try:
            given = operator.give_grant(
                dataset, analyst, budget, until=until, beta=beta, accepted=accepted, request_id=request_id
            )
        except EquipoiseError:
            if following is not None:
                operator.stop_schedule(following.id)
            raise
        if request is not None:
            operator.decide_grant_request(analyst, request, grant_id=given.round.id)
        return given

    act(profile, as_json, give)


def _check_waiting(operator: Operator, analyst: str, number: int, dataset: str) -> None:
    """Raise `InvalidArgument` before a grant is given for a request that it cannot answer."""
    waiting = {each.number: each.dataset for each in operator.grant_requests() if each.analyst == analyst}
    if number not in waiting:
        raise InvalidArgument("request", f"{number} of {analyst} does not wait")
    if waiting[number] != dataset:
        raise InvalidArgument("request", f"{number} of {analyst} is another: {waiting[number]!r} was asked for")


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
