"""Datasets of the same people share one account, whatever becomes of the datasets and of the store."""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from harness.audited_rounds import audited, problems
from harness.dangers import LARGE_CAPS
from harness.rounds_bench import CAP, RECORDS, SCHEMA, TERMS, Bench, new_bench, write_table
from prometheus_client import generate_latest
from prometheus_client.registry import CollectorRegistry

from equipoise.accounting import Cost
from equipoise.errors import BudgetExhausted, InvalidArgument
from equipoise.model.accounts import Budget
from equipoise.model.rounds import RoundState, Terms
from equipoise_server.ledger.accounts import free_part
from equipoise_server.ledger.adjustments import write_off
from equipoise_server.ledger.caps import limits
from equipoise_server.ledger.guard_comparison import Finding
from equipoise_server.rounds.dataset_endings import retire_dataset
from equipoise_server.rounds.datasets import Datasets
from equipoise_server.rounds.new_datasets import AccountingMethod
from equipoise_server.rpc.interceptors.gauges import StoreGauges
from equipoise_server.storage.operations import Operations
from equipoise_server.storage.store import open_store

NOISE = replace(TERMS, mechanism="gaussian", options={})
LATER, LATEST = replace(NOISE, dataset="later"), replace(NOISE, dataset="latest")


@pytest.fixture
def bench(tmp_path: Path, store_url: str) -> Iterator[Bench]:
    made = new_bench(tmp_path, store_url, distinct_seeds=True)
    yield made
    made.stop()


def add_table(bench: Bench, name: str, more: int) -> str:
    """Write a table that has some records more than the bench's, and so another digest; return its source."""
    write_table(bench.directory, RECORDS + more)
    (bench.directory / "shop.csv").rename(bench.directory / "data" / f"{name}.csv")
    return f"{name}.csv"


def register_later(bench: Bench) -> None:
    """Register two newer versions of the bench's table, each with the people of the one before."""
    register = bench.rounds.datasets.register
    later = register("later", add_table(bench, "later", 1), SCHEMA, None, None, "later", people="same-as:shop")
    source = add_table(bench, "latest", 2)
    latest = register("latest", source, SCHEMA, None, None, "latest", people="same-as:later")
    assert (later.account, latest.account) == ("shop", "shop")


def set_cap_for(bench: Bench, count: int) -> Cost:
    """Set the least cap that holds so many rounds of noise, and return what one counts."""
    cost, standing = bench.due(bench.rounds.opening.plan(NOISE)), bench.on_data().cap
    low, high = 0.0, CAP.epsilon
    while high - low > 1e-6:
        middle = (low + high) / 2
        limit = limits(replace(standing, epsilon=middle))
        holds = limit.divergence >= count * cost.divergence and limit.delta >= count * cost.delta
        low, high = (low, middle) if holds else (middle, high)
    bench.rounds.budgets.set_cap("data/shop", Budget(high, CAP.delta), "cap", accepted=LARGE_CAPS)
    return cost


def test_what_is_spent_for_one_lowers_what_the_others_have_left(bench: Bench) -> None:
    register_later(bench)
    plan = bench.rounds.opening.plan(NOISE)
    cost = bench.due(plan)
    for number, terms in enumerate((NOISE, LATER, LATEST), start=1):
        assert bench.rounds.opening.charges(terms, plan)[0].account == "data/shop"
        round_id = bench.sealed(terms)
        assert bench.on_data().committed == Cost(divergence=number * cost.divergence, delta=number * cost.delta)
        charged = {entry.account for entry in bench.rounds.budgets.journal()[0] if entry.round_id == round_id}
        assert charged == {"data/shop", "analyst/shop/query/ann", "analyst/shop/query/bob"}
    shown = [bench.rounds.budgets.accounts(name) for name in ("shop", "later", "latest")]
    assert shown[0] == shown[1] == shown[2]
    assert [each.name for each in shown[0][0]] == sorted(charged)
    # An abort gives back what it took, to all of them.
    bench.rounds.lifecycle.abort(round_id, "not wanted", "abort")
    assert bench.on_data().committed == Cost(divergence=2 * cost.divergence, delta=2 * cost.delta)
    bench.restart()


