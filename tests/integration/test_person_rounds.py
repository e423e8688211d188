"""Whole rounds on orders of customers: registered, planned, run, verified, audited and computed again."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

import numpy as np
import pytest
from harness.audited_rounds import audited, problems
from harness.dangers import LARGE_CAPS
from harness.rounds_bench import ANN, CAP, SCHEMA, SEED, TERMS, Bench, new_bench
from harness.stores import sqlite_url

from equipoise.errors import DataLoss, InvalidArgument
from equipoise.model.accounts import Budget
from equipoise.model.persons import PersonMode, Persons
from equipoise.model.results import Answers
from equipoise.model.rounds import MEASUREMENT, STANDING, RoundState, Share
from equipoise.queries.workload_compiler import compile_workload
from equipoise.records.bundle import Bundle
from equipoise.records.evidence import Evidence
from equipoise.records.signed_notes import VerifierKey
from equipoise.verification.checks import Check, VerifierInputs, verify
from equipoise.wire.results import chunk_from_bytes
from equipoise_server.replay.replay import Replay
from equipoise_server.replay.seed import OpenedSeed
from equipoise_server.replay.stored import StoredRound
from equipoise_server.rounds.store.committed_content import check_all
from equipoise_server.rounds.store.results import read_synopsis
from equipoise_server.storage.tables.round import dataset_versions

CUSTOMERS, ROWS = 300, 4000
MODES = [
    *(Persons(mode, records) for mode in (PersonMode.EVENTS, PersonMode.AVERAGE) for records in (1, 4, 16)),
    Persons(PersonMode.ONE),
]
every_mode = pytest.mark.parametrize("persons", MODES, ids=lambda each: f"{each.mode}-{each.records}")
# Tables with records of nothing have a category more of each attribute, so a marginal has more cells.
ORDERS = replace(TERMS, dataset="orders", shares=(Share("ann", 4, 24), Share("bob", 4, 24)), options={})


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    made = new_bench(tmp_path, sqlite_url(tmp_path), distinct_seeds=True)
    random = np.random.default_rng(7)
    owners = np.concatenate([np.arange(CUSTOMERS), random.zipf(1.3, ROWS) % CUSTOMERS])
    with (made.directory / "data" / "orders.csv").open("w", newline="") as file:
        goods = [["red", "s"], ["green", "xl"], ["red", "m"]]
        rows = ((f"customer {owner}", *random.choice(goods)) for owner in owners)
        csv.writer(file).writerows([("who", "colour", "size"), *rows])
    yield made
    made.stop()


def register(bench: Bench, persons: Persons) -> int:
    registered = bench.rounds.datasets.register(
        "orders",
        "orders.csv",
        SCHEMA,
        CAP,
        CAP,
        "orders",
        people="new",
        person="who",
        persons=persons,
        accepted=LARGE_CAPS,
    )
    return registered.records


def answers(bench: Bench, round_id: str) -> Answers:
    chunks = map(chunk_from_bytes, bench.rounds.analyst_views.results("ann", round_id, 0, 100))
    return Answers.join(chunk.answers for chunk in chunks)


def verified(bench: Bench, round_id: str) -> list[str]:
    """What the checks of ann's bundle say, all of which pass."""
    bench.rounds.schedule.keep()
    told = bench.rounds.analyst_views.evidence("ann", round_id, 0)
    assert told is not None
    evidence, said = Evidence.from_bytes(told), list[str]()
    workload = bench.rounds.analyst_views.submitted("ann", round_id, 0, 1 << 20)
    stream = tuple(bench.rounds.analyst_views.results("ann", round_id, 0, 100))
    with bench.store.read() as connection:
        bundle = Bundle(evidence, workload, stream, read_synopsis(connection, round_id) or None)
    keys = [VerifierKey.from_text(key) for key in evidence.keys]
    verify(bundle.to_bytes(), VerifierInputs(keys), lambda _, text: said.append(text))
    assert len(said) == len(Check)
    return said


def replayed(bench: Bench, round_id: str, number: int = 0) -> str:
    """What a replay finds wrong. `number`: which round it is of the bench; 0: the newest."""
    drawn = number or bench.drawn
    seed = SEED if drawn == 1 else sha256(SEED + bytes([drawn])).digest()
    found = Replay(
        StoredRound(bench.store, round_id),
        lambda _: OpenedSeed(seed, None),
        bench.rounds.datasets.table,
        lambda *_: None,
    ).run()
    return found.failed


