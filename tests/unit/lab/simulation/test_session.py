"""`equipoise-server simulate` with the mechanisms of sessions: statements in order, one file for each analyst."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from equipoise.queries.predicates import attribute
from equipoise.queries.schema import Schema
from equipoise.queries.statements import CountDistinct, Marginal, Statement, Variance
from equipoise.queries.statements_file import statements_to_json
from equipoise_lab.simulation.baselines import LAPLACE, noise_errors
from equipoise_lab.simulation.session_simulate import sensitivities
from equipoise_lab.simulation.session_task import SessionTask, compiled
from equipoise_server.cli import main
from equipoise_server.datasets.dense_counts import DenseCounts

RECORDS = 5000
SCHEMA = Schema.from_json('{"a": 6, "b": 4}')
BINNED = {
    "version": 1,
    "attributes": [{"name": "age", "edges": [0, 10, 20, 30, 40]}, {"name": "b", "categories": ["x", "y"]}],
}
FIRST: list[Statement] = [Marginal(("a",)), attribute("b") == "1", Marginal(("a", "b")), Marginal(("a",))]
SECOND: list[Statement] = [attribute("a") == "0", Marginal(("b",))]
CANDIDATES = [
    {"cells": [0, 5], "counts": [3, 1]},
    {"cells": [2], "counts": [1]},
    {"cells": [1, 3, 7], "counts": [1, 1, 2]},
]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with tables, schemas, and what two analysts ask."""
    directory = tmp_path_factory.mktemp("sessions")
    choose = np.random.default_rng(3)
    rows = np.stack([np.minimum(size - 1, choose.geometric(0.5, RECORDS) - 1) for size in (6, 4)], axis=1)
    (directory / "table.csv").write_text(
        "a,b\n" + "\n".join(",".join(map(str, row)) for row in rows.tolist()) + "\n"
    )
    (directory / "schema.json").write_text('{"a": 6, "b": 4}')
    binned = [f"{age},{'xy'[age % 2]}" for age in choose.integers(0, 40, RECORDS).tolist()]
    (directory / "binned.csv").write_text("\n".join(["age,b", *binned]) + "\n")
    (directory / "binned.json").write_text(json.dumps(BINNED))
    (directory / "first.json").write_text(statements_to_json(FIRST))
    (directory / "second.json").write_text(statements_to_json(SECOND))
    (directory / "statistics.json").write_text(statements_to_json([Variance("age"), CountDistinct(("age", "b"))]))
    (directory / "candidates.json").write_text(json.dumps(CANDIDATES))
    (directory / "none.json").write_text("no JSON")
    return directory


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as ended:
        main(["simulate", *arguments])
    assert isinstance(ended.value.code, int)
    return ended.value.code, *capsys.readouterr()


def files(place: Path, *workloads: str, table: str = "table.csv", schema: str = "schema.json") -> list[str]:
    asked = [part for name in workloads for part in ("--workload", str(place / name))]
    return ["--table", str(place / table), "--schema", str(place / schema), *asked]


def report(capsys: pytest.CaptureFixture[str], *arguments: str) -> Any:
    code, out, problem = run(capsys, *arguments, "--json")
    assert code == 0, problem
    return json.loads(out.splitlines()[-1])


@pytest.mark.slow
@pytest.mark.thin(2)
@pytest.mark.parametrize(("mechanism", "length"), [("online", 6), ("online_private", 4)])
def test_two_analysts_ask_by_turns(
    place: Path, capsys: pytest.CaptureFixture[str], mechanism: str, length: int
) -> None:
    both = ("--mechanism", mechanism, "--eps-data", "4", "--eps-analyst", "4", "--repeat", "2")
    found = report(capsys, *files(place, "first.json", "second.json"), *both)
    assert (found["analysts"], found["statements"], found["queries"]) == (2, 6, 42)
    assert found["length"] == length
    assert found["data_cost"]["epsilon"] <= 4
    if mechanism == "online":
        assert found["analyst_cost"] is None
    else:
        assert 0 < found["analyst_cost"]["epsilon"] <= 4
    for seen in found["runs"]:
        assert sum(seen["statements"].values()) == 6
        assert seen["delivered"]["mean"] <= seen["delivered"]["p99"] <= seen["delivered"]["max"]
        assert seen["outside_interval"] == 0
    again = report(capsys, *files(place, "first.json", "second.json"), *both)
    assert [each | {"seconds": 0} for each in again["runs"]] == [each | {"seconds": 0} for each in found["runs"]]


