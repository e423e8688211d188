"""`equipoise-server audit empirical`: what it finds out, what it says, and what it refuses."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from harness.mechanism_cases import OPTIONS
from numpy.typing import NDArray

from equipoise.model.accounts import Budget
from equipoise_lab.audit.clopper_pearson import detectable_epsilon, largest_certified, power
from equipoise_lab.audit.empirical import Finding, audit, audited, claim_of
from equipoise_lab.audit.neighbours import Instance
from equipoise_lab.audit.run_statistics import GROUPS, QuantileBins, RunStatistics
from equipoise_server.cli import main
from equipoise_server.mechanisms.interface import Outcome
from equipoise_server.mechanisms.registry import MECHANISMS
from equipoise_server.randomness.discrete_laplace import DiscreteLaplace
from equipoise_server.randomness.stream import KeyedStream

pytestmark = pytest.mark.slow

LEVEL = 1e-7
SMALL = Instance("3x2", 40, 3, 1, "query", Budget(1.0, 0.01), Budget(4.0, 0.01), 0.1, {})


def silent(_phase: str, _done: int, _total: int) -> None:
    """A progress that nobody watches."""


def found(name: str, instance: Instance, side: str, runs: int) -> list[Finding]:
    """What runs with seeds 0, 1, 2, ... prove of one side."""
    plan = MECHANISMS[name].plan(instance.setting)
    cost = plan.data_cost if side == "data" else plan.charged_analyst_cost
    budget = instance.data_budget if side == "data" else instance.analyst_budget
    seeds, claim = count(), claim_of(cost, budget)
    pairs = [pair for pair in instance.neighbours() if pair.side == side]
    return [
        audited(instance, plan, pair, claim, runs, LEVEL, lambda: next(seeds).to_bytes(32, "big"), silent)
        for pair in pairs
    ]


def ended(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    """The exit code of the command, and what it prints on either stream."""
    with pytest.raises(SystemExit) as exit_of:
        main(["audit", "empirical", *arguments])
    assert isinstance(exit_of.value.code, int)
    return exit_of.value.code, *capsys.readouterr()


@pytest.mark.parametrize("unit", ["query", "analyst"])
@pytest.mark.parametrize("universe", ["3", "3x2", "2x2x3"])
def test_neighbours_differ_in_what_is_protected_and_nothing_else(unit: str, universe: str) -> None:
    moved, *changed = replace(SMALL, universe=universe, unit=unit, statements=3).neighbours()
    first, second = moved.inputs
    assert np.abs(first.data.dense() - second.data.dense()).sum() == 2
    assert first.data.records == second.data.records == SMALL.records
    assert first.workloads is second.workloads
    # Every query of everybody moves.
    assert all((first.data.count(own) - second.data.count(own) == 1).all() for own in first.workloads.values())
    for pair in changed:
        first, second = pair.inputs
        assert (first.data.dense() == second.data.dense()).all()
        assert all(
            (first.workloads[name] is second.workloads[name]) == (name != "analyst-1") for name in first.workloads
        )
        assert pair.viewers == ("analyst-2", "analyst-3")
        answers = [each.data.count(each.workloads["analyst-1"]) for each in pair.inputs]
        assert (answers[0] == answers[1]).all()
        records = np.eye(pair.margin.size, dtype=np.int64)
        asked = [each.workloads["analyst-1"] for each in pair.inputs]
        cells = [np.array([own.counts(record) for record in records]) for own in asked]
        differing = (cells[0] != cells[1]).any(axis=0)
        assert differing.sum() == (1 if unit == "query" else 3)
        assert (cells[0][:, 0] - cells[1][:, 0] == pair.margin).all()


@pytest.mark.nightly
@pytest.mark.slow
@pytest.mark.parametrize("unit", ["query", "analyst"])
@pytest.mark.parametrize("name", MECHANISMS)
def test_every_mechanism_can_be_audited(name: str, unit: str) -> None:
    """Too few runs to refute much; the sizes that do are in `tests/statistical`."""
    options = OPTIONS.get(name, {}) | ({"ways": 1, "synopsis": 64} if name == "pooled" else {})
    told = list[tuple[Any, ...]]()
    instance = replace(SMALL, unit=unit, options=options)
    seeds = count()
    done = audit(
        name, instance, 20, LEVEL, lambda: next(seeds).to_bytes(32, "big"), lambda *each: told.append(each)
    )
    assert [each.neighbours.side for each in done.findings] == ["data", "analysts", "analysts"]
    assert len(told) == next(seeds) == 3 * 4 * 20
    assert not done.refuted
    assert all(each.claim.epsilon <= 4.0 for each in done.findings)


@pytest.mark.nightly
def test_noise_at_a_tenth_of_its_scale_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not any(each.refuted for each in found("laplace", SMALL, "data", 150))
    draw = DiscreteLaplace.draw

    def too_little(noise: DiscreteLaplace, number: int, stream: KeyedStream) -> NDArray[np.int64]:
        return draw(noise, number, stream) // 10

    monkeypatch.setattr(DiscreteLaplace, "draw", too_little)
    assert all(each.refuted for each in found("laplace", SMALL, "data", 150))


@pytest.mark.full
def test_answers_that_tell_of_another_analyst_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of perfect privacy nothing may be seen; here a grain is, in an answer of the last of all others."""
    sound = MECHANISMS["laplace"]

    class Leaking:
        name = "laplace"
        plan = staticmethod(sound.plan)

        @staticmethod
        def run(setting, plan, histogram, workloads, seed, progress):  # type: ignore[no-untyped-def]
            told = sound.run(setting, plan, histogram, workloads, seed, progress)
            grain = int(workloads["analyst-1"].covered()[0])
            last = told.answers["analyst-3"]
            leaked = replace(last, lows=np.zeros_like(last.lows), highs=np.full_like(last.highs, grain))
            return Outcome(dict(told.answers) | {"analyst-3": leaked}, told.synopsis)

    assert not any(each.refuted for each in found("laplace", SMALL, "analysts", 60))
    monkeypatch.setitem(MECHANISMS, "laplace", Leaking())
    assert all(each.refuted for each in found("laplace", SMALL, "analysts", 60))


