"""Commands of analysts for their own datasets, their spending, and their requests for grants."""

from __future__ import annotations

from typing import Annotated

import typer

from equipoise.clients.analyst import Client
from equipoise.commands.dataset_columns import MEASURED, OWN_DATASETS, OWN_REQUESTS, SPENT
from equipoise.commands.options import DEFAULT_PROFILE, AsJson, Profile, RequestId
from equipoise.commands.printing import (
    print_facts,
    print_json,
    print_line,
    print_list,
    print_rows,
)
from equipoise.commands.round_lists import OWN_GRANTS
from equipoise.errors import InvalidArgument


def datasets(
    dataset: Annotated[
        str | None, typer.Argument(help="A dataset's name: its attributes and what is measured are shown, too.")
    ] = None,
    profile: Profile = DEFAULT_PROFILE,
    as_json: AsJson = False,
) -> None:
    """List the datasets that you may ask about: those of your rounds, sessions and grants.

    Of one dataset, also the tables that its standing measurement tells, with the standard error of their cells.
    """
    with Client.from_profile(profile) as client:
        found = [each for each in client.datasets() if dataset in (None, each.dataset.name)]
    if dataset is not None and not found:
        raise InvalidArgument("dataset", "is none of a round, a session or a grant of yours")
    print_list("datasets", found, OWN_DATASETS, as_json)
    if as_json or dataset is None:
        return
    (own,) = found
    names = ", ".join(f"{each.name} ({each.size})" for each in own.dataset.schema.attributes)
    waiting = (("round", own.open_rounds), ("session", own.open_sessions), ("grant", own.open_grants))
    print_facts([("attributes (sizes)", names), *((f"open {kind}", each) for kind, ids in waiting for each in ids)])
    if own.measured:
        print_rows(MEASURED, own.measured)
    else:
        print_line("  Nothing is measured of it.")


def budget(
    grant_id: Annotated[
        str | None,
        typer.Argument(
            metavar="[GRANT]", help="A grant's id or dataset: what each statement has cost is shown, too."
        ),
    ] = None,
    profile: Profile = DEFAULT_PROFILE,
    as_json: AsJson = False,
) -> None:
    """Show your open grants: what each allows, what you have spent of it, and what is left, in zCDP.

    Of one grant, also of one that has ended, each statement with what it was wanted for and what it has cost.
    """
    with Client.from_profile(profile) as client:
        if grant_id is None:
            grants, spent = client.grants(), []
        else:
            grants = [client.session(grant_id)]
            spent = list(client.spending(grants[0].id))
    if as_json:
        statements = {} if grant_id is None else {"statements": spent}
        print_json({"grants": grants, **statements})
        return
    print_rows(OWN_GRANTS, [(each, each.grant) for each in grants if each.grant is not None])
    if grant_id is not None:
        print_rows(SPENT, spent)


def request(
    dataset: Annotated[str, typer.Argument(help="The name of the dataset that you want to ask about.")],
    reason: Annotated[str, typer.Argument(help="Why, in one sentence, for your operators.")],
    epsilon: Annotated[
        float, typer.Option(min=0, help="How large a data epsilon you wish for; 0: the operator judges.")
    ] = 0.0,
    request_id: RequestId = None,
    profile: Profile = DEFAULT_PROFILE,
    as_json: AsJson = False,
) -> None:
    """Ask your operators for a grant. No other analyst learns of it; `equipoise requests` shows what comes."""
    with Client.from_profile(profile) as client:
        kept = client.request_grant(dataset, reason, epsilon=epsilon, request_id=request_id)
    if as_json:
        print_json(kept)
    else:
        print_rows(OWN_REQUESTS, [kept])


def requests(profile: Profile = DEFAULT_PROFILE, as_json: AsJson = False) -> None:
    """List your requests for grants, newest first, with what became of them."""
    with Client.from_profile(profile) as client:
        print_list("requests", list(client.grant_requests()), OWN_REQUESTS, as_json)