def test_one_analyst_s_statistics_are_answered_over_candidates(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given = files(place, "statistics.json", table="binned.csv", schema="binned.json")
    forced = ("--set", f"candidates=@{place / 'candidates.json'}", "--set", 'sensitivity="1/1000"')
    found = report(capsys, *given, "--mechanism", "low_sensitivity", "--eps-data", "4", "--length", "5", *forced)
    assert (found["statements"], found["queries"], found["length"]) == (2, 2, 5)
    assert found["alone"]["gaussian"]["mean"] < 0.01
    assert sum(found["runs"][0]["statements"].values()) == 2


def test_errors_of_statistics_are_parts_of_their_ranges(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    given = files(place, "statistics.json", table="binned.csv", schema="binned.json")
    forced = ("--set", f"candidates=@{place / 'candidates.json'}", "--set", "sensitivity=0.001")
    options = ("--mechanism", "low_sensitivity", "--eps-data", "4", "--length", "5", *forced)
    code, out, _ = run(capsys, *given, *options)
    assert code == 0
    assert "Errors, as fractions of each statement's range" in out
    assert "of the records" not in out


def test_people_read_how_statements_were_answered(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, *files(place, "first.json", "second.json"), "--mechanism", "online")
    assert code == 0
    for words in (
        "Laplace noise on each (expected)",
        "online, all it delivered",
        "6 statements (42 queries) by 2 analysts in a session of length 6",
        "% of the statements certified from the hypothesis",
        "the analysts are not protected from one another",
        "runs all truths lay in their intervals",
    ):
        assert words in out


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--mechanism", "online", "--length", "3"], "--length: is 3, but 4 statements in all are asked"),
        (["--mechanism", "online_private", "--length", "3"], "--length: is 3, but 4 turns are asked"),
        (["--mechanism", "online", "--analysts", "2"], "--analysts: is of rounds"),
        (["--mechanism", "online", "--tables-per-analyst", "2"], "--tables-per-analyst: is of rounds"),
        (["--mechanism", "equilibrium", "--length", "3"], "--length: is of sessions"),
        (["--mechanism", "online", "--set", "candidates=@nowhere"], "--set: nowhere cannot be read"),
        (["--mechanism", "online_private", "--unit", "analyst"], "--unit: "),
        (["--mechanism", "low_sensitivity"], "--set: sensitivity: "),
    ],
)
def test_refusals_name_the_option(
    place: Path, capsys: pytest.CaptureFixture[str], options: list[str], words: str
) -> None:
    code, _, problem = run(capsys, *files(place, "first.json"), *options)
    assert code == 1
    assert words in problem


@pytest.mark.parametrize(
    ("names", "mechanism", "words"),
    [
        (("first.json", "second.json"), "equilibrium", "--workload: is one for a round"),
        (("none.json",), "online", "--workload: "),
        (("statistics.json",), "online", "--workload: "),
    ],
)
def test_refused_workloads_are_named(
    place: Path, capsys: pytest.CaptureFixture[str], names: tuple[str, ...], mechanism: str, words: str
) -> None:
    tables = {"table": "binned.csv", "schema": "binned.json"} if names == ("statistics.json",) else {}
    code, _, problem = run(capsys, *files(place, *names, **tables), "--mechanism", mechanism)
    assert code == 1
    assert words in problem


def test_slots_go_by_turns() -> None:
    task = SessionTask(
        SCHEMA, DenseCounts(np.ones(24, np.int64)), {"a": compiled(FIRST, SCHEMA), "b": compiled(SECOND, SCHEMA)}
    )
    assert {name: own.slots.tolist() for name, own in task.asked(slotted=False).items()} == {
        "a": [0, 2, 4, 5],
        "b": [1, 3],
    }
    assert {name: own.slots.tolist() for name, own in task.asked(slotted=True).items()} == {
        "a": [0, 2, 4, 6],
        "b": [1, 3],
    }
    assert task.asked(slotted=True)["a"].statements[0] is task.asked(slotted=True)["a"].statements[3]
    assert task.truth()[:7].tolist() == [4 / 24] * 6 + [6 / 24]


@pytest.mark.parametrize("scale", [0.003, 0.3])
def test_expected_errors_of_laplace_noise_are_those_of_drawn_noise(scale: float) -> None:
    scales = np.repeat([scale, scale / 3], 50)
    errors = noise_errors(LAPLACE, scales)
    wrong = np.abs(np.random.default_rng(1).laplace(size=(8000, len(scales))) * scales)
    for found, seen in ((errors.max, wrong.max(axis=1)), (errors.mean, wrong.mean(axis=1))):
        assert abs(found - seen.mean()) < 6 * seen.std() / math.sqrt(8000) + 1e-3 * scale
    assert np.mean(wrong > errors.p99 + 0.02 * scale) < 0.0125
    assert np.mean(wrong > errors.p99 - 0.02 * scale) > 0.0075


def test_noise_on_each_alone_is_scaled_to_a_statement_s_own_sensitivity() -> None:
    """Replacing a record moves one count of a condition, two of a marginal."""
    (condition,), (marginal,) = compiled([attribute("a") == "0"], SCHEMA), compiled([Marginal(("a", "b"))], SCHEMA)
    assert sensitivities(condition, RECORDS) == (1 / RECORDS, 1 / RECORDS)
    assert sensitivities(marginal, RECORDS) == (2 / RECORDS, math.sqrt(2) / RECORDS)
    (variance,) = compiled([Variance("age")], Schema.from_json(json.dumps(BINNED)))
    assert 0 < sensitivities(variance, RECORDS)[0] == sensitivities(variance, RECORDS)[1] <= 1 / RECORDS
