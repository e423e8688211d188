"""A dataset that is measured once, and what uses that later: charges, records, crashes, refusals, replay."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

import numpy as np
import pytest
from harness.rounds_bench import ANN, COLOUR, SALT, SCHEMA, SIZE, TERMS, Bench, new_bench
from harness.session_terms import ONLINE, ask_all, release
from harness.standing_rounds import MEASURE, STANDING, measured
from harness.stores import allow_changes
from sqlalchemy import text

from equipoise.accounting import Cost, events_from_json
from equipoise.errors import BudgetExhausted, DataLoss, InvalidArgument
from equipoise.model.accounts import Budget
from equipoise.model.results import AnswerMethod, Answers
from equipoise.queries.statements import Marginal
from equipoise.queries.workload_compiler import compile_workload
from equipoise.wire.results import answers_from_chunk, chunk_from_bytes
from equipoise.wire.workloads import workload_to_bytes
from equipoise_server.replay.replay import Replay
from equipoise_server.replay.seed import OpenedSeed
from equipoise_server.replay.stored import StoredRound
from equipoise_server.rounds.store.committed_content import check_all
from equipoise_server.rounds.store.results import read_measured
from equipoise_server.rounds.store.rounds import read_round


@pytest.fixture
def bench(tmp_path: Path, store_url: str) -> Iterator[Bench]:
    bench = new_bench(tmp_path, store_url, distinct_seeds=True)
    yield bench
    bench.stop()


def replayed(bench: Bench, round_id: str, seed: bytes) -> list[str]:
    """The checks of a replay, all of which pass."""
    stored = StoredRound(bench.store, round_id)
    found = Replay(
        stored,
        lambda _: OpenedSeed(seed, None),
        bench.rounds.datasets.table,
        lambda *_: None,
    ).run()
    assert found.failed == "", found.difference
    return [check.name for check in found.checks]


def answers(bench: Bench, round_id: str) -> Answers:
    chunks = map(chunk_from_bytes, bench.rounds.analyst_views.results("ann", round_id, 0, 100))
    return Answers.join(chunk.answers for chunk in chunks)


def test_a_dataset_is_charged_once_and_every_later_round_costs_nothing(bench: Bench) -> None:
    before = bench.charged()
    measurement = measured(bench)
    once = bench.charged()
    assert before["data/shop"] == (0.0, 0.0)
    assert 0 < once["data/shop"][0] == once["data/shop"][1] < 9  # 8, as the account counts it
    first, second = bench.released(STANDING), bench.released(replace(STANDING, options={"standing": measurement}))
    for each in (first, second):
        assert (each.plan.data_cost, each.plan.analyst_cost) == (Cost(), Cost())
    assert bench.charged() == {**dict.fromkeys(bench.charged(), (0.0, 0.0)), "data/shop": once["data/shop"]}
    # The same statements have the same answers, for which no seed plays a part.
    told = answers(bench, first.id)
    assert np.array_equal(told.values, answers(bench, second.id).values)
    assert set(told.methods.tolist()) == {AnswerMethod.GAUSSIAN}
    table = np.loadtxt(bench.directory / "data" / "shop.csv", dtype=str, delimiter=",", skiprows=1)
    columns = zip(table.T, SCHEMA.attributes, strict=True)
    cells = np.ravel_multi_index([[*map(each.categories.index, column)] for column, each in columns], SCHEMA.sizes)
    truths = compile_workload(ANN, SCHEMA).record_counts(np.asarray(cells)) / len(cells)
    assert not told.misses(truths).any()
    with bench.store.read() as connection:
        assert check_all(connection) == 3
    seeds = [bench.seed, *(sha256(bench.seed + bytes([drawn])).digest() for drawn in (2, 3))]
    assert replayed(bench, measurement, seeds[0])[-1] == "measurement"
    assert replayed(bench, first.id, seeds[1])[-1] == "synopsis"


@pytest.mark.full
def test_a_measurement_that_dies_is_computed_again_and_charged_once(bench: Bench) -> None:
    round_id = bench.opened(MEASURE)
    bench.rounds.schedule.keep()  # it is sealed, and nothing has run
    reserved = bench.charged()["data/shop"]
    assert reserved[0] == 0
    assert reserved[1] > 0
    bench.restart()
    bench.rounds.schedule.keep()
    bench.rounds.schedule.keep()
    assert bench.wait(round_id).complete
    with bench.store.write() as connection:
        kept = connection.execute(text("SELECT numbers FROM measurements")).scalar_one()
        connection.execute(text("UPDATE runs SET complete_time = NULL"))  # as if it had died before its end
    bench.restart()
    assert bench.wait(round_id).complete
    bench.rounds.schedule.keep()
    with bench.store.read() as connection:
        assert read_measured(connection, round_id) == kept
    assert bench.charged()["data/shop"] == (reserved[1], reserved[1])


def test_what_was_measured_outlives_the_retention_of_results(bench: Bench) -> None:
    measurement = measured(bench)
    bench.clock.move(86_400 * 40)
    bench.rounds.schedule.keep()
    with bench.store.read() as connection:
        assert read_measured(connection, measurement)
    assert bench.released(STANDING).plan.mechanism == "standing"


def test_numbers_that_were_changed_are_not_answered_from(bench: Bench) -> None:
    measured(bench)
    round_id = bench.sealed(STANDING)
    with bench.store.write() as connection:
        allow_changes(connection, "measurements")
        connection.execute(text("UPDATE measurements SET numbers = :other"), {"other": bytes(8)})
    with pytest.raises(DataLoss, match="not those that were released"):
        bench.rounds.lifecycle.run(round_id, "run")
    with pytest.raises(DataLoss, match=r"the numbers of the round .* what is stored is not what is on record"):
        bench.opened(STANDING)
    with bench.store.read() as connection, pytest.raises(DataLoss, match="numbers"):
        check_all(connection)


@pytest.mark.full
@pytest.mark.parametrize("prior", [{"prior": "standing"}, {}])
def test_a_round_that_starts_from_it_is_charged_its_tests_alone(bench: Bench, prior: dict[str, object]) -> None:
    measurement = measured(bench)
    before = bench.charged()["data/shop"][0]
    # Of a tenth of the measurement's budget, a measurement of its own would err by more.
    terms = replace(TERMS, data_budget=Budget(0.8, 1e-4), options=prior)
    record = bench.released(terms)
    names = [event.name for event in events_from_json(record.plan.data_events)]
    assert names == ["final tests", "samplers"]
    assert bench.charged()["data/shop"][0] > before
    named = record.terms.options["standing"]
    assert isinstance(named, dict)
    assert named["round"] == measurement
    assert measurement in record.plan.parameters
    seed = sha256(bench.seed + bytes([2])).digest()
    assert replayed(bench, record.id, seed)[-1] == "synopsis"


@pytest.mark.full
@pytest.mark.parametrize("family", ["pairs", [["colour"], ["size"]]])
def test_auto_answers_from_it_at_no_cost_and_takes_no_other_statements(bench: Bench, family: object) -> None:
    """Where a share does not say that it asks about single attributes, a measurement of these may refuse it."""
    measurement = measured(bench, replace(MEASURE, options={"family": family}))
    before = bench.charged()
    auto = replace(TERMS, mechanism="auto", options={}, data_budget=Budget(0.1, 1e-4))
    if family == "pairs":
        record = bench.released(auto)
        assert replayed(bench, record.id, sha256(bench.seed + bytes([2])).digest())[-1] == "synopsis"
    else:
        assert bench.rounds.opening.plan(auto).mechanism != "standing"
        auto = replace(auto, shares=tuple(replace(share, ways=1) for share in auto.shares))
        round_id = bench.opened(auto)
        beyond = workload_to_bytes((COLOUR == "red", Marginal(("size",), where=COLOUR == "red")))
        with pytest.raises(BudgetExhausted, match=r"statements\[1\] is about 2 attributes together, .* allows 1"):
            bench.rounds.submissions.submit("ann", round_id, "1", beyond, SALT)
        with bench.store.read() as connection:
            record = read_round(connection, round_id)
    assert (record.plan.mechanism, record.terms.mechanism) == ("standing", "auto")
    assert record.terms.options["standing"]["round"] == measurement  # type: ignore[index]
    assert (record.plan.data_cost, record.plan.analyst_cost) == (Cost(), Cost())
    assert bench.charged() == before | dict.fromkeys(bench.charged().keys() - before.keys(), (0.0, 0.0))
    with bench.store.read() as connection:
        assert check_all(connection) >= 1


@pytest.mark.full
def test_a_session_that_starts_from_it_tells_what_was_measured(bench: Bench) -> None:
    measurement = measured(bench)
    session = bench.sessions.open(replace(ONLINE, data_budget=Budget(0.8, 1e-4)), "session")
    named = session.terms.options["standing"]
    assert isinstance(named, dict)
    assert named["round"] == measurement
    assert "prior" not in {event.name for event in events_from_json(session.plan.data_events)}
    told = ask_all(bench, session.id)
    answered = [answers_from_chunk(each.chunk) for each in (*told["ann"], *told["bob"])]
    assert {int(method) for each in answered for method in each.answers.methods} == {AnswerMethod.MEASURED}
    release(bench, [session.id])
    assert "answers" in replayed(bench, session.id, sha256(bench.seed + bytes([2])).digest())


@pytest.mark.full
def test_a_measurement_that_is_of_no_use_is_not_named(bench: Bench) -> None:
    measured(bench, replace(MEASURE, data_budget=Budget(0.1, 1e-4)))
    planned = bench.rounds.opening.plan(replace(TERMS, options={}))
    round_id = bench.opened(replace(TERMS, options={}))
    with bench.store.read() as connection:
        record = read_round(connection, round_id)
    assert "standing" not in record.terms.options
    assert record.plan == planned


def test_a_statement_that_no_measured_table_tells_is_refused_when_it_is_submitted(bench: Bench) -> None:
    measured(bench, replace(MEASURE, options={"family": [["colour"], ["size"]]}))
    round_id = bench.opened(STANDING)
    for outside in ((COLOUR == "red") & (SIZE == "s"), Marginal(("colour", "size"))):
        own = workload_to_bytes((COLOUR == "red", outside))
        with pytest.raises(InvalidArgument, match=r"^statements\[1\]: .* the standing measurement does not tell"):
            bench.rounds.submissions.submit("ann", round_id, "1", own, SALT)
    kept = workload_to_bytes((COLOUR == "red", Marginal(("size",))))
    assert bench.rounds.submissions.submit("ann", round_id, "1", kept, SALT).statements == 2
