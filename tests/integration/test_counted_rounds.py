"""Rounds on accounts of a Renyi order: what they reserve, spend and export."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from harness.rounds_bench import ANALYSTS, ANN, CAP, SALT, SCHEMA, TERMS, Bench

from equipoise.accounting import Mixture, charge_at, charge_of, events_from_json
from equipoise.errors import AlreadyExists, InvalidArgument
from equipoise.model.rounds import Share
from equipoise.wire.workloads import workload_to_bytes
from equipoise_server.ledger.accounts import account
from equipoise_server.ledger.caps import Cap, at_order
from equipoise_server.rounds.datasets import Counting

PLAYED = replace(
    TERMS,
    unit="analyst",
    shares=tuple(Share(name, 4, 12) for name in ANALYSTS),
    options={"play": "sampled", "rounds": 20},
)
WHOLE = "analyst/shop/analyst/ann"


def test_a_round_of_sampled_play_is_counted_by_its_mixture(tmp_path: Path, store_url: str) -> None:
    bench = Bench(tmp_path, store_url, counting=Counting(analyst_order=0))
    order = at_order("cap", Cap(CAP.epsilon, CAP.delta), 0).order
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
    assert (on_data.cap.order, on_data.committed) == (None, plan.data_cost)
    shown = {each.name: each for each in bench.rounds.budgets.accounts("shop")[0]}
    assert (shown[WHOLE].order, shown["data/shop"].order) == (order, None)
    assert 0 < shown[WHOLE].divergence < shown[WHOLE].most_divergence
    bench.restart()
    bench.rounds.lifecycle.abort(round_id, "tried enough", "abort")
    with bench.store.read() as connection:
        assert account(connection, WHOLE).committed.divergence == 0
    bench.stop()


def test_how_accounts_count_is_a_part_of_the_request(tmp_path: Path, store_url: str) -> None:
    bench = Bench(tmp_path, store_url, counting=Counting(8.0))
    ask = bench.rounds.datasets.register
    assert ask("shop", "shop.csv", SCHEMA, CAP, CAP, "register", counting=Counting(8.0)).name == "shop"
    with pytest.raises(AlreadyExists):
        ask("shop", "shop.csv", SCHEMA, CAP, CAP, "register")
    for counting, field in ((Counting(data_order=0.5), "data_order"), (Counting(None, 1e9), "analyst_order")):
        with pytest.raises(InvalidArgument, match=field):
            ask("other", "shop.csv", SCHEMA, CAP, CAP, "other", counting=counting)
    with pytest.raises(InvalidArgument, match="analyst_order: must be finite"):
        Counting(analyst_order=float("nan"))
    bench.stop()
