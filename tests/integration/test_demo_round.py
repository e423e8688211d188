"""The demo's whole round: a real server process, ten airlines, and every promise that the demo makes.

Every streamed byte is compared with the mechanism called directly with the same seed. All but a round of
three airlines is `full`: `make demo` plays all of it, and CI checks what it prints.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path

import pytest
from harness.server_process import SEED, make_state, running
from rich.console import Console

from equipoise.clients.connection import Connection
from equipoise.clients.operator import Operator
from equipoise.model.accounts import Budget
from equipoise.model.rounds import AUTO, RoundDetail
from equipoise.profile.profile import Profile
from equipoise.queries.statements import Statement
from equipoise.queries.workload_compiler import CompiledWorkload, compile_workload
from equipoise.v1 import analyst_pb2
from equipoise.v1.analyst_pb2_grpc import AnalystServiceStub
from equipoise.wire.results import results_to_chunks
from equipoise.wire.workloads import workload_to_bytes
from equipoise_lab.demo.comparison import GAMES
from equipoise_lab.demo.measure import MeasuredRound, measure
from equipoise_lab.demo.play import ANALYST_BUDGET, BETA, DATA_BUDGET, TABLE_FILE, Played, play
from equipoise_lab.demo.proof import Proven, collect, lines, prove
from equipoise_lab.demo.report import as_json, print_report
from equipoise_lab.demo.table import AIRLINES, SCHEMA, unpack_table
from equipoise_lab.demo.workloads import query_count, share_of, workload_of
from equipoise_server.computation.seed import bound_seed
from equipoise_server.datasets.counts import Counts
from equipoise_server.datasets.digest import data_digest
from equipoise_server.datasets.source import source_at
from equipoise_server.mechanisms.interface import Outcome, PublicParameters
from equipoise_server.mechanisms.registry import MECHANISMS, mechanism

README = Path(__file__).parents[2] / "README.md"


@dataclass(frozen=True)
class Demo:
    """A demo that has been played: its table, what the airlines saw, the raw bytes of their streams."""

    state: Path
    table: Path
    played: Played
    proven: Proven
    streams: Mapping[str, list[bytes]]
    steps: list[str]
    phases: list[str]

    @cached_property
    def counts(self) -> Counts:
        return source_at(self.table).counts(SCHEMA)

    @cached_property
    def measured(self) -> MeasuredRound:
        """What every mechanism does on the table."""
        return measure(self.played, workloads(), self.table)


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Demo:
    return played_by(workloads(), tmp_path_factory.mktemp("demo"))


def played_by(asked: dict[str, tuple[Statement, ...]], place: Path) -> Demo:
    """What airlines see of their round on the demo's table."""
    state, profiles = make_state(place / "state"), place / "profiles"
    table = state / "data" / TABLE_FILE
    unpack_table(table)
    steps: list[str] = []
    phases: list[str] = []

    def follow(detail: RoundDetail) -> None:
        phases.append(detail.progress.phase)

    with running(state) as server:
        for name in ("operator", "auditor"):
            _set_target(state / "profiles" / name, f"127.0.0.1:{server.port}")
        with Operator.from_profile(state / "profiles" / "operator") as operator:
            played = play(operator, profiles, asked, steps.append, follow)
        round_id = played.detail.round.id
        collect(place, asked, round_id)
        streams = {airline: raw_stream(profiles / airline, round_id) for airline in asked}
    proven = prove(place, asked, round_id)
    return Demo(state, table, played, proven, streams, steps, phases)


@cache
def workloads() -> dict[str, tuple[Statement, ...]]:
    """What each airline asks."""
    return {airline: workload_of(airline) for airline in AIRLINES}


def _set_target(profile: Path, target: str) -> None:
    """The server of this test took a free port, so its profiles do not know it."""
    path = profile / "profile.toml"
    path.write_text(path.read_text().replace(Profile.load(profile).target, target))


def raw_stream(profile: Path, round_id: str) -> list[bytes]:
    """The exact bytes of every message of an analyst's stream."""
    connection = Connection.from_profile(profile)
    try:
        request = analyst_pb2.StreamResultsRequest(round_id=round_id)
        stream = AnalystServiceStub(connection.channel).StreamResults
        return [response.chunk for response in connection.stream(stream, lambda: request)]
    finally:
        connection.close()


@pytest.fixture(scope="module")
def compiled() -> dict[str, CompiledWorkload]:
    return {airline: compile_workload(asked, SCHEMA) for airline, asked in workloads().items()}


def setting(records: int) -> PublicParameters:
    """The demo's round as the planner sees it, put together anew."""
    return PublicParameters(
        records=records,
        universe_size=SCHEMA.universe_size,
        shares=tuple(share_of(airline, asked) for airline, asked in workloads().items()),
        unit="query",
        data_budget=Budget(DATA_BUDGET.epsilon, DATA_BUDGET.delta),
        analyst_budget=Budget(ANALYST_BUDGET.epsilon, ANALYST_BUDGET.delta),
        beta=BETA,
        options={},
        attributes=SCHEMA.sizes,
        ordered=SCHEMA.ordered,
    )


def direct(demo: Demo, compiled: Mapping[str, CompiledWorkload]) -> Outcome:
    """What `auto` takes, called directly with the server's seed."""
    terms = setting(demo.counts.records)
    plan = mechanism(AUTO).plan(terms)
    sent = {airline: workload_to_bytes(asked) for airline, asked in workloads().items()}
    seed = bound_seed(SEED, None, data_digest(demo.counts), terms, plan, sent)
    return mechanism(plan.mechanism).run(terms, plan, demo.counts, compiled, seed, lambda *_: None)


