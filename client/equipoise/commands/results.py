"""What analysts type to read what a round has released."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from equipoise.clients.analyst import Client
from equipoise.commands.files import read_statements
from equipoise.commands.options import DEFAULT_PROFILE, AsJson, Profile, RoundId
from equipoise.commands.printing import (
    counted,
    fraction,
    out,
    print_json,
    print_line,
    print_table,
)
from equipoise.commands.progress import ShownProgress
from equipoise.errors import InvalidArgument
from equipoise.results import Results
from equipoise.synopsis import write_synopsis

SHOWN_ROWS = 20


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
    """Read your results: value, interval, and how each was answered. Reading again is free.

    Values are fractions of the records. With the round's confidence the truth of every answer lies between its low
    and its high; "uncertified" means that no interval is promised. The standard error is that of the noise, where
    its law is known. Values with nothing but noise on them may lie below 0, so that their sums are unbiased.
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
    to: Annotated[Path, typer.Option("--out", help="The file to write: .parquet, or CSV.")],
    profile: Profile = DEFAULT_PROFILE,
    as_json: AsJson = False,
) -> None:
    """Download the synopsis of a released round: a table of synthetic records, for further questions.

    A CSV or Parquet file with the labels of the schema. It is a private output already, so whatever is computed
    from it costs nothing; no interval is promised for it. Mechanisms that answer each analyst alone make none.
    """
    with Client.from_profile(profile) as client, ShownProgress("records") as progress:
        schema = client.schema_of(client.round(round_id))
        records = write_synopsis(client.stream_synopsis(round_id), schema, to, progress)
    if as_json:
        print_json({"round_id": round_id, "records": records, "file": to})
    else:
        print_line(f"{records:,} records written to {to}.")


def _write(results: Results, to: Path) -> None:
    try:
        if to.suffix == ".csv":
            results.to_csv(to)
        else:
            to.write_text(json.dumps({"version": 1, "answers": results.to_dicts()}) + "\n", encoding="utf-8")
    except OSError as error:
        raise InvalidArgument("--out", f"{to} cannot be written: {error.strerror}") from None


def _print_some(results: Results) -> None:
    rows = list(enumerate(results))
    print_table(
        ("query", "statement", "cell", "value", "low", "high", "standard error", "method"),
        (
            (
                query,
                answer.statement if answer.statement != -1 else "",
                " / ".join(answer.cell),
                *map(fraction, (answer.value, answer.low, answer.high, answer.standard_error)),
                answer.method.label,
            )
            for query, answer in rows[:SHOWN_ROWS]
        ),
    )
    if len(rows) > SHOWN_ROWS:
        out.print(f"... and {len(rows) - SHOWN_ROWS:,} more; --out FILE.csv writes all.", highlight=False)
