"""Dangers of budgets and plans: refused before anything is charged, and on record where they are named."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from harness.rounds_bench import TERMS, Bench
from sqlalchemy import func, select

from equipoise.errors import InvalidArgument
from equipoise.model.accounts import Budget, Danger
from equipoise.model.grants import grant_terms
from equipoise.model.rounds import Terms
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