@pytest.mark.nightly
def test_every_stream_is_what_the_mechanism_gives_for_the_same_seed(
    demo: Demo, compiled: dict[str, CompiledWorkload]
) -> None:
    outcome = direct(demo, compiled)
    round_id = demo.played.detail.round.id
    for airline, answers in outcome.answers.items():
        expected = list(results_to_chunks(round_id, answers))
        assert demo.streams[airline] == expected
        assert demo.played.results[airline].answers.values.tolist() == answers.values.tolist()


def test_three_airlines_can_verify_their_round_afterwards(tmp_path: Path) -> None:
    few = {airline: workload_of(airline) for airline in AIRLINES[-3:]}
    demo = played_by(few, tmp_path)
    assert demo.proven.holds, lines(demo.proven)
    assert demo.proven.bundles == len(few) == len(demo.played.results)
    assert demo.proven.unmade == 0
    assert "complete" in demo.phases


@pytest.mark.nightly
def test_everybody_can_verify_it_afterwards(demo: Demo) -> None:
    assert demo.proven.holds, lines(demo.proven)
    assert demo.proven.bundles == len(AIRLINES)
    assert demo.proven.unmade == 0


@pytest.mark.nightly
def test_whoever_has_another_table_can_not(demo: Demo) -> None:
    rows = demo.table.read_text().splitlines(keepends=True)
    try:
        demo.table.write_text("".join([*rows[:-1], rows[1]]))
        proven = prove(demo.state.parent, workloads(), demo.played.detail.round.id)
    finally:
        demo.table.write_text("".join(rows))
    assert proven.replay_failure.startswith("data: ")
    assert proven.bundle_failure == proven.audit_failure == ""


@pytest.mark.nightly
def test_what_is_delivered_errs_by_at_most_half_of_independent_noise(demo: Demo) -> None:
    measured = demo.measured
    noise = {row.mechanism: row.measured for row in measured.compared.mechanisms}["gaussian"]
    assert noise is not None
    assert measured.delivered.errors.max <= noise.errors.max / 2
    assert measured.delivered.errors.mean <= noise.errors.mean / 2
    assert measured.uniform_max_error > 10 * noise.errors.max


@pytest.mark.nightly
def test_every_truth_lies_in_its_interval(demo: Demo) -> None:
    assert demo.measured.delivered.outside_interval == 0


@pytest.mark.nightly
def test_auto_chose_the_mechanism_that_erred_least(demo: Demo) -> None:
    first, *others = demo.measured.compared.mechanisms
    assert first.mechanism == demo.played.detail.plan.mechanism
    assert demo.measured.compared.why.startswith(f"{first.mechanism} is expected to err by")
    assert first.measured == demo.measured.delivered
    for other in others:
        if other.measured is not None:
            assert first.measured.errors.mean <= other.measured.errors.mean


@pytest.mark.nightly
def test_the_table_of_mechanisms_fits_a_hundred_columns(demo: Demo, capsys: pytest.CaptureFixture[str]) -> None:
    print_report(Console(width=100), demo.played, demo.measured, demo.proven, demo.state)
    lines_of_report = capsys.readouterr().out.splitlines()
    first = next(i for i, line in enumerate(lines_of_report) if line.startswith("Every mechanism"))
    last = next(i for i, line in enumerate(lines_of_report) if line.startswith("Why auto chose so"))
    table = lines_of_report[first:last]
    assert max(map(len, table)) <= 100
    (columns,) = [line.split() for line in table if line.startswith(" mechanism ")]
    assert columns in [line.split() for line in README.read_text().splitlines()]
    for name in (MECHANISMS.keys() - {"equilibrium"}) | GAMES.keys():
        assert sum(name in line for line in table) == 2  # its row, and what it does in words


@pytest.mark.nightly
def test_both_budgets_are_spent_and_kept(demo: Demo) -> None:
    assert 0.9 < demo.played.detail.plan.data_budget.epsilon <= DATA_BUDGET.epsilon
    counted = demo.played.data_account
    # The best order of the cap is nearly that of the account, so the cap holds many such rounds.
    assert 5 * counted.divergence < counted.max_divergence < 9 * counted.divergence
    assert demo.played.data_account.spent == demo.played.data_account.committed
    planned = demo.played.detail.plan.analyst_budget
    for account in demo.played.analyst_accounts.values():
        assert account.spent.epsilon <= ANALYST_BUDGET.epsilon
        assert planned is not None
        assert account.spent.epsilon == pytest.approx(planned.epsilon, rel=1e-6)


@pytest.mark.nightly
def test_the_cut_connection_lost_nothing(demo: Demo) -> None:
    cut = demo.played.results[demo.played.cut]
    assert len(demo.streams[demo.played.cut]) > 1
    assert len(cut) == query_count(workloads()[demo.played.cut])


@pytest.mark.nightly
def test_progress_was_shown(demo: Demo) -> None:
    assert "complete" in demo.phases
    assert len(demo.steps) >= 5


@pytest.mark.nightly
def test_the_report_has_what_it_promises(demo: Demo, tmp_path: Path) -> None:
    report = as_json(demo.played, demo.measured, demo.proven, tmp_path, 1.0)
    assert json.loads(json.dumps(report)) == report
    assert report["queries"] == sum(map(query_count, workloads().values()))
    assert report["answered"] == sum(int(each.answers.certified.sum()) for each in demo.played.results.values())
    assert report.keys() >= {
        "records", "universe_size", "analysts", "queries", "answered", "uncertified", "uniform_max_error",
        "mechanism", "why", "mechanisms", "refusals", "epsilon_data", "delta_data", "epsilon_analyst",
        "delta_analyst", "max_error", "mean_error", "seconds", "peak_memory_bytes", "bundles_verified", "audited",
        "replayed",
    }  # fmt: skip
    assert 0 < demo.played.detail.progress.peak_memory_bytes <= 2 * 10**9
