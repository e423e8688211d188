"""The command's own parts: exit codes, shares, what is printed."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path

import numpy as np
import pytest
from harness.answers import some_answers
from harness.shown_rounds import ROUND, shown_round

from equipoise.cli import app, main
from equipoise.clients.statement_answer import StatementAnswer
from equipoise.commands.asking import show_answers
from equipoise.commands.columns import in_words, print_round
from equipoise.commands.printing import counted, plain, print_json, print_line, print_table
from equipoise.commands.progress import RunProgress
from equipoise.errors import InvalidArgument
from equipoise.model.accounts import Budget
from equipoise.model.results import AnswerMethod
from equipoise.model.rounds import RoundState, SessionTerms, Share
from equipoise.queries.predicates import attribute
from equipoise.queries.schema import Attribute, Schema
from equipoise.queries.schema_checks import bin_labels
from equipoise.queries.statements import Quantile, Statement, Variance
from equipoise.results import Labels, Results
from equipoise.v1 import types_pb2
from equipoise.wire.printable import printable
from equipoise.wire.rounds import round_detail_from_message
from equipoise_server.cli import main as server_main


@pytest.mark.parametrize(
    ("arguments", "code"), [(["--help"], 0), (["nonsense"], 2), (["submit"], 2), (["operator", "round"], 2)]
)
def test_exit_codes(arguments: list[str], code: int) -> None:
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert (ended.value.code or 0) == code


@pytest.mark.parametrize("program", [main, server_main], ids=["equipoise", "equipoise-server"])
def test_a_program_says_its_version(program: Callable[..., None], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        program(["--version"])
    assert not ended.value.code
    assert capsys.readouterr().out == f"equipoise {metadata.version('equipoise')}\n"


@pytest.mark.parametrize(
    ("made", "missing"),
    [
        (lambda _: None, "there is no such directory"),
        (lambda place: place.write_text("a file"), "there is no such directory"),
        (lambda place: place.mkdir(), "the directory has no profile.toml"),
    ],
    ids=["nothing", "a file", "empty"],
)
def test_a_missing_profile_is_one_line_that_says_where_profiles_come_from(
    made: Callable[[Path], object], missing: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place = tmp_path / "profile"
    made(place)
    with pytest.raises(SystemExit) as ended:
        main(["whoami", "--profile", str(place)])
    assert ended.value.code == 1
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err == (
        f"error: profile {place}: {missing}; name your own with --profile or EQUIPOISE_PROFILE, or make one with: "
        "equipoise enroll\n"
    )


def test_a_number_is_written_with_digits_alone(capsys: pytest.CaptureFixture[str]) -> None:
    plan = ("operator", "round", "plan", "x", "--share", "a=1", "--data-delta", "0", "--analyst-epsilon", "1")
    for given in (("--data-epsilon", "1_0"), ("--data-epsilon=1_0",), ("--data-epsilon", "\u0661")):
        with pytest.raises(SystemExit) as ended:
            main([*plan, *given])
        assert ended.value.code == 2
        assert "Invalid value" in capsys.readouterr().err
    # A name may look so.
    with pytest.raises(SystemExit) as ended:
        main(["whoami", "--profile", "1_0"])
    assert ended.value.code == 1


HOSTILE = "a\x1b[2J\x9b31m\u202eb\nc"


def test_no_text_from_elsewhere_reaches_the_terminal_raw(capsys: pytest.CaptureFixture[str]) -> None:
    print_line(HOSTILE)
    print_table((HOSTILE, "n"), [(HOSTILE, "1")])
    print_json({"a": HOSTILE})
    printed = capsys.readouterr().out
    assert all(each.isprintable() for each in printed.replace("\n", ""))
    assert json.loads(printed.splitlines()[-1]) == {"a": HOSTILE}
    with pytest.raises(SystemExit):
        main(["whoami", "--profile", HOSTILE])
    assert all(each.isprintable() for each in capsys.readouterr().err.replace("\n", ""))


@pytest.mark.parametrize("said", [HOSTILE, "[red]red[/red]", "[/]", "[link=http://127.0.0.1]click[/link]"])
def test_what_a_server_says_of_a_run_is_shown_as_it_is(said: str, capsys: pytest.CaptureFixture[str]) -> None:
    detail = types_pb2.RoundDetail(progress=types_pb2.Progress(phase=said))
    detail.round.CopyFrom(shown_round("a", RoundState.SEALED))
    with RunProgress() as progress:
        progress(round_detail_from_message(detail))
        progress.say(said)
    shown = capsys.readouterr().err
    assert all(each.isprintable() for each in shown.replace("\n", ""))
    assert shown.count(printable(said)) == 2


def test_json_says_it_plainly(capsys: pytest.CaptureFixture[str]) -> None:
    print_json(
        {
            "budget": Budget(1.0, math.inf),
            "time": datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC),
            "digest": b"\x01\xff",
            "state": RoundState.OPEN,
            "file": Path("a b"),
            "text": "long " * 100 + "[red]ü",
            "list": (1, None, True),
        }
    )
    printed = capsys.readouterr().out
    assert printed.count("\n") == 1
    assert json.loads(printed) == {
        "budget": {"epsilon": 1.0, "delta": None},
        "time": "2026-01-02T03:04:05+00:00",
        "digest": "01ff",
        "state": "open",
        "file": "a b",
        "text": "long " * 100 + "[red]ü",
        "list": [1, None, True],
    }


def test_a_schema_is_printed_as_its_file() -> None:
    schema = Schema.from_json('{"a": 2}')
    assert Schema.from_json(json.dumps(plain(schema))) == schema


@pytest.mark.parametrize(
    ("number", "noun", "words"),
    [
        (1, "statement", "1 statement"),
        (0, "statement", "0 statements"),
        (1, "query", "1 query"),
        (2000, "query", "2,000 queries"),
    ],
)
def test_numbers_and_nouns_agree(number: int, noun: str, words: str) -> None:
    assert counted(number, noun) == words


def test_tables_cut_nothing_off_and_read_no_markup(capsys: pytest.CaptureFixture[str]) -> None:
    print_table(("name", "count"), [("x" * 200, "1"), ("[red]y[/red]", "23")])
    printed = capsys.readouterr().out
    assert "x" * 200 in printed
    assert "[red]y[/red]" in printed


def test_attributes_say_what_other_values_count_as() -> None:
    edges = (500.0, 1000.0)
    assert in_words(Attribute("price", bin_labels(edges), edges)) == "price: [500, 1000)"
    said = in_words(Attribute("price", bin_labels(edges), edges, clamp=True))
    assert said == "price: [500, 1000); values outside of the bins count as the nearest"
    said = in_words(Attribute("price", (*bin_labels(edges), "rest"), edges, missing="rest", unknown="rest"))
    assert said == (
        "price: [500, 1000), rest; values outside of the bins count as rest; missing values count as rest"
    )
    said = in_words(Attribute("code", ("a", "b"), unknown="b"))
    assert said == "code: a, b; values that are not listed count as b"


def test_attributes_say_whether_their_order_means_something() -> None:
    assert in_words(Attribute("grade", ("a", "b"), ordered=True)) == "grade: a, b (ordered)"
    assert in_words(Attribute("code", ("[0, 1)",), (0.0, 1.0), ordered=False)) == "code: [0, 1) (in no order)"


def test_a_session_of_one_analyst_warns_of_no_others(capsys: pytest.CaptureFixture[str]) -> None:
    session = SessionTerms(length=5)
    terms = replace(ROUND.terms, session=session, analyst_budget=None)
    print_round(replace(ROUND, terms=terms))
    assert "unprotected            there is one analyst, and nobody to protect it from" in capsys.readouterr().out
    print_round(replace(ROUND, terms=replace(terms, shares=(Share("ann", 2, 4), Share("bob", 2, 4)))))
    assert "one can tell what the other analysts ask" in capsys.readouterr().out
    print_round(replace(ROUND, terms=terms), *terms.shares)  # an analyst is not shown whether there are others
    assert "one can tell what the other analysts ask" in capsys.readouterr().out


@pytest.mark.parametrize("text", ['[{"cells": [0],\n"counts": [NaN]}]', "[0,\n-Infinity]"])
def test_a_number_that_json_does_not_have_is_named_with_its_line(text: str, tmp_path: Path) -> None:
    candidates = tmp_path / "candidates.json"
    candidates.write_text(text)
    budget = ("--data-epsilon", "1", "--data-delta", "0")
    plan = ("operator", "session", "plan", "shop", "--share", "ann=5", "--mechanism", "low_sensitivity", *budget)
    given = [*plan, "--candidates", str(candidates)]
    with pytest.raises(InvalidArgument, match=r"candidates\.json: holds -?(NaN|Infinity), .* in line 2"):
        app(given, standalone_mode=False)
    with pytest.raises(InvalidArgument, match=r"^--options: is not JSON"):
        app([*given, "--options", "{"], standalone_mode=False)


def test_a_count_is_shown_in_records_beside_fractions(capsys: pytest.CaptureFixture[str]) -> None:
    schema = Schema.from_json('{"version": 1, "attributes": [{"name": "size", "categories": ["s", "l"]}]}')
    results = Results(
        "g",
        some_answers(np.array([1 << 39], dtype=np.int64), AnswerMethod.GAUSSIAN, 1 << 38),
        Labels(schema, (attribute("size") == "s",)),
    )
    show_answers([StatementAnswer(1, 0, attribute("size") == "s", results, b"")], 4000, as_json=False)
    (line,) = capsys.readouterr().out.splitlines()
    assert line.split() == ["1", "0.50000", "0.25000", "0.75000", "0.12500", "2,000", "+-", "500", "gaussian"]


def test_a_quantile_is_shown_with_what_it_stands_for(capsys: pytest.CaptureFixture[str]) -> None:
    schema = Schema.from_json('{"version": 1, "attributes": [{"name": "age", "edges": [10, 20, 110]}]}')
    asked: tuple[Statement, ...] = (Quantile("age", 0.5, 0.1), Variance("age"))
    for sequence, statement in enumerate(asked, start=1):
        units = np.array([1 << 38], dtype=np.int64)
        results = Results("s", some_answers(units, AnswerMethod.GAUSSIAN, 1 << 37), Labels(schema, (statement,)))
        show_answers([StatementAnswer(sequence, 0, statement, results, b"")], 100, as_json=False)
    first, second = capsys.readouterr().out.splitlines()
    assert first.split() == ["1", "0.25000", "0.12500", "0.37500", "0.06250", "gaussian", "at", "35"]
    assert second.endswith("gaussian")
