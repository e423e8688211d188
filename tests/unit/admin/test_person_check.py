"""What `data check --person` shows the custodian: rows a person, what each number of records drops and costs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from equipoise.errors import InvalidArgument
from equipoise_server.admin.person_check import Choice, find_persons
from equipoise_server.cli import app

ROWS = ["ann"] * 1 + ["bob"] * 2 + ["cyd"] * 2 + ["dan"] * 5
SCHEMA = '{"version": 1, "attributes": [{"name": "good", "categories": ["a"]}]}'


def place(directory: Path, rows: list[str]) -> Path:
    (directory / "schema.json").write_text(SCHEMA)
    (directory / "orders.csv").write_text("who,good\n" + "".join(f"{row},a\n" for row in rows))
    return directory / "orders.csv"


def test_quantiles_and_what_each_number_drops(tmp_path: Path) -> None:
    found = find_persons(place(tmp_path, ROWS), "who")
    assert (found.persons, found.rows) == (4, 10)
    assert found.quantiles == {0.0: 1, 0.25: 1, 0.5: 2, 0.75: 2, 0.9: 5, 0.99: 5, 0.999: 5, 1.0: 5}
    assert found.choices == (Choice(1, 3, 6, 0), Choice(2, 1, 3, 1), Choice(4, 1, 1, 7), Choice(8, 0, 0, 22))


def test_rows_without_a_person_are_counted(tmp_path: Path) -> None:
    with pytest.raises(InvalidArgument, match="table: 2 rows have no person in the column 'who'"):
        find_persons(place(tmp_path, [*ROWS, "", ""]), "who")


@pytest.mark.slow
def test_the_command_says_who_is_a_person(tmp_path: Path) -> None:
    table = place(tmp_path, ROWS)
    asked = ["data", "check", "--table", str(table), "--schema", str(tmp_path / "schema.json")]
    without = CliRunner().invoke(app, asked)
    assert "each row is its own person: whoever has several rows is protected less" in " ".join(
        without.output.split()
    )
    shown = CliRunner().invoke(app, [*asked, "--person", "who"]).output
    assert "4 persons with 10 rows." in shown
    assert "6 (60.0%)" in shown
    told = json.loads(CliRunner().invoke(app, [*asked, "--person", "who", "--json"]).output)
    assert told["persons"]["choices"][0] == {"records": 1, "cut": 3, "dropped": 6, "nothing": 0}
