"""`equipoise-server simulate` on a small table: every option, every error, the same numbers for the same seed."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from equipoise.commands.person_options import PersonOptions
from equipoise.model.accounts import Budget
from equipoise.queries.predicates import attribute
from equipoise.queries.statements import Marginal
from equipoise.queries.statements_file import statements_to_json
from equipoise_lab.options import usual_delta
from equipoise_lab.simulation.baselines import gaussian_deviation, gaussian_errors
from equipoise_lab.simulation.task import Analysts, load_task
from equipoise_server.cli import main
from equipoise_server.mechanisms.budget_rounding import usable_delta
from equipoise_server.mechanisms.equilibrium.options import OPTIONS

pytestmark = pytest.mark.slow

SIZES = {"a": 6, "b": 4, "c": 3}
RECORDS = 5000


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with a table, a schema and two workloads."""
    directory = tmp_path_factory.mktemp("simulation")
    choose = np.random.default_rng(3)
    columns = [np.minimum(size - 1, choose.geometric(0.5, RECORDS) - 1) for size in SIZES.values()]
    rows = "\n".join(",".join(map(str, row)) for row in zip(*columns, strict=True))
    (directory / "table.csv").write_text(f"{','.join(SIZES)}\n{rows}\n")
    (directory / "schema.json").write_text(json.dumps(SIZES))
    statements = [attribute("a") == str(value) for value in range(6)] * 20
    (directory / "workload.json").write_text(statements_to_json([*statements, Marginal(("b", "c"))]))
    (directory / "unknown.json").write_text(statements_to_json([attribute("z") == "1"]))
    return directory


def arguments(place: Path, *more: str, workload: str = "marginals:2") -> list[str]:
    files = ["--table", str(place / "table.csv"), "--schema", str(place / "schema.json")]
    asked = [] if "--workload" in more else ["--workload", workload]
    return ["simulate", *files, *asked, "--mechanism", "equilibrium", *more]


def report(capsys: pytest.CaptureFixture[str], place: Path, *more: str, workload: str = "marginals:2") -> Any:
    """The parsed last line of a run that succeeds."""
    with pytest.raises(SystemExit) as ended:
        main(arguments(place, *more, "--json", workload=workload))
    shown = capsys.readouterr()
    assert ended.value.code == 0, shown.err
    return json.loads(shown.out.splitlines()[-1])


GAME = ("rounds=12", "batch=4", "draws=2", "density=1", "data_rate=0.01", "query_rate=0.1")
FREE = ("--eps-analyst", "inf", "--set", "rounds=30")


