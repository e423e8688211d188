"""What analysts type."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from equipoise.clients.analyst import Client
from equipoise.commands.columns import OWN_ROUNDS, in_words, print_round
from equipoise.commands.options import DEFAULT_PROFILE, AsJson, Profile, RequestId, RoundId, Statements
from equipoise.commands.printing import (
    counted,
    err,
    out,
    print_facts,
    print_json,
    print_line,
    print_list,
    print_table,
)
from equipoise.commands.progress import ShownProgress
from equipoise.errors import InvalidArgument, WrongState
from equipoise.model.results import AnswerMethod
from equipoise.model.rounds import RoundState
from equipoise.profile.receipt_store import RECEIPTS
from equipoise.queries.schema import Schema
from equipoise.queries.statements import Statement
from equipoise.queries.statements_file import statements_from_json
from equipoise.results import Results
from equipoise.synopsis import write_csv

SHOWN_ROWS = 20


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
    profile: Profile = DEFAULT_PROFILE,
    as_json: AsJson = False,
) -> None:
    """Show what can be asked about: the attributes of a dataset and their categories.

    With --json the schema file itself, as `equipoise-server data check` reads it.
    """
    with Client.from_profile(profile) as client:
        registered = client.dataset(dataset)
    if as_json:
        print_json(registered.schema)
        return
    for attribute in registered.schema.attributes:
        print_line(in_words(attribute))
    print_line(f"{registered.records:,} records in a universe of {registered.schema.universe_size:,}.")


def dry_run(
    round_id: RoundId, statements: Statements, profile: Profile = DEFAULT_PROFILE, as_json: AsJson = False
) -> None:
    """Check a statements file against a round and predict its error. Leaves no trace, costs nothing."""
    asked = read_statements(statements)
    with Client.from_profile(profile) as client:
        result = client.dry_run(round_id, asked)
    if as_json:
        print_json(result)
        return
    size = f"{counted(result.statements, 'statement')}, {counted(result.queries, 'query')}"
    print_line(f"{size}; one record replaced changes their counts by at most {result.sensitivity:,} in sum.")
    print_line(f"Every query covers or excludes at most {counted(result.support, 'cell')} of the universe.")
    print_line(f"Every certified answer will be within {result.error_bound:.4g} of the truth.")
    uncertified = counted(result.max_uncertified, "answer")
    print_line(f"At most {uncertified} of the whole round can end without a bound.")


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
    """Take your workload back, as long as the round accepts workloads. Nobody learns that there was one."""
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


def results(
    round_id: RoundId,
    statements: Annotated[
        Path | None,
        typer.Option(
            help="The statements file that was submitted: labels every answer with statement and cell. Those of a "
            "session have their labels without it."
        ),
    ] = None,
    to: Annotated[
        Path | None, typer.Option("--out", help="Write all answers to this file: .csv, or .json.")
    ] = None,
    profile: Profile = DEFAULT_PROFILE,
    as_json: AsJson = False,
) -> None:
    """Read your results: value, error bound, and how each was answered. Reading again is free.

    Values are fractions of the records. "uncertified" means that no bound is promised.
    """
    asked = read_statements(statements) if statements else ()
    if to is not None and to.suffix not in (".csv", ".json"):
        raise InvalidArgument("--out", "must end in .csv or .json")
    with Client.from_profile(profile) as client:
        if not asked and client.round(round_id).terms.session is not None:
            asked = client.session_statements(round_id)
        answers = client.results(round_id, asked)
    if to is not None:
        _write(answers, to)
    methods = {method.label: count for method, count in answers.counted().items() if count}
    if as_json:
        listed = {"file": to} if to is not None else {"answers": answers.to_dicts()}
        print_json({"round_id": round_id, "queries": len(answers), "methods": methods} | listed)
        return
    if to is None:
        _print_some(answers)
    ways = ", ".join(f"{count:,} {label}" for label, count in methods.items())
    print_line(f"{counted(len(answers), 'answer')}: {ways}")
    if to is not None:
        print_line(f"Written to {to}.")


def synopsis(
    round_id: RoundId,
    to: Annotated[Path, typer.Option("--out", help="The CSV file to write.")],
    profile: Profile = DEFAULT_PROFILE,
    as_json: AsJson = False,
) -> None:
    """Download the synopsis of a released round as a table of made-up records, to ask further questions of.

    A CSV file with the labels of the schema. It is a private output already, so whatever is computed from it costs
    nothing; it carries no error bound. Mechanisms that answer each analyst alone make none.
    """
    with Client.from_profile(profile) as client, ShownProgress("records") as progress:
        schema: Schema = client.dataset(client.round(round_id).terms.dataset).schema
        records = write_csv(client.stream_synopsis(round_id), schema, to, progress)
    if as_json:
        print_json({"round_id": round_id, "records": records, "file": to})
    else:
        print_line(f"{records:,} records written to {to}.")


def read_statements(path: Path) -> tuple[Statement, ...]:
    """The statements of a file. Raises `InvalidArgument` naming the file or the statement."""
    return statements_from_json(read_text(path))


def read_text(path: Path) -> str:
    """A text file. Raises `InvalidArgument` naming it."""
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise InvalidArgument(str(path), f"cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise InvalidArgument(str(path), "is not UTF-8 text") from None


def _write(results: Results, to: Path) -> None:
    try:
        if to.suffix == ".csv":
            results.to_csv(to)
        else:
            to.write_text(json.dumps({"version": 1, "answers": results.to_dicts()}) + "\n", encoding="utf-8")
    except OSError as error:
        raise InvalidArgument("--out", f"{to} cannot be written: {error.strerror}") from None


def _print_some(results: Results) -> None:
    rows = results.to_dicts()
    print_table(
        ("query", "statement", "cell", "value", "bound", "method"),
        (
            (
                row["query"],
                row["statement"] if row["statement"] != -1 else "",
                row["cell"],
                f"{row['value']:.5f}",
                "" if row["method"] == AnswerMethod.UNCERTIFIED.label else f"{row['bound']:.5f}",
                row["method"],
            )
            for row in rows[:SHOWN_ROWS]
        ),
    )
    if len(rows) > SHOWN_ROWS:
        out.print(f"... and {len(rows) - SHOWN_ROWS:,} more; --out FILE.csv writes all.", highlight=False)
