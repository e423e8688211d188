"""What analysts type before a round is released."""

from __future__ import annotations

from typing import Annotated

import typer

from equipoise.clients.analyst import Client
from equipoise.commands.columns import in_words, print_round
from equipoise.commands.errors_in_words import error_in_words
from equipoise.commands.files import read_statements
from equipoise.commands.options import DEFAULT_PROFILE, AsJson, Profile, RequestId, RoundId, Statements
from equipoise.commands.printing import (
    counted,
    err,
    print_facts,
    print_json,
    print_line,
    print_list,
)
from equipoise.commands.round_lists import OWN_ROUNDS
from equipoise.errors import WrongState
from equipoise.model.datasets import DatasetState
from equipoise.model.rounds import RoundState
from equipoise.profile.receipt_store import RECEIPTS
from equipoise.queries.universe_size import size_in_words


def rounds(profile: Profile = DEFAULT_PROFILE, as_json: AsJson = False) -> None:
    """List the rounds in which you have a share, newest first."""
    with Client.from_profile(profile) as client:
        print_list("rounds", list(client.rounds()), OWN_ROUNDS, as_json)


def show(round_id: RoundId, profile: Profile = DEFAULT_PROFILE, as_json: AsJson = False) -> None:
    """Show one round or session: its state, its budgets, your share, and how much of a session is answered."""
    with Client.from_profile(profile) as client:
        shown = client.round(round_id)
    if as_json:
        print_json(shown)
    else:
        print_round(shown, *shown.terms.shares)


def schema(
    dataset: Annotated[str, typer.Argument(help="The dataset's name, as `equipoise rounds` shows it.")],
    version: Annotated[
        int, typer.Option(min=0, help="Its version, as `equipoise rounds` shows it; 0: the newest of your rounds.")
    ] = 0,
    profile: Profile = DEFAULT_PROFILE,
    as_json: AsJson = False,
) -> None:
    """Show the schema of a dataset: its attributes and their categories.

    With --json the schema file itself, as `equipoise-server data check` reads it.
    """
    with Client.from_profile(profile) as client:
        registered = client.dataset(dataset, version)
    if as_json:
        print_json(registered.schema)
        return
    for attribute in registered.schema.attributes:
        print_line(in_words(attribute))
    size = size_in_words(registered.schema.universe_size)
    print_line(f"{registered.records:,} records in a universe of {size}: version {registered.version}.")
    print_line(f"Whose privacy: {registered.persons.in_words()}.")
    if registered.state is not DatasetState.ACTIVE:
        print_line(f"It is {registered.state}: no new rounds will be about it.")


def dry_run(
    round_id: RoundId, statements: Statements, profile: Profile = DEFAULT_PROFILE, as_json: AsJson = False
) -> None:
    """Check a statements file against a round and predict its error. The server keeps nothing of it."""
    asked = read_statements(statements)
    with Client.from_profile(profile) as client:
        result, records = client.dry_run(round_id, asked), client.round(round_id).records
    if as_json:
        print_json(result)
        return
    size = f"{counted(result.statements, 'statement')}, {counted(result.queries, 'query')}"
    print_line(f"{size}; one record replaced changes their counts by at most {result.sensitivity:,} in sum.")
    print_line(f"Every query covers or excludes at most {counted(result.support, 'cell')} of the universe.")
    cells = result.queries / max(1, result.statements)
    promised, expected = (
        error_in_words(error, records, cells) for error in (result.max_half_width, result.expected_error)
    )
    print_line(f"The interval of a certified answer will have a half-width of at most {promised}.")
    print_line(f"An answer of the round is expected to err by {expected} in the mean.")
    uncertified = counted(result.max_uncertified, "answer")
    print_line(f"At most {uncertified} of the whole round can end without an interval.")


def submit(
    round_id: RoundId,
    statements: Statements,
    request_id: RequestId = None,
    profile: Profile = DEFAULT_PROFILE,
    as_json: AsJson = False,
) -> None:
    """Submit a statements file; until the round is sealed, submitting again replaces it.

    The file is JSON, for example:

    {"version": 1, "statements": [{"marginal": ["origin", "month"]},
    {"among": {"attribute": "carrier", "categories": ["AA", "UA"]}},
    {"not": {"interval": {"attribute": "distance", "low": null, "high": 400}}}]}

    Conditions are among, interval (half-open; null is infinite), all, any and not. A marginal may have a condition
    beside it, "where": only the records that satisfy it are counted. No other analyst learns what
    you ask, nor that you asked.
    """
    asked = read_statements(statements)
    with Client.from_profile(profile) as client:
        receipt = client.submit(round_id, asked, request_id)
    if as_json:
        print_json(receipt)
        return
    print_facts(
        [
            ("accepted", f"{counted(receipt.statements, 'statement')}, {counted(receipt.queries, 'query')}"),
            ("SHA-256", receipt.workload_digest.hex()),
            ("at", f"{receipt.accept_time:%Y-%m-%d %H:%M:%S} UTC"),
            ("signed receipt in", profile / RECEIPTS / round_id),
        ]
    )


def withdraw(
    round_id: RoundId, request_id: RequestId = None, profile: Profile = DEFAULT_PROFILE, as_json: AsJson = False
) -> None:
    """Withdraw your workload, as long as the round is open. No other analyst learns that there was one."""
    with Client.from_profile(profile) as client:
        client.withdraw(round_id, request_id)
    if as_json:
        print_json({"round_id": round_id, "withdrawn": True})
    else:
        print_line("Withdrawn.")


def wait(round_id: RoundId, profile: Profile = DEFAULT_PROFILE, as_json: AsJson = False) -> None:
    """Wait until the results of a round can be read; exits with 1 if it was aborted instead."""
    with Client.from_profile(profile) as client, err.status("waiting") as status:
        shown = client.wait(round_id, lambda each: status.update(f"the round is {each.state}"))
    if as_json:
        print_json(shown)
    else:
        print_round(shown, *shown.terms.shares)
    if shown.state is not RoundState.RELEASED:
        raise WrongState(f"the round was aborted: {shown.abort_reason}")