def test_json_keys_and_budgets_with_the_analysts_protected(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    game = ("--prior", "none", "--eps-data", "4", "--eps-analyst", "8")
    found = report(capsys, place, *game, workload=str(place / "workload.json"))
    assert found.keys() == {
        *("records", "person_records", "universe_size", "analysts", "statements", "queries", "unit", "beta"),
        "mechanism",
        *("parameters", "data_cost", "analyst_cost", "predicted", "uniform", "gaussian", "mean_over_runs", "runs"),
        "peak_memory_bytes",
    }
    assert (found["records"], found["universe_size"], found["analysts"]) == (RECORDS, 72, 10)
    assert (found["statements"], found["queries"]) == (121, 132)
    assert found["data_cost"]["epsilon"] <= 4
    assert found["data_cost"]["delta"] == 1 / RECORDS**2
    assert 0 < found["analyst_cost"]["epsilon"] <= 8
    assert found["analyst_cost"]["delta"] == 1e-6
    (run,) = found["runs"]
    assert sum(run["answered_by"].values()) == 132
    assert run["outside_interval"] == found["mean_over_runs"]["broken"] == 0
    assert max(run["analysts_with"].values()) <= 10 <= sum(run["analysts_with"].values())
    assert run["uncertified"] <= found["predicted"]["max_uncertified"]
    assert run["certified"]["max"] <= found["predicted"]["max_half_width"]
    assert run["synopsis"].keys() == run["delivered"].keys() == found["uniform"].keys() == {"max", "p99", "mean"}
    assert found["predicted"]["game_bound"] > 0
    assert found["peak_memory_bytes"] > 2**20


def test_without_protection_the_whole_budget_goes_to_the_game_and_nothing_is_certified(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = report(
        capsys, place, "--prior", "none", "--eps-analyst", "inf", "--budget-split", "game=1", "--repeat", "2"
    )
    assert found["analyst_cost"] is None
    assert found["parameters"]["repair"] is None
    assert found["parameters"]["game"]["play"] == "sampled"
    assert 0.9 < found["data_cost"]["epsilon"] <= 1
    assert found["predicted"]["max_half_width"] == 1
    for run in found["runs"]:
        assert run["certified"] is None
        assert run["answered_by"] == {"uncertified": found["queries"]}
        assert run["analysts_with"] == {"uncertified": found["analysts"]}
        assert run["synopsis"]["max"] < found["uniform"]["max"] / 2
        assert run["delivered"]["max"] == pytest.approx(run["synopsis"]["max"], abs=1e-9)
    assert found["mean_over_runs"]["uncertified"] == found["queries"]


def test_a_dead_game_is_as_wrong_as_the_uniform_guess(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    dead = report(capsys, place, *FREE, "--budget-split", "game=1", "--set", "data_rate=0")
    assert dead["runs"][0]["synopsis"]["max"] > 0.9 * dead["uniform"]["max"]
    assert dead["predicted"]["game_bound"] is None


def test_the_same_seed_gives_the_same_numbers_and_repeats_count_on(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first = report(capsys, place, *FREE, "--seed", "7", "--repeat", "2")["runs"]
    again = report(capsys, place, *FREE, "--seed", "8")["runs"][0]
    assert [run["seed"] for run in first] == [7, 8]
    assert {**first[1], "seconds": 0} == {**again, "seconds": 0}
    assert first[0]["synopsis"] != first[1]["synopsis"]


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (("--play", "mixed"), ("play", "mixed")),
        (("--play", "hru"), ("batch", 1)),
        (("--play", "sampled", "--set", "draws=3"), ("draws", 3)),
        (("--set", "units=query"), ("density", 1.0)),
        (("--mechanism", "equilibrium", "--unit", "query", "--delta-data", "1e-9"), ("rounds", 30)),
        (("--beta", "0.2", "--delta-analyst", "1e-5", "--analysts", "3"), ("rounds", 30)),
    ],
)
def test_options_reach_the_plan(
    place: Path, capsys: pytest.CaptureFixture[str], options: tuple[str, ...], expected: tuple[str, object]
) -> None:
    found = report(capsys, place, *FREE, *options)
    assert found["parameters"]["game"][expected[0]] == expected[1]
    assert found["analysts"] == 3
    assert found["mean_over_runs"]["certified"] is not None


def test_a_prior_is_asked_for_or_declined(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    unplayed = report(capsys, place, "--prior", "own")
    assert unplayed["parameters"]["game"] is None
    assert report(capsys, place, *FREE, "--prior", "own")["parameters"]["game"]["rounds"] == 30
    assert report(capsys, place, *FREE, "--prior", "none")["parameters"]["prior"] is None
    with pytest.raises(SystemExit):
        main(arguments(place, "--prior", "own"))
    assert "nothing is played" in " ".join(capsys.readouterr().out.split())


def test_runs_start_or_answer_from_a_measurement_that_was_made_before_and_is_not_charged(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    own = report(capsys, place, "--prior", "own")
    started = report(capsys, place, "--prior", "standing", "--repeat", "2")
    answered = report(capsys, place, "--mechanism", "standing", "--repeat", "2")
    assert '"round": "simulated"' in json.dumps(started["parameters"])
    assert (answered["mechanism"], answered["data_cost"]["epsilon"]) == ("standing", 0)
    for each in (started, answered):
        assert each["mean_over_runs"]["delivered"]["mean"] < 2 * own["mean_over_runs"]["delivered"]["mean"]
    # One measurement for all runs, and another one from another seed.
    first, second = (run["delivered"]["mean"] for run in answered["runs"])
    other = report(capsys, place, "--mechanism", "standing", "--seed", "1")["runs"][0]["delivered"]["mean"]
    assert first == second != other


def test_people_read_a_table(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(arguments(place, *FREE, "--repeat", "2"))
    shown = capsys.readouterr().out
    assert ended.value.code == 0
    for part in ("mean of 2 runs", "uniform guess", "Gaussian", "before repair", "not protected", "in 2 of 2 runs"):
        assert part in shown


@pytest.mark.slow
@pytest.mark.thin(2)
@pytest.mark.parametrize(
    ("options", "named"),
    [
        (("--mechanism", "oracle"), "--mechanism: unknown"),
        (("--play", "chess"), "--play: must be"),
        (("--prior", "chess"), "--prior: must be own, standing or none"),
        (("--unit", "dataset"), "--unit: must be"),
        (("--analysts", "0"), "--analysts: must lie between 1 and the 3"),
        (
            ("--analysts", "4"),
            "--analysts: must lie between 1 and the 3 statements, not 4: each statement goes to one",
        ),
        (("--tables-per-analyst", "0"), "--tables-per-analyst: must lie between 1 and the 3 statements, not 0"),
        (("--tables-per-analyst", "4"), "--tables-per-analyst: must lie between 1 and the 3 statements, not 4"),
        (("--tables-per-analyst", "2", "--analysts", "0"), "--analysts: must be at least 1, and with 2 tables"),
        (
            ("--tables-per-analyst", "2", "--analysts", "600000"),
            "--analysts: must be at least 1, and with 2 tables each at most 524,288, not 600,000",
        ),
        (
            ("--tables-per-analyst", "1", "--analysts", "500000", "--workload", "marginals:3"),
            "--analysts, --tables-per-analyst: would be up to 36,000,000 queries in all",
        ),
        (("--eps-data", "0"), "--eps-data: must"),
        (("--eps-data", "nan"), "--eps-data: must"),
        (("--eps-data", "inf"), "--eps-data: must"),
        (("--eps-data", "60"), "--eps-data, --delta-data: must have"),
        (("--eps-analyst", "-1"), "--eps-analyst: must"),
        (("--eps-analyst", "nan"), "--eps-analyst: must"),
        (("--eps-analyst", "60"), "--eps-analyst, --delta-analyst: must have"),
        (("--delta-data", "1"), "--delta-data: must"),
        (("--delta-analyst", "0"), "--delta-analyst: must"),
        (("--beta", "1"), "--beta: must"),
        (("--seed", "-1"), "--seed: must"),
        (("--repeat", "0"), "--repeat: must"),
        (("--budget-split", "game=2"), "--budget-split: must"),
        (("--budget-split", "repair=1"), "--budget-split: must"),
        (("--budget-split", "game"), "--budget-split: must"),
        (("--set", "rounds"), "--set: must be NAME=VALUE"),
        (("--set", "luck=1"), "--set: luck: unknown"),
        (("--set", "rounds=1.5"), "--set: rounds: must be a whole number"),
        (("--set", "density=1000"), "--set: density must"),
        (("--eps-analyst", "8", "--set", "units=query"), "--set: units: must be statement"),
        (("--workload", "marginals:9"), "--workload: marginals:9: needs a number from 1 to the 3"),
        (("--workload", "marginals:all"), "--workload: marginals:all: needs a number"),
        (("--workload", f"marginals:{'9' * 5000}"), "--workload: marginals:99999"),
        (("--set", "rounds=4", "--set", "rounds=5"), "--set: rounds is set twice"),
        (("--play", "mixed", "--set", "play=mixed"), "--set: play is also what --play says"),
        (
            ("--budget-split", "game=1", "--set", "game_share=1"),
            "--set: game_share is also what --budget-split says",
        ),
        (("--budget-split", "game=nan"), "--budget-split: must"),
        (("--mechanism", "pooled", "--budget-split", "game=1"), "--budget-split: unknown; there is cells"),
        (("--mechanism", "pooled", "--set", "game_share=1"), "--set: game_share: unknown; there is cells"),
        (("--mechanism", "pooled", "--set", "cut_off=3"), "--set: cut_off: has no effect without repair"),
        (("--beta", "nan"), "--beta: must"),
        (("--beta", "1e-300"), "--beta: must"),
        (("--delta-data", "nan"), "--delta-data: must"),
        (("--delta-data", "1e-300"), "--eps-data, --delta-data: must have a larger delta"),
        (
            ("--eps-analyst", "1", "--delta-analyst", "1e-300"),
            "--eps-analyst, --delta-analyst: must have a larger delta",
        ),
        (("--delta-analyst", "nan"), "--delta-analyst: must"),
        (("--eps-data", "1e300"), "--eps-data, --delta-data: must have"),
        (("--eps-data", "-inf"), "--eps-data: must"),
        (("--seed", "99999999999999999999"), "--seed: must"),
        (("--repeat", "1001"), "--repeat: must"),
        (
            ("--mechanism", "equilibrium", "--unit", "analyst", "--analysts", "1", "--prior", "none"),
            "--workload, --analysts: the game needs at least 2 analysts",
        ),
        (
            ("--mechanism", "equilibrium", "--workload", "marginals:3", "--prior", "none"),
            "--workload, --analysts: the game needs at least 2 statements",
        ),
        *(
            (("--set", f"{name}={value}"), f"--set: {name}: must be")
            for name in OPTIONS
            for value in ("nan", "inf", "-1")
        ),
        (("--set", "rounds=0"), "--set: rounds: must be"),
        (("--workload", "nowhere.json"), "--workload: nowhere.json: cannot be read"),
        (("--table", "nowhere.csv"), "--table: there is no such file"),
        (("--schema", "nowhere.json"), "--schema: nowhere.json: cannot be read"),
        (("--mechanism", "equilibrium", "--eps-data", "1e-7"), "--eps-data, --eps-analyst: no game"),
    ],
)
def test_refusals_are_one_line_that_names_the_option(
    place: Path, capsys: pytest.CaptureFixture[str], options: tuple[str, ...], named: str
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(arguments(place, "--eps-analyst", "inf", *options))
    assert ended.value.code == 1
    shown = capsys.readouterr()
    (line,) = [line for line in shown.err.splitlines() if line.strip()]
    assert line.startswith(f"error: {named}")
    assert not shown.out


def test_a_table_of_any_size_has_a_delta_by_default() -> None:
    deltas = [usual_delta(records) for records in (1, 1000, 10**12)]
    assert deltas == [0.1, 1e-6, 1e-17]
    assert all(usable_delta(Budget(1.0, delta)) > 0 for delta in deltas)


@pytest.mark.nightly
def test_analysts_draw_tables_within_shares_that_do_not_tell_which(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given = ("--analysts", "40", "--tables-per-analyst", "2", "--unit", "analyst", "--eps-data", "4")
    drawn = [
        load_task(place / "table.csv", place / "schema.json", "marginals:2", Analysts(40, 2, seed), PersonOptions())
        for seed in (5, 6)
    ]
    found = report(capsys, place, *given, *FREE, "--seed", "5")
    assert (found["analysts"], found["statements"]) == (40, 80)
    assert found["queries"] == drawn[0].together.query_count == sum(found["runs"][0]["answered_by"].values())
    assert found["queries"] != drawn[1].together.query_count
    # The largest two of the tables of 24, 18 and 12 cells, each of which one record moves twice; a cell of the last
    # is a twelfth of the universe.
    assert {(s.statements, s.queries, s.sensitivity, s.support) for s in drawn[0].shares} == {(2, 42, 4, 6)}
    # Noise for all the tables that the shares allow, however often the same ones are asked for.
    noise = gaussian_deviation(2 * 80, RECORDS, Budget(4.0, 1 / RECORDS**2))
    assert found["gaussian"] == asdict(gaussian_errors(noise, found["queries"]))
    report(capsys, place, *given, *FREE, "--seed", "5", workload=str(place / "workload.json"))


def test_a_workload_on_unknown_attributes_is_refused(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(arguments(place, workload=str(place / "unknown.json")))
    assert ended.value.code == 1
    assert "--workload: statements[0]" in capsys.readouterr().err


@pytest.mark.thin(3)
@pytest.mark.parametrize("unit", ["query", "analyst"])
@pytest.mark.parametrize("play", ["mixed", "sampled"])
@pytest.mark.parametrize("epsilon", ["8", "inf"])
@pytest.mark.parametrize("split", [(), ("--budget-split", "game=1"), ("--budget-split", "game=0.3")])
def test_every_combination_plays_within_its_budgets(
    place: Path, capsys: pytest.CaptureFixture[str], unit: str, play: str, epsilon: str, split: tuple[str, ...]
) -> None:
    """Few rounds, so that every game fits; a run each, and a bound that fails one run in a thousand."""
    given = ("--unit", unit, "--play", play, "--eps-analyst", epsilon, "--beta", "0.001", "--analysts", "12")
    small = [x for each in GAME for x in ("--set", each)]
    found = report(capsys, place, *given, *split, *small, workload=str(place / "workload.json"))
    assert (found["unit"], found["parameters"]["game"]["play"]) == (unit, play)
    assert found["data_cost"]["epsilon"] <= 1
    if epsilon == "inf":
        assert found["analyst_cost"] is None
    else:
        assert 0 < found["analyst_cost"]["epsilon"] <= 8
    (run,) = found["runs"]
    assert sum(run["answered_by"].values()) == found["queries"] == 132
    assert run["outside_interval"] == 0
    assert run["uncertified"] == run["answered_by"].get("uncertified", 0)
    if split == ("--budget-split", "game=1"):
        assert (run["certified"], found["parameters"]["repair"]) == (None, None)
    else:
        assert run["certified"]["max"] <= found["predicted"]["max_half_width"]
    if unit == "analyst":
        assert sum(run["analysts_with"].values()) == 12  # each is answered in one way