@pytest.mark.parametrize(("runs", "delta", "claim"), [(300, 0.0, 0.0), (300, 0.01, 1.0), (2000, 1e-6, 2.0)])
def test_what_is_said_to_be_detectable_is_detected(runs: int, delta: float, claim: float) -> None:
    """Randomised response with that epsilon is, and with a little less it is not."""
    smallest = detectable_epsilon(runs, delta, 0.001, claim, 0.9)
    assert smallest is not None

    def chance(epsilon: float) -> float:
        odds = np.exp(epsilon)
        return power((odds + delta) / (1 + odds), (1 - delta) / (1 + odds), runs, delta, 0.001, claim)

    assert chance(smallest) >= 0.9 > chance(smallest - 0.002)


def test_what_so_few_runs_cannot_certify_is_not_detectable() -> None:
    assert detectable_epsilon(50, 0.0, 0.001, largest_certified(50, 0.0, 0.001), 0.9) is None
    assert detectable_epsilon(50, 0.0, 0.001, 50.0, 0.9) is None


def test_numbers_are_grouped_evenly_and_constants_are_not_divided() -> None:
    runs: list[RunStatistics] = [((number, 7, 0, 0, number % 2), ((2, 1),)) for number in range(1600)]
    groups = QuantileBins(runs)
    outcomes = [groups.outcome(run) for run in runs]
    sums, counts = np.unique([outcome[0] for outcome in outcomes], return_counts=True)
    assert len(sums) <= 2 * GROUPS
    assert counts.max() <= 1600 // GROUPS
    assert len({outcome[1] for outcome in outcomes}) == 1
    assert len({outcome[4] for outcome in outcomes}) == 2
    assert groups.outcome(((-5, 7, 0, 0, 0), ((2, 1),)))[0] == 0


