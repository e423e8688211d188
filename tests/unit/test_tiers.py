"""The tiers of the tests: together they are all tests. In two are only those that the quick one samples."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Sequence
from itertools import chain
from pathlib import Path

import pytest
from harness.dealing import deal

TESTS = Path(__file__).parents[1]
PROMISES = TESTS.parent / "docs" / "promises.md"
CITED = re.compile(r"`(tests/[\w/]+\.py::test_\w+)`")
TRIED = TESTS / "property" / "test_pairs.py"
AUDITED = TESTS / "statistical" / "test_joint_audit.py"
# With cases on both stores, with one in n of its cases in the quick tier, and left out of it.
SOME = (
    TESTS / "hostile" / "crash" / "test_random_kills.py",
    TESTS / "unit" / "mechanisms" / "equilibrium" / "test_degenerate.py",
    TESTS / "statistical" / "test_replay.py",
    TRIED,
    AUDITED,
)


def collected(tier: str, paths: Sequence[Path] = SOME, *more: str) -> list[str]:
    """The ids of the tests of a tier in these files, in order."""
    options = ("--collect-only", "--override-ini", "addopts=--import-mode=importlib", "-q", "--tier", tier, *more)
    told = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *options, *map(str, paths)],
        cwd=TESTS.parent,
        env={name: value for name, value in os.environ.items() if name != "PYTEST_ADDOPTS"},
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    return [line for line in told.splitlines() if "::" in line]


@pytest.mark.nightly
def test_every_test_is_in_one_part() -> None:
    parts = [collected("all", [AUDITED], "--audit-size", "nightly", "--part", f"{each}/3") for each in (1, 2, 3)]
    assert all(parts)
    assert sorted(each for part in parts for each in part) == sorted(collected("all", [AUDITED]))


@pytest.mark.nightly
def test_every_test_is_in_one_tier() -> None:
    quick, rest, nightly, everything = (collected(tier) for tier in ("quick", "rest", "nightly", "all"))
    assert set(quick + rest + nightly) == set(everything)
    assert set(rest).isdisjoint(quick + nightly)
    in_both = set(quick) & set(nightly)
    assert {each.partition("::")[0].rpartition("/")[2] for each in in_both} == {TRIED.name, AUDITED.name}
    assert len(set(everything)) == len(everything)
    assert {each.partition("[")[0] for each in quick} == {each.partition("[")[0] for each in everything} - {
        "tests/statistical/test_replay.py::test_released_rounds_are_replayed_by_other_processes",
        "tests/statistical/test_joint_audit.py::test_a_real_server_gives_the_same_bytes",
        "tests/statistical/test_joint_audit.py::test_faults_are_refuted_at_the_fast_size",
        "tests/statistical/test_joint_audit.py::test_what_is_charged_nothing_tells_nothing",
    }
    (kills,) = (each for each in quick if "random_kills" in each)
    assert "sqlite" in kills
    least = "::test_the_least_of_every_option_is_played_or_refused["
    assert 6 * sum(least in each for each in quick) == sum(least in each for each in everything)


@pytest.mark.full
def test_of_every_promise_the_quick_tier_runs_a_test() -> None:
    quick = {each.partition("[")[0] for each in collected("quick", [TESTS])}
    rows = [line for line in PROMISES.read_text(encoding="utf-8").splitlines() if CITED.search(line)]
    assert len(rows) > 90
    assert [row for row in rows if quick.isdisjoint(CITED.findall(row))] == []


@pytest.mark.parametrize("hands", [2, 3, 4])
def test_every_process_begins_with_modules_of_long_tests_and_ends_with_short_ones(hands: int) -> None:
    modules = [[f"served {module}/{test}" for test in range(module + 1)] for module in range(8)]
    slow, quick = [f"slow {number}" for number in range(7)], [f"quick {number}" for number in range(60)]
    order = deal(modules, slow, quick, hands)
    assert sorted(order) == sorted([*chain.from_iterable(modules), *slow, *quick])
    start = 0
    for left in range(hands, 0, -1):
        size = (len(order) - start) // left
        kinds = [test.partition(" ")[0] for test in order[start : start + size]]
        assert kinds == sorted(kinds, key=["served", "slow", "quick"].index)
        assert (kinds[0], kinds[-1]) == ("served", "quick")
        start += size
    for module in modules:
        first = order.index(module[0])
        assert order[first : first + len(module)] == module
    assert deal([], [], [], hands) == []