@pytest.mark.sparse(3)
@pytest.mark.thin(8)
@every_mode
def test_a_whole_round_for_persons_in_every_mode(bench: Bench, persons: Persons) -> None:
    assert register(bench, persons) == CUSTOMERS * persons.records
    dataset = bench.rounds.datasets.get("orders")
    assert dataset.schema.padded is persons.padded
    data = bench.rounds.datasets.table(dataset).counts(dataset.schema)
    truth = data.count(compile_workload(ANN, dataset.schema)) / dataset.records
    for mechanism in ("gaussian", "equilibrium") if persons == MODES[1] else ("gaussian",):
        options: dict[str, object] = {"play": "mixed", "game_share": 0.5} if mechanism == "equilibrium" else {}
        record = bench.released(replace(ORDERS, mechanism=mechanism, options=options))
        given = answers(bench, record.id)
        assert not given.misses(truth).any()
        assert any(persons.in_words() in said for said in verified(bench, record.id))
        assert replayed(bench, record.id) == ""
    assert problems(audited(bench)) == []


def test_a_fraction_has_as_much_noise_however_many_records_a_person_has(bench: Bench) -> None:
    widths = []
    for place, persons in enumerate(MODES[3:6]):
        bench.rounds.datasets.register(
            f"orders{place}",
            "orders.csv",
            SCHEMA,
            None if place else CAP,
            None if place else CAP,
            f"orders{place}",
            people="same-as:orders0" if place else "new",
            person="who",
            persons=persons,
            accepted=LARGE_CAPS,
        )
        plan = bench.rounds.opening.plan(replace(ORDERS, dataset=f"orders{place}", mechanism="gaussian"))
        widths.append(plan.max_half_width)
    # Noise is whole records, of which 300 persons with one each have few: one record is 4 % of a half-width.
    assert widths == pytest.approx([widths[0]] * 3, rel=0.05)


@pytest.mark.full
@pytest.mark.parametrize("persons", [Persons(PersonMode.EVENTS, 4), Persons(PersonMode.AVERAGE, 16)])
def test_a_measurement_for_persons_is_charged_for_all_of_their_records(bench: Bench, persons: Persons) -> None:
    register(bench, persons)
    terms = replace(
        ORDERS, shares=(), mechanism=MEASUREMENT, options={"family": "pairs"}, data_budget=Budget(1.0, 1e-6)
    )
    measured = bench.opened(replace(terms, analyst_budget=None))
    for _ in range(2):
        bench.rounds.schedule.keep()
    bench.wait(measured)
    bench.rounds.schedule.keep()
    assert bench.state(measured) is RoundState.RELEASED
    bench.clock.move(60)
    bench.rounds.schedule.keep()
    record = bench.released(replace(ORDERS, mechanism=STANDING))
    assert replayed(bench, record.id) == replayed(bench, measured, 1) == ""
    assert problems(audited(bench)) == []


def test_who_is_a_person_is_on_record_and_cannot_be_changed_in_the_store(bench: Bench) -> None:
    register(bench, Persons(PersonMode.AVERAGE, 4))
    round_id = bench.opened(replace(ORDERS, mechanism="gaussian"))
    of_orders = dataset_versions.c.dataset == "orders"
    for column, value in (("person_records", 2), ("person_mode", "events"), ("person", "size")):
        with bench.store.write() as connection:
            before = connection.execute(dataset_versions.select().where(of_orders)).one()
            connection.execute(dataset_versions.update().where(of_orders).values({column: value}))
        with bench.store.read() as connection, pytest.raises(DataLoss):
            check_all(connection)
        with bench.store.write() as connection:
            was = getattr(before, column)
            connection.execute(dataset_versions.update().where(of_orders).values({column: was}))
    bench.rounds.lifecycle.abort(round_id, "only tried", "abort")
    assert problems(audited(bench)) == []


@pytest.mark.thin(2)
@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({"person": "who"}, "person: must name a column just where rows are not persons"),
        ({"persons": Persons(PersonMode.ONE)}, "person: must name a column just where rows are not persons"),
        ({"person": "size", "persons": Persons(PersonMode.ONE)}, "person: 'size' is an attribute"),
        (
            {"person": "nobody", "persons": Persons(PersonMode.ONE)},
            "the table has no column named 'nobody'",
        ),
    ],
)
def test_persons_that_make_no_sense_are_refused(bench: Bench, given: dict[str, object], problem: str) -> None:
    asked = {"people": "new", "accepted": LARGE_CAPS, **given}
    with pytest.raises(InvalidArgument, match=problem):
        bench.rounds.datasets.register("orders", "orders.csv", SCHEMA, CAP, CAP, "x", **asked)  # type: ignore[arg-type]
    with pytest.raises(InvalidArgument, match="records: must be 1 in the mode one"):
        Persons(PersonMode.ONE, 2)
