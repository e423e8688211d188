"""What analysts type to read what a round has released."""

from __future__ import annotations

from itertools import islice
from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from equipoise.clients.analyst import Client
from equipoise.commands.errors_in_words import error_in_words
from equipoise.commands.files import read_statements
from equipoise.commands.options import DEFAULT_PROFILE, AsJson, Profile, RoundId
from equipoise.commands.printing import (
    bars_of,
    counted,
    out,
    print_json,
    print_line,
    print_table,
)
from equipoise.commands.progress import ShownProgress
from equipoise.derived import consistent
from equipoise.frames import Frame, Values, check_suffix
from equipoise.frames import shown as shown_value
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
        Path | None, typer.Option("--out", help="Write all answers to this file: .csv, .json or .parquet.")
    ] = None,
    counts: Annotated[
        bool, typer.Option("--counts", help="Give counts instead of fractions of the records.")
    ] = False,
    with_consistent: Annotated[
        bool,
        typer.Option(
            "--consistent",
            help="Add a column of values that a table can have: none below 0, and the cells of a whole table sum "
            "to all records. Needs the statements.",
        ),
    ] = False,
    profile: Profile = DEFAULT_PROFILE,
    as_json: AsJson = False,
) -> None:
    """Read your results: value, interval, and how each was answered. Reading again is free.

    Values are fractions of the records, or counts. With the round's confidence the truth of every answer lies
    between its low and its high; "uncertified" means that no interval is promised. The standard error is that of
    the noise, where its law is known. Values with nothing but noise on them may lie below 0, so that their sums are
    unbiased; --consistent shows beside them the nearest ones that a table can have.
    """
    asked = read_statements(statements) if statements else ()
    if to is not None:
        check_suffix(to)
    with Client.from_profile(profile) as client:
        shown = client.round(round_id)
        if not asked and shown.terms.session is not None:
            asked = client.session_statements(round_id)
        answers = client.results(round_id, asked)
    frame = answers.frame(shown.records if counts else None)
    if with_consistent:
        nearest = consistent(answers) * (shown.records if counts else 1)
        columns: dict[str, Values] = {}
        for name, column in frame.columns.items():
            columns |= {name: column, "consistent": nearest} if name == "value" else {name: column}
        frame = Frame(columns)
    if to is not None:
        frame.write(to)
    methods = {method.label: count for method, count in answers.counted().items() if count}
    if as_json:
        listed = {"file": to} if to is not None else {"answers": frame.to_dicts()}
        print_json({"round_id": round_id, "queries": len(answers), "methods": methods} | listed)
        return
    if to is None:
        _print_some(frame)
    ways = ", ".join(f"{count:,} {label}" for label, count in methods.items())
    print_line(f"{counted(len(answers), 'answer')}: {ways}")
    if len(answers) and answers.answers.certified.any() and shown.mechanism != "low_sensitivity":
        print_line(f"Half of the intervals reach at most {_typical_reach(answers, shown.records)} to either side.")
    if to is not None:
        print_line(f"Written to {to}.")


def _typical_reach(answers: Results, records: int) -> str:
    """The median half-width in words, beside a typical cell where the statements are known."""
    reaches = (answers.highs - answers.lows)[answers.answers.certified] / 2
    statements = len(answers.labels.statements) if answers.labels is not None else len(answers)
    return error_in_words(float(np.median(reaches)), records, len(answers) / max(1, statements))


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


def _print_some(frame: Frame) -> None:
    """The first rows, with bars as long as the largest value is wide."""
    rows = list(islice(frame.rows(), SHOWN_ROWS))
    bars = bars_of([float(str(row[frame.names.index("value")])) for row in rows])
    print_table(
        (*(name.replace("_", " ") for name in frame.names), ""),
        (
            (query, statement if statement != -1 else "", cell, *map(shown_value, numbers), method, bar)
            for (query, statement, cell, *numbers, method), bar in zip(rows, bars, strict=True)
        ),
    )
    if len(frame) > SHOWN_ROWS:
        out.print(f"... and {len(frame) - SHOWN_ROWS:,} more; --out FILE.csv writes all.", highlight=False)
