"""The commands by which operators give, list and end grants."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

import typer

from equipoise.clients.operator import Operator
from equipoise.commands.columns import GRANTS
from equipoise.commands.dangers import Accept
from equipoise.commands.options import DEFAULT_PROFILE, AsJson, Profile, RequestId
from equipoise.commands.printing import print_list
from equipoise.commands.rounds import act
from equipoise.commands.terms_options import Beta, DataDelta, Dataset
from equipoise.model.accounts import Budget
from equipoise.model.rounds import GRANT

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
    accept: Accept = None,
    request_id: RequestId = None,
    profile: Profile = DEFAULT_PROFILE,
    as_json: AsJson = False,
) -> None:
    """Give an analyst a part of a dataset's budget: it can ask from now on, and pays for each statement.

    All of it is reserved on the data account now. What is not spent is counted no more when the grant has ended.
    """
    budget = Budget(data_epsilon, data_delta)
    act(
        profile,
        as_json,
        lambda operator: operator.give_grant(
            dataset,
            analyst,
            budget,
            until=until,
            beta=beta,
            accepted=tuple(accept or ()),
            request_id=request_id,
        ),
    )


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
