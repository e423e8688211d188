"""The tool that tries mutants refuses a list that does not fit, and tells what survives; its page has the list."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TOOL = ROOT / "tools" / "mutants.py"
CODE = "def charge(amount: int) -> int:\n    return max(amount, 0) + 1\n"
TESTS = """from charging import charge


def test_a_charge_is_rounded_up() -> None:
    assert charge(2) == 3


def test_nothing_is_compared() -> None:
    assert charge
"""
LIST = """
[[mutant]]
name = "nothing is added"
origin = "a test"
file = "client/charging.py"
find = "{find}"
replace = "{replace}"
{verdict}
"""
CATCHING = 'tests = ["tests/test_charging.py::test_a_charge_is_rounded_up"]'
BLIND = 'tests = ["tests/test_charging.py::test_nothing_is_compared"]'


def told(*arguments: str) -> subprocess.CompletedProcess[str]:
    """What the tool prints, and how it ends."""
    return subprocess.run([sys.executable, str(TOOL), *arguments], capture_output=True, text=True, check=False)


def tree(path: Path, find: str = " + 1", replace: str = "", verdict: str = CATCHING) -> Path:
    """A tree of one module, one file of tests and one mutant."""
    files = {
        "client/charging.py": CODE,
        "tests/test_charging.py": TESTS,
        "tools/mutants.toml": LIST.format(find=find, replace=replace, verdict=verdict),
        "pytest.ini": "[pytest]\n",
    }
    for name, content in files.items():
        (path / name).parent.mkdir(parents=True, exist_ok=True)
        (path / name).write_text(content, encoding="utf-8")
    subprocess.run(["git", "init", "--quiet"], cwd=path, check=True)
    return path


@pytest.mark.full
def test_the_page_has_the_whole_list_and_its_totals() -> None:
    totals, table = told("--table").stdout.split("\n\n")
    assert table.count("\n") > 80
    page = (ROOT / "docs" / "mutants.md").read_text(encoding="utf-8")
    assert totals in page
    assert table in page


@pytest.mark.slow
@pytest.mark.thin(4)
@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"find": " + 2"}, "stands 0 times in client/charging.py, not once"),
        ({"find": "amount"}, "stands 2 times in client/charging.py, not once"),
        ({"replace": " + 1  # as before"}, "does not change the code of client/charging.py"),
        ({"verdict": 'tests = ["tests/test_charging.py::test_that_is_gone"]'}, "there is no test"),
        ({"verdict": 'tests = ["tests/test_gone.py::test_that_is_gone"]'}, "there is no test"),
        ({"verdict": 'tests = ["tests/test_charging.py"]'}, "there is no test tests/test_charging.py"),
        ({"verdict": ""}, "needs tests, or a reason"),
        ({"verdict": CATCHING + '\nequal = "as it is"'}, "needs tests, or a reason"),
    ],
)
def test_a_list_that_does_not_fit_is_refused_by_the_mutant(
    tmp_path: Path, change: dict[str, str], problem: str
) -> None:
    done = told("--tree", str(tree(tmp_path, **change)), "--check")
    assert done.returncode == 2
    assert done.stderr.startswith("nothing is added: ")
    assert problem in done.stderr


@pytest.mark.full
@pytest.mark.slow
def test_a_mutant_is_caught_in_a_copy_and_the_tree_stays_as_it_is(tmp_path: Path) -> None:
    done = told("--tree", str(tree(tmp_path)))
    assert done.returncode == 0, done.stdout + done.stderr
    assert "caught by tests/test_charging.py::test_a_charge_is_rounded_up" in done.stdout
    assert (tmp_path / "client" / "charging.py").read_text(encoding="utf-8") == CODE


@pytest.mark.full
@pytest.mark.slow
def test_a_mutant_that_survives_is_told_and_fails_the_run(tmp_path: Path) -> None:
    done = told("--tree", str(tree(tmp_path, verdict=BLIND)))
    assert (done.returncode, "SURVIVED" in done.stdout) == (1, True)


@pytest.mark.slow
def test_a_test_that_fails_without_any_mutant_shows_nothing(tmp_path: Path) -> None:
    place = tree(tmp_path)
    (place / "client" / "charging.py").write_text(CODE + "\ncharge = None\n", encoding="utf-8")
    assert told("--tree", str(place)).returncode == 2


@pytest.mark.full
@pytest.mark.slow
def test_a_mutant_with_which_no_test_can_run_is_not_caught(tmp_path: Path) -> None:
    """A name that is nowhere defined proves nothing of the tests."""
    done = told("--tree", str(tree(tmp_path, find="def charge(", replace="def other(")))
    assert (done.returncode, "BROKEN" in done.stdout) == (1, True)
