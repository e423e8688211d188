"""`plan` and `simulate` for persons with several records: what a server would plan, charge and count."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from harness.orders import SCHEMA, Row, made_rows, written

from equipoise.model.accounts import Budget
from equipoise_lab.simulation.baselines import gaussian_deviation, gaussian_errors
from equipoise_server.cli import main

PERSONS = 200
PLANNED = ("--universe", "4x5x4", "--queries", "40", "--analysts", "2", "--delta-data", "1e-6")
NEEDED = ("gaussian", "laplace", "histogram", "pooled", "multiplicative_weights", "equilibrium")


def run(capsys: pytest.CaptureFixture[str], *given: str) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as ended:
        main(list(given))
    assert isinstance(ended.value.code, int)
    return ended.value.code, *capsys.readouterr()


def told(capsys: pytest.CaptureFixture[str], *given: str) -> Any:
    code, out, err = run(capsys, *given, "--json")
    assert code == 0, err
    return json.loads(out.splitlines()[-1])


@pytest.fixture
def orders(tmp_path: Path) -> tuple[str, ...]:
    rows: list[Row] = made_rows(PERSONS)
    written(tmp_path, "csv", rows)
    (tmp_path / "schema.json").write_text(SCHEMA.to_json())
    return "--table", str(tmp_path / "orders.csv"), "--schema", str(tmp_path / "schema.json")


@pytest.mark.full
def test_a_plan_for_persons_costs_them_no_more_and_errs_by_the_same_fraction(
    capsys: pytest.CaptureFixture[str],
) -> None:
    alone = told(capsys, "plan", "--records", "1000000", *PLANNED)
    several = told(capsys, "plan", "--records", "16000000", "--person-records", "16", *PLANNED)
    assert several["person_records"] == 16
    one, all_of_them = (
        {each["mechanism"]: each for each in found["mechanisms"] if each["feasible"]} for found in (alone, several)
    )
    assert set(NEEDED) <= one.keys() & all_of_them.keys()
    for name in ("gaussian", "laplace"):
        assert all_of_them[name]["max_half_width"] == pytest.approx(one[name]["max_half_width"], rel=0.02)
    for each in all_of_them.values():
        assert each["data_cost"]["epsilon"] <= 1
    code, out, err = run(capsys, "plan", "--records", "16000000", "--person-records", "16", *PLANNED)
    assert code == 0, err
    assert "16,000,000 records, 16 of each person, of 80 possible ones" in out


@pytest.mark.slow
def test_by_default_delta_is_that_of_as_many_persons(capsys: pytest.CaptureFixture[str]) -> None:
    given = ("plan", "--records", "4000", "--universe", "4x5x4", "--queries", "40", "--analysts", "2")
    assert told(capsys, *given)["data_budget"]["delta"] == 1 / 4000**2
    assert told(capsys, *given, "--person-records", "4")["data_budget"]["delta"] == 1 / 1000**2


@pytest.mark.sparse(5)
@pytest.mark.thin(8)
@pytest.mark.slow
@pytest.mark.parametrize(
    ("given", "records"),
    [
        (("--mode", "events", "--records", "4"), 4),
        (("--mode", "average", "--records", "4"), 4),
        (("--mode", "one"), 1),
    ],
)
@pytest.mark.parametrize(
    "mechanism",
    [
        ("--mechanism", "auto"),
        ("--mechanism", "gaussian"),
        ("--mechanism", "standing"),
        ("--mechanism", "online_private", "--workload", "marginals:1"),
    ],
)
def test_a_table_is_simulated_as_it_would_be_registered(
    orders: tuple[str, ...],
    capsys: pytest.CaptureFixture[str],
    given: tuple[str, ...],
    records: int,
    mechanism: tuple[str, ...],
) -> None:
    asked = ("--workload", "marginals:2", "--eps-data", "8", "--repeat", "2")
    found = told(capsys, "simulate", *orders, "--person", "who", *given, *asked, *mechanism)
    assert found["records"] == PERSONS * records
    assert found["person_records"] == records
    assert found["universe_size"] == (80 if "events" in given else 4 * 3 * 3)
    assert found["data_cost"]["epsilon"] <= 8
    for each in found["runs"]:
        assert each["outside_interval"] == 0
    if "gaussian" in mechanism:
        # Each of the three tables is moved twice by each record of a person.
        noise = records * gaussian_deviation(6, PERSONS * records, Budget(8.0, 1 / PERSONS**2))
        assert found["gaussian"]["mean"] == gaussian_errors(noise, found["queries"]).mean


REFUSED = [
    ("plan --records 1000 --person-records 3", "--person-records: must lie between 1 and 4,096"),
    ("simulate --mode events --records 4", "--person: must name a column just where rows are not"),
    ("simulate --person who --mode one --records 4", "--records: must be 1 in the mode one"),
    ("simulate --records 4", "--records: must be 1 in the mode rows"),
    ("simulate --person good", "--person: 'good' is an attribute"),
    ("simulate --person nobody", "--table: person: the table has no column named 'nobody'"),
    ("simulate --person who --records 2 --mechanism low_sensitivity", "--mechanism: low_sensitivity answers"),
]


@pytest.mark.parametrize(("given", "problem"), REFUSED)
def test_refusals_name_the_option(
    orders: tuple[str, ...], capsys: pytest.CaptureFixture[str], given: str, problem: str
) -> None:
    more = PLANNED if given.startswith("plan") else (*orders, "--workload", "marginals:1")
    code, _, err = run(capsys, *given.split(), *more)
    assert code == 1
    assert err.strip().startswith(f"error: {problem}")
