"""Dangers of budgets and plans: refused before anything is charged, and on record where they are named."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from harness.rounds_bench import RECORDS, SCHEMA, TERMS, Bench, write_table
from sqlalchemy import func, select

from equipoise.errors import AlreadyExists, InvalidArgument
from equipoise.model.accounts import Budget, Danger
from equipoise.model.grants import grant_terms
from equipoise.model.rounds import Terms
from equipoise.records.dataset_items import DataItem
from equipoise.records.items import PlanItem, RoundItem
from equipoise.records.record import Kind
from equipoise_server.rounds.store.stored_records import read_record
from equipoise_server.storage.tables.ledger import journal

USUAL = replace(TERMS, mechanism="gaussian", data_budget=Budget(1.0, 1e-4), options={}, accepted=())
CASES: dict[str, tuple[Terms, tuple[Danger, ...]]] = {
    "epsilon": (replace(USUAL, analyst_budget=Budget(12.0, 1e-4)), (Danger.EPSILON,)),
    "delta": (replace(USUAL, data_budget=Budget(1.0, 1 / 400)), (Danger.DELTA,)),
    "noise": (replace(USUAL, mechanism="laplace", data_budget=Budget(3.0, 1e-9), shares=TERMS.shares[:1]), ()),
    "promise": (replace(USUAL, data_budget=Budget(0.01, 1e-4)), (Danger.PROMISE,)),
    "grant": (grant_terms("shop", "ann", Budget(9.0, 1e-4), None, 0.05), (Danger.NOISE,)),
}
CASES["noise"] = (
    replace(CASES["noise"][0], shares=(replace(TERMS.shares[0], statements=1, queries=1, sensitivity=1),)),
    (Danger.NOISE,),
)


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    made = Bench(tmp_path, f"sqlite:///{tmp_path}/store.db")
    yield made
    made.stop()


def journaled(bench: Bench) -> int:
    """How many entries the journal has."""
    with bench.store.read() as connection:
        entries: int = connection.execute(select(func.count()).select_from(journal)).scalar_one()
    return entries


def test_what_is_dangerous_is_refused_before_a_charge_until_it_is_named(bench: Bench) -> None:
    assert bench.rounds.opening.open(USUAL, "usual").terms.accepted == ()
    entries = journaled(bench)
    for name, (terms, dangers) in CASES.items():
        flags = " ".join(f"--accept {each}" for each in dangers)
        opening = bench.rounds.opening.open if terms.session is None else bench.sessions.open
        bench.rounds.opening.plan(terms)  # which warns, and charges nothing
        with pytest.raises(InvalidArgument, match=rf"accepted: .*name the danger: {flags}$"):
            opening(terms, f"refused {name}")
        assert journaled(bench) == entries
        opened = opening(replace(terms, accepted=dangers), f"accepted {name}")
        assert bench.rounds.views.get(opened.id).terms.accepted == dangers
        with bench.store.read() as connection:
            record = read_record(connection, Kind.ROUND_OPENED, opened.id)
        assert record.one(RoundItem).accepted == record.one(PlanItem).terms.accepted == dangers
        entries = journaled(bench)


def test_dangerous_caps_are_refused_before_an_account_is_opened_until_they_are_named(bench: Bench) -> None:
    entries, register = journaled(bench), bench.rounds.datasets.register
    harmless, data = Budget(10.0, 1 / 1000), bench.directory / "data"
    for more, (name, of_data, of_analysts, dangers) in enumerate(
        (
            ("harmless", harmless, harmless, ()),
            ("large", Budget(10.5, 1e-4), harmless, (Danger.EPSILON,)),
            ("analysts", harmless, Budget(10.5, 1e-4), (Danger.EPSILON,)),
            ("shown", Budget(10.0, 1 / 404), harmless, (Danger.DELTA,)),
        ),
        start=1,
    ):
        write_table(data, RECORDS + more)
        (data / "shop.csv").rename(data / f"{name}.csv")
        if dangers:
            with pytest.raises(InvalidArgument, match=rf"accepted: .*name the danger: --accept {dangers[0]}$"):
                register(name, f"{name}.csv", SCHEMA, of_data, of_analysts, name, people="new")
            assert journaled(bench) == entries
        register(name, f"{name}.csv", SCHEMA, of_data, of_analysts, name, people="new", accepted=dangers)
        with bench.store.read() as connection:
            record = read_record(connection, Kind.DATASET_REGISTERED, "", dataset=name, place=1)
        assert record.one(DataItem).accepted == dangers
        entries = journaled(bench)


def test_a_cap_that_becomes_dangerous_is_refused_until_its_danger_is_named_and_the_journal_keeps_it(
    bench: Bench,
) -> None:
    bench.sealed()  # which opens the analysts' accounts
    set_cap, entries = bench.rounds.budgets.set_cap, journaled(bench)
    for place, (account, cap, dangers) in enumerate(
        (
            ("data/shop", Budget(25.0, 1e-3), (Danger.EPSILON,)),
            ("data/shop", Budget(10.0, 1 / RECORDS), (Danger.DELTA,)),
            ("analyst/shop/query/ann", Budget(25.0, 1e-3), (Danger.EPSILON,)),
        )
    ):
        with pytest.raises(InvalidArgument, match=rf"accepted: .*name the danger: --accept {dangers[0]}$"):
            set_cap(account, cap, f"refused {place}")
        with pytest.raises(InvalidArgument, match="accepted: must name each danger once"):
            set_cap(account, cap, f"twice {place}", accepted=dangers * 2)
        assert journaled(bench) == entries + place
        assert set_cap(account, cap, f"named {place}", accepted=dangers).cap == cap
        with pytest.raises(AlreadyExists):
            set_cap(account, cap, f"named {place}", accepted=())
        newest = bench.rounds.budgets.history(account)[0][-1]
        assert json.loads(newest.events)["accepted"] == [*dangers]