def test_open_rounds_on_all_of_them_count_together(bench: Bench) -> None:
    register_later(bench)
    set_cap_for(bench, 1)
    first = bench.opened(NOISE)
    with pytest.raises(
        BudgetExhausted, match=r"account data/shop: .* are counted too, as each of them can be sealed"
    ):
        bench.opened(LATER)
    assert bench.rounds.opening.charges(LATEST, bench.rounds.opening.plan(LATEST))[0].refusal
    bench.rounds.lifecycle.abort(first, "not wanted", "abort")
    bench.opened(LATER)
    with pytest.raises(BudgetExhausted, match="account data/shop: "):
        bench.opened(NOISE)


@pytest.mark.both_stores
def test_rounds_that_race_on_two_of_them_get_exactly_what_fits(bench: Bench) -> None:
    register_later(bench)
    fitting = 3
    cost = set_cap_for(bench, fitting)

    def race(number: int) -> str | None:
        terms: Terms = (NOISE, LATER)[number % 2]
        try:
            round_id = bench.rounds.opening.open(terms, f"open {number}").id
        except BudgetExhausted:
            return None
        bench.rounds.lifecycle.seal(round_id, f"seal {number}")
        return round_id

    with ThreadPoolExecutor(8) as callers:
        opened = [each for each in callers.map(race, range(12)) if each]
    assert len(opened) == fitting
    assert bench.on_data().committed == Cost(divergence=fitting * cost.divergence, delta=fitting * cost.delta)
    assert all(bench.state(each) is RoundState.SEALED for each in opened)
    bench.restart()


def test_a_dataset_that_is_retired_leaves_its_account_as_it_is(bench: Bench) -> None:
    bench.sealed(NOISE)
    retire_dataset(bench.rounds.operations, "shop", "retire")
    before = bench.on_data()
    register_later(bench)
    assert bench.on_data() == before
    bench.sealed(LATEST)
    assert bench.on_data().committed.divergence == 2 * before.committed.divergence
    registry = CollectorRegistry()
    registry.register(StoreGauges(bench.store))
    (shown,) = [
        line for line in generate_latest(registry).decode().splitlines() if line.startswith("equipoise_data")
    ]
    assert shown == f"equipoise_data_budget_left {free_part(bench.on_data())}"
    for name in ("later", "latest"):
        retire_dataset(bench.rounds.operations, name, f"retire {name}")
    assert b"equipoise_data_budget_left" not in generate_latest(registry)


def test_whose_people_a_table_holds_must_be_said(bench: Bench) -> None:
    source = add_table(bench, "later", 1)
    before = bench.rounds.budgets.journal()

    def refused(problem: str, name: str = "later", **given: object) -> None:
        asked = {"data_cap": CAP, "analyst_cap": CAP, "accepted": LARGE_CAPS, **given}
        with pytest.raises(InvalidArgument, match=problem):
            bench.rounds.datasets.register(name, source, SCHEMA, request_id="later", **asked)  # type: ignore[arg-type]

    refused("^people: must say whose people the table holds: 'new', or 'same-as:DATASET'")
    for wrong in ("old", "same-as:", "same-as", "NEW", " new"):
        refused("^people: must be 'new', or 'same-as:DATASET'", people=wrong)
    none: dict[str, Any] = {"data_cap": None, "analyst_cap": None}
    refused("^people: there is no dataset 'Shop'", people="same-as:Shop", **none)
    refused("^people: there is no dataset 'later'", people="same-as:later", **none)
    same = "same-as:shop"
    refused("^data_cap: must not be set: the account of 'shop' has its own already", people=same)
    refused("^analyst_cap: must not be set", people=same, data_cap=None)
    refused("^data_order: must not be set", people=same, accounting=AccountingMethod(9.0), **none)
    refused("^analyst_order: must not be set", people=same, accounting=AccountingMethod(0, 9.0), **none)
    refused("^new_budgets: must not be set: the table is to have", people=same, new_budgets=True, **none)
    refused("^data_cap: must be set", people="new", data_cap=None)
    refused("^analyst_cap: must be set", people="new", analyst_cap=None)
    assert bench.rounds.budgets.journal() == before
    assert [each.dataset.name for each in bench.rounds.dataset_views.page()[0]] == ["shop"]


