"""What analysts type to ask in SQL."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from equipoise.clients.analyst import Client
from equipoise.commands.asking import Epsilon, Relative, Rho, Unprotected, WantedError
from equipoise.commands.options import DEFAULT_PROFILE, AsJson, Profile, RoundId
from equipoise.commands.printing import bars_of, counted, print_json, print_line, print_table
from equipoise.errors import InvalidArgument
from equipoise.frames import Frame, check_suffix, shown
from equipoise.model.rounds import RoundState
from equipoise.profile.kept_sql import keep_sql
from equipoise.queries.text_file import read_text
from equipoise.questions.questions import Questions

SHOWN_ROWS = 60


def sql(
    round_id: RoundId,
    query: Annotated[
        str, typer.Argument(metavar="SQL", help="SQL in quotes, or the name of a file that ends in .sql.")
    ],
    to: Annotated[
        Path | None,
        typer.Option("--out", help="Write the answer to this file: .csv, .json or .parquet; of several, numbered."),
    ] = None,
    fractions: Annotated[
        bool, typer.Option("--fractions", help="Show counts as fractions of the records.")
    ] = False,
    accept_unprotected: Unprotected = False,
    rho: Rho = None,
    error: WantedError = None,
    epsilon: Epsilon = None,
    relative: Relative = None,
    profile: Profile = DEFAULT_PROFILE,
    as_json: AsJson = False,
) -> None:
    """Ask in SQL: submit to an open round, read a released one's answers, or ask in sessions or of grants.

    SELECT origin, COUNT(*) FROM flights WHERE dep_delay >= 15 GROUP BY origin

    What was understood is printed first, and kept in the profile for `equipoise verify`. With EXPLAIN before a
    SELECT, nothing is submitted or asked: what it would come to is printed. Of a released round the same questions
    must be given that were submitted. docs/sql.md says what can be asked.
    """
    if to is not None:
        check_suffix(to)
    price = {"rho": rho, "error": error, "epsilon": epsilon, "relative": relative}
    with Client.from_profile(profile) as client:
        text = read_text(Path(query)) if query.endswith(".sql") else query
        state = client.session(round_id)
        questions = client.sql(state.id, text)
        if not as_json:
            for line in questions.understood:
                print_line(f"understood as: {line}")
        explained = any(question.explain for question in questions)
        submitted = state.terms.session is None and state.state is RoundState.OPEN and bool(questions.statements)
        if to is not None and (explained or submitted):
            raise InvalidArgument("--out", "is for answers, and there is none yet; leave it out")
        if explained:
            unpriced = state.grant is not None and all(each is None for each in price.values())
            asked = bool(questions.statements) and not unpriced
            of_statements = client.explain(state.id, questions, **price) if asked else None
            of_numbers = client.explain_numbers(state.id, questions, **price) if asked else None
            _explain(questions, of_statements, of_numbers, as_json)
        elif submitted:
            receipt = client.submit(state.id, questions)
            keep_sql(profile, state.id, questions.kept)
            if as_json:
                print_json({"understood": questions.understood, "receipt": receipt})
            else:
                print_line(f"Submitted {counted(receipt.statements, 'statement')}; any before are replaced.")
        else:
            frames = client.frames(
                state.id, questions, fractions=fractions, accept_unprotected=accept_unprotected, **price
            )
            _show(frames, questions, to, as_json)


def _explain(questions: Questions, expected: Frame | None, numbers: Frame | None, as_json: bool) -> None:
    """Print how many statements the questions are, and the expected errors of them and of what is shown."""
    if as_json:
        told = {"understood": questions.understood, "statements": len(questions.statements)}
        rows = {
            "expected": [] if expected is None else expected.to_dicts(),
            "numbers": [] if numbers is None else numbers.to_dicts(),
        }
        print_json(told | rows)
        return
    print_line(f"{counted(len(questions.statements), 'statement')} would be asked.")
    if expected is not None:
        print_line("Expected: the mean error, and the most that an interval reaches to either side, in the unit.")
        if np.asarray(expected["binning"]).any():
            print_line("The interval of a sum is wider by `binning` for each record that is added up.")
        _print_rows([[*map(shown, row)] for row in expected.rows()], expected.names)
        if numbers is not None:
            print_line("What is shown, of groups of so many records each; conditions hold for half of them:")
            _print_rows([[*map(shown, row)] for row in numbers.rows()], numbers.names)
    elif questions.statements:
        print_line(
            "Errors follow from the price of a grant's statements: say --error, --relative, --rho or --epsilon."
        )


def _show(frames: tuple[Frame, ...], questions: Questions, to: Path | None, as_json: bool) -> None:
    files = [] if to is None else [to] if len(frames) == 1 else [_numbered(to, each) for each in range(len(frames))]
    for frame, file in zip(frames, files, strict=False):
        frame.write(file)
    if as_json:
        listed = {"files": files} if files else {"answers": [frame.to_dicts() for frame in frames]}
        print_json({"understood": questions.understood} | listed)
    elif files:
        print_line(f"Written to {', '.join(map(str, files))}.")
    else:
        for frame in frames:
            _print(frame)


def _numbered(file: Path, place: int) -> Path:
    return file.with_stem(f"{file.stem}-{place + 1}")


def _print(frame: Frame) -> None:
    """A table with bars for its first column of numbers."""
    first = next(name for name in frame.names if f"{name}_low" in frame.columns)
    rows = frame.to_dicts()
    bars = bars_of([float(str(row[first] or 0)) for row in rows])
    shown_rows = [[*map(shown, row.values()), bar] for row, bar in zip(rows, bars, strict=True)]
    _print_rows(shown_rows, (*frame.names, ""))


def _print_rows(rows: list[list[str]], names: tuple[str, ...]) -> None:
    """The first rows of a table."""
    print_table(names, rows[:SHOWN_ROWS])
    if len(rows) > SHOWN_ROWS:
        print_line(f"... and {len(rows) - SHOWN_ROWS:,} more; --out FILE.csv writes all.")