@pytest.mark.nightly
@pytest.mark.slow
def test_it_says_what_is_certified_and_how_far(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    options = ("--mechanism", "laplace", "--runs", "40", "--records", "40", "--level", "1e-9")
    code, out, _ = ended(capsys, *options, "--chart", str(tmp_path / "chart.svg"))
    assert code == 0
    assert "claimed: at most" in (tmp_path / "chart.svg").read_text().replace("&#32;", " ")
    assert "is no proof of privacy" in out
    assert "'none': so few runs" in out

    code, out, _ = ended(capsys, *options, "--json", "--chart", str(tmp_path / "chart.png"))
    told = json.loads(out)
    assert code == 0
    assert (tmp_path / "chart.png").read_bytes().startswith(b"\x89PNG")
    assert told["refuted"] is False
    assert [each["side"] for each in told["findings"]] == ["data", "analysts", "analysts"]
    assert all(each["certified_epsilon"] <= each["claimed"]["epsilon"] for each in told["findings"])
    assert told["findings"][0]["detectable_epsilon"] is None


@pytest.mark.nightly
@pytest.mark.slow
def test_it_ends_with_1_where_a_claim_is_refuted(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(DiscreteLaplace, "draw", lambda noise, number, stream: np.zeros(number, dtype=np.int64))
    options = ("--mechanism", "laplace", "--runs", "40", "--records", "40", "--chart", str(tmp_path / "chart.svg"))
    code, out, _ = ended(capsys, *options)
    assert code == 1
    assert "REFUTED: the mechanism, as it runs here" in out
    code, out, _ = ended(capsys, *options, "--json")
    assert code == 1
    assert [each["refuted"] for each in json.loads(out)["findings"]] == [True, False, False]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--mechanism", "nonsense"), "--mechanism: unknown"),
        (("--mechanism", "laplace", "--runs", "3"), "--runs: must lie between 20"),
        (("--mechanism", "laplace", "--level", "0"), "--level: must lie between 0 and 1"),
        (("--mechanism", "laplace", "--universe", "2"), "--universe: must be sizes"),
        (("--mechanism", "laplace", "--universe", "1x5"), "--universe: must have at most 8 attributes of 2"),
        (("--mechanism", "laplace", "--universe", "100x100"), "--universe: must be sizes"),
        (("--mechanism", "laplace", "--analysts", "1"), "--analysts: must lie between 2"),
        (("--mechanism", "laplace", "--records", "0"), "--records: must lie between 1"),
        (("--mechanism", "laplace", "--statements", "0"), "--statements: must lie between 1"),
        (("--mechanism", "laplace", "--unit", "cell"), "--unit: must be"),
        (("--mechanism", "laplace", "--eps-analyst", "inf"), "--eps-analyst, --delta-analyst: must be finite"),
        (("--mechanism", "laplace", "--delta-data", "1e-19"), "--eps-data, --delta-data: must have a larger delta"),
        (("--mechanism", "laplace", "--chart", "chart.pdf"), "--chart: must end in .svg or .png"),
        (("--mechanism", "laplace", "--chart", "no/where.svg"), "--chart: no is not a directory"),
        (("--mechanism", "equilibrium", "--play", "chess"), "--play: must be mixed"),
        (("--mechanism", "equilibrium", "--play", "mixed", "--set", "play=hru"), "--set: play is also"),
        (("--mechanism", "small_db", "--set", "database_size"), "--set: must be NAME=VALUE"),
    ],
)
def test_what_cannot_be_audited_is_refused_by_its_option(
    capsys: pytest.CaptureFixture[str], options: tuple[str, ...], said: str
) -> None:
    code, out, problem = ended(capsys, *options)
    assert code == 1
    assert problem.lstrip().startswith(f"error: {said}")
    assert out == ""


def test_without_matplotlib_a_chart_is_refused_before_anything_runs(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    code, _, problem = ended(capsys, "--mechanism", "laplace", "--chart", str(tmp_path / "chart.svg"))
    assert code == 1
    assert "pip install 'equipoise[server,plots]'" in problem