def test_a_table_that_is_known_has_no_other_s_account(bench: Bench) -> None:
    register = bench.rounds.datasets.register
    register("others", add_table(bench, "others", 5), SCHEMA, CAP, CAP, "others", people="new", accepted=LARGE_CAPS)
    known = "people: must be 'same-as:shop', as this is the table of the dataset 'shop' already"
    with pytest.raises(InvalidArgument, match=known):
        register("again", "shop.csv", SCHEMA, None, None, "again", people="same-as:others")
    # The path is known, too, when other rows lie there.
    write_table(bench.directory / "data", RECORDS + 7)
    for answer in ("same-as:others", "new", ""):
        cap = None if answer.startswith("same") else CAP
        with pytest.raises(InvalidArgument, match=known):
            register("again", "shop.csv", SCHEMA, cap, cap, "again", people=answer, accepted=LARGE_CAPS)
    assert register("again", "shop.csv", SCHEMA, None, None, "again", people="same-as:shop").account == "shop"
    with pytest.raises(InvalidArgument, match="people: must be 'same-as:again'"):
        register("more", "shop.csv", SCHEMA, CAP, CAP, "more", people="new", accepted=LARGE_CAPS)


def test_only_the_first_table_of_a_server_needs_no_answer(tmp_path: Path) -> None:
    """A journal that has begun may be all that is left of tables which a restored store has lost."""
    write_table(tmp_path)
    now = datetime(2024, 1, 1, tzinfo=UTC)
    for begun in (False, True):
        store = open_store(f"sqlite:///{tmp_path / f'{begun}.db'}")
        tables = Datasets(Operations(store, lambda: now, lambda: None), tmp_path)
        if not begun:
            assert (
                tables.register("shop", "shop.csv", SCHEMA, CAP, CAP, "once", accepted=LARGE_CAPS).account == "shop"
            )
        else:
            with store.write() as connection:
                assert write_off(connection, None, Finding.MISSING, now) == []
            with pytest.raises(InvalidArgument, match=r"^people: must say whose people"):
                tables.register("shop", "shop.csv", SCHEMA, CAP, CAP, "once", accepted=LARGE_CAPS)
            assert (
                tables.register(
                    "shop", "shop.csv", SCHEMA, CAP, CAP, "once", people="new", accepted=LARGE_CAPS
                ).account
                == "shop"
            )
        store.close()


@pytest.mark.full
def test_the_audit_follows_the_account_and_shows_the_answers(bench: Bench) -> None:
    bench.released(NOISE)
    register_later(bench)
    bench.released(LATER)
    bench.released(replace(LATEST, unit="analyst"))
    audit = audited(bench)
    assert problems(audit) == []
    (remark,) = audit.remarks
    assert "shop was registered with the danger epsilon" in remark
    assert audit.recorded is not None
    assert {name: known.account for name, known in audit.recorded.datasets.items()} == dict.fromkeys(
        ("shop", "later", "latest"), "shop"
    )
    assert len(audit.standing) == 5  # the data's, and two for each analyst
    assert audit.standing[-1].name == "data/shop"


def test_which_account_a_lost_dataset_shared_outlives_the_store(bench: Bench) -> None:
    register_later(bench)
    snapshot = bench.guard.read()
    assert snapshot is not None
    assert snapshot.shared == {"later": "shop", "latest": "shop"}
    elsewhere = replace(snapshot, shared={"later": "shop", "gone": "shop"})
    with bench.store.write() as connection:
        write_off(connection, elsewhere, Finding.BEHIND, bench.clock())
    register, source = bench.rounds.datasets.register, add_table(bench, "gone", 9)
    had = "people: must be as before: a restored store has lost a dataset of this name, whose account is 'shop'"
    for again in (False, True):
        with pytest.raises(InvalidArgument, match=had):
            register("gone", source, SCHEMA, CAP, CAP, "gone", people="new", new_budgets=again, accepted=LARGE_CAPS)
    # Under another name it may be the lost one, too.
    with pytest.raises(InvalidArgument, match="may be the table of the dataset 'gone', which a restored store"):
        register("anew", source, SCHEMA, CAP, CAP, "anew", people="new", accepted=LARGE_CAPS)
    assert register("gone", source, SCHEMA, None, None, "gone", people="same-as:latest").account == "shop"
    others = register(
        "others", add_table(bench, "others", 10), SCHEMA, CAP, CAP, "others", people="new", accepted=LARGE_CAPS
    )
    assert others.account == "others"
    (opened,) = [entry for entry in bench.rounds.budgets.journal()[0] if entry.account == "data/others"]
    assert "beside" not in json.loads(opened.events)
