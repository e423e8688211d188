"""What rounds reserve and spend on accounts to which they add."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from harness.dangers import LARGE_CAPS
from harness.rounds_bench import ANALYSTS, ANN, CAP, SALT, SCHEMA, TERMS, Bench, new_bench
from sqlalchemy import select

from equipoise.accounting import Cost, Mixture, charge_at, charge_of, events_from_json
from equipoise.auditing.accounts import Accounts
from equipoise.auditing.ledger_export import exported
from equipoise.errors import AlreadyExists, InvalidArgument
from equipoise.model.accounts import left_digits
from equipoise.model.rounds import Share
from equipoise.wire.workloads import workload_to_bytes
from equipoise_server.ledger.accounts import account
from equipoise_server.ledger.adjustments import write_off
from equipoise_server.ledger.caps import Cap, at_order
from equipoise_server.ledger.guard_comparison import Finding
from equipoise_server.ledger.guard_snapshot import Snapshot
from equipoise_server.rounds.new_datasets import AccountingMethod
from equipoise_server.storage.tables.transparency import record_items

PLAYED = replace(
    TERMS,
    unit="analyst",
    shares=tuple(Share(name, 4, 12) for name in ANALYSTS),
    options={"play": "sampled", "rounds": 20},
)
WHOLE = "analyst/shop/analyst/ann"


def test_a_round_of_sampled_play_is_counted_by_its_mixture(tmp_path: Path, store_url: str) -> None:
    bench = new_bench(tmp_path, store_url)
    order = at_order("cap", Cap(CAP.epsilon, CAP.delta)).order
    assert order is not None
    round_id = bench.opened(PLAYED)
    bench.rounds.submissions.submit("ann", round_id, "s", workload_to_bytes(ANN), SALT)
    bench.rounds.lifecycle.seal(round_id, "seal")
    plan = bench.rounds.views.get(round_id).plan
    parts = events_from_json(plan.analyst_events)
    assert any(isinstance(part, Mixture) for part in parts)
    assert charge_of(parts) == plan.analyst_cost
    with bench.store.read() as connection:
        on_analyst, on_data = account(connection, WHOLE), account(connection, "data/shop")
    assert on_analyst.cap == Cap(CAP.epsilon, CAP.delta, order)
    assert on_analyst.committed == charge_at(parts, order)
    assert (on_data.cap.order, on_data.committed) == (order, charge_at(events_from_json(plan.data_events), order))
    shown = {each.name: each for each in bench.rounds.budgets.accounts("shop")[0]}
    assert (shown[WHOLE].order, shown["data/shop"].order) == (order, order)
    assert 0 < shown[WHOLE].divergence < shown[WHOLE].max_divergence
    # The auditor, from the journal alone, says the same of every account, in the same words.
    audited, exports = Accounts(), {}
    journal = bench.rounds.budgets.journal(1000)[0]
    for _ in audited.moments(journal):
        pass
    for name, each in shown.items():
        exports[name] = exported(name, [entry for entry in journal if entry.account == name])
        assert audited.by_name[name].counted.in_words == each.in_words
        assert exports[name]["delta"] == each.delta
        assert exports[name]["max_divergence"] == pytest.approx(each.max_divergence, rel=1e-6)
    assert f"of {left_digits(CAP.delta / 2)} at Renyi order {order:g}" in shown[WHOLE].in_words
    bench.restart()
    bench.rounds.lifecycle.abort(round_id, "tried enough", "abort")
    with bench.store.read() as connection:
        assert account(connection, WHOLE).committed.divergence == 0
    bench.stop()


def test_how_accounts_count_is_a_part_of_the_request(tmp_path: Path, store_url: str) -> None:
    bench = Bench(tmp_path, store_url, accounting=AccountingMethod(8.0))
    ask = bench.rounds.datasets.register
    assert (
        ask(
            "shop", "shop.csv", SCHEMA, CAP, CAP, "register", accepted=LARGE_CAPS, accounting=AccountingMethod(8.0)
        ).name
        == "shop"
    )
    with pytest.raises(AlreadyExists):
        ask("shop", "shop.csv", SCHEMA, CAP, CAP, "register", accepted=LARGE_CAPS)
    for accounting, field in (
        (AccountingMethod(data_order=0.5), "data_order"),
        (AccountingMethod(0.0, 1e9), "analyst_order"),
    ):
        with pytest.raises(InvalidArgument, match=field):
            ask("other", "shop.csv", SCHEMA, CAP, CAP, "other", accounting=accounting)
    with pytest.raises(InvalidArgument, match="analyst_order: must be finite"):
        AccountingMethod(analyst_order=float("nan"))
    bench.stop()


def test_where_rounds_do_not_add_there_is_no_order(tmp_path: Path, store_url: str) -> None:
    """Whatever order the dataset has: a statement lives in one round, which is converted by itself."""
    bench = Bench(tmp_path, store_url, accounting=AccountingMethod(analyst_order=3.0))
    round_id = bench.sealed()
    plan = bench.rounds.views.get(round_id).plan
    with bench.store.read() as connection:
        held = account(connection, "analyst/shop/query/ann")
        found = connection.execute(select(record_items.c.content)).scalars()
        contents = [json.loads(each) for each in found if each]
    assert (held.cap, held.committed) == (Cap(CAP.epsilon, CAP.delta), plan.analyst_cost)
    assert [each["analyst_order"] for each in contents if each["item"] == "round"] == [None]
    bench.stop()


def test_what_was_lost_is_registered_again_at_its_own_order_only(tmp_path: Path, store_url: str) -> None:
    bench = new_bench(tmp_path, store_url)
    known = {"data/gone": Cost(divergence=5), "data/away": Cost(divergence=7)}
    lost = Snapshot(99, b"\1" * 32, known, dict.fromkeys(known, 6.0))
    with bench.store.write() as connection:
        write_off(connection, lost, Finding.BEHIND, datetime(2024, 1, 1, tzinfo=UTC))

    def register(order: float) -> None:
        accounting = AccountingMethod(data_order=order)
        ask = bench.rounds.datasets.register
        ask(
            "gone",
            "shop.csv",
            SCHEMA,
            CAP,
            CAP,
            f"gone {order}",
            accounting=accounting,
            people="new",
            new_budgets=True,
            accepted=LARGE_CAPS,
        )

    # Any other table may be a lost one, until that is registered again.
    table = bench.directory / "data" / "shop.csv"
    row = table.read_text().splitlines()[1] + "\n"
    (table.parent / "other.csv").write_text(table.read_text() + row)
    (table.parent / "new.csv").write_text(table.read_text() + 2 * row)
    other = ("other", "other.csv", SCHEMA, CAP, CAP)
    with pytest.raises(InvalidArgument, match="as this may be the table of the dataset 'away'"):
        bench.rounds.datasets.register(*other, "1", people="new", accepted=LARGE_CAPS)
    bench.rounds.datasets.register("beside", *other[1:], "2", people="new", new_budgets=True, accepted=LARGE_CAPS)
    opened = bench.rounds.budgets.journal()[0][-1]
    assert (opened.account, json.loads(opened.events)["beside"]) == ("data/beside", ["data/away", "data/gone"])
    # Under its own old name each of the lost ones is taken for what it says.
    (table.parent / "away.csv").write_text(table.read_text() + 3 * row)
    away = bench.rounds.datasets.register(
        "away",
        "away.csv",
        SCHEMA,
        CAP,
        CAP,
        "4",
        accounting=AccountingMethod(data_order=6.0),
        people="new",
        accepted=LARGE_CAPS,
    )
    opened = bench.rounds.budgets.journal()[0][-1]
    assert (opened.account, "beside" in json.loads(opened.events)) == (f"data/{away.name}", False)
    for order in (0.0, 2.5):
        with pytest.raises(InvalidArgument, match=r"data_order: must be 6\.0, the order at which losses"):
            register(order)
    register(6.0)
    with bench.store.read() as connection:
        assert account(connection, "data/gone").committed == Cost(divergence=5)
    bench.rounds.datasets.register("new", "new.csv", SCHEMA, CAP, CAP, "3", people="new", accepted=LARGE_CAPS)
    bench.stop()
