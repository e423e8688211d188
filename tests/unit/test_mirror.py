"""`tests/unit` has the folders of the packages, so that whoever changes a folder knows where its tests are."""

from __future__ import annotations

from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
UNIT = ROOT / "tests" / "unit"
# Below `tests/unit`: which folder holds the tests of each package.
PACKAGES = {"client/equipoise": "", "server/equipoise_server": "", "server/equipoise_lab": "lab"}
# What all mechanisms of the registry have in common is tested once.
SHARED = {"mechanisms/contract"}
# Folders whose tests are not beside those of their neighbours, and where they are.
ELSEWHERE = {
    "console/auditor": "tests/integration/test_console_operator.py",
    "console/operator": "tests/integration/test_console_operator.py",
    "console/analyst": "tests/integration/test_console_analyst.py",
    "v1": "generated; `make drift` compares it with the protos",
    "queries/statements": "tests/unit/queries/test_statements_file.py",
    "mechanisms/epochs": "tests/statistical/test_epochs.py",
    "datasets/database": "tests/unit/datasets/test_database.py",
    "datasets/files": "tests/unit/datasets/test_files.py",
    "datasets/persons": "tests/unit/datasets/test_person_tables.py",
    "datasets/spark": "tests/unit/datasets/test_spark.py",
    "datasets/sql": "tests/unit/datasets/test_database.py",
    "mechanisms/histogram": "tests/statistical/test_histogram.py",
    "mechanisms/independent_noise": "tests/statistical/test_independent_noise.py",
    "mechanisms/multiplicative_weights": "tests/statistical/test_multiplicative_weights.py",
    "mechanisms/projection": "tests/statistical/test_projection.py",
    "mechanisms/repair": "tests/unit/mechanisms/equilibrium/test_analyst_unit.py",
    "mechanisms/small_db": "tests/statistical/test_small_database.py",
    "replay": "tests/integration/test_replay.py",
    "rounds/store": "tests/integration/test_rounds_life.py",
    "storage/migrations": "tests/unit/storage/test_store.py",
    "storage/migrations/versions": "tests/unit/storage/test_store.py",
    "storage/tables": "tests/unit/storage/test_store.py",
}


def folders(top: Path, pattern: str) -> set[Path]:
    """The folders below `top` in which files match, relative to it."""
    return {path.parent.relative_to(top) for path in top.rglob(pattern)} - {Path()}


MIRRORED = {
    (Path(below) / folder).as_posix()
    for package, below in PACKAGES.items()
    for folder in folders(ROOT / package, "*.py") | ({Path()} if below else set())
}
TESTED = {folder.as_posix() for folder in folders(UNIT, "test_*.py")}


def test_every_folder_of_tests_is_a_folder_of_a_package() -> None:
    assert {"wire", "ledger", "mechanisms/equilibrium", "lab/planning"} < MIRRORED
    assert TESTED - MIRRORED == SHARED


def test_every_folder_of_a_package_has_its_folder_of_tests_or_is_said_to_be_tested_elsewhere() -> None:
    assert MIRRORED - TESTED - {"lab"} <= set(ELSEWHERE)


@pytest.mark.parametrize("place", sorted(place for place in ELSEWHERE.values() if place.startswith("tests/")))
def test_the_tests_elsewhere_exist(place: str) -> None:
    assert (ROOT / place).is_file()
