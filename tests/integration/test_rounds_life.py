"""A round from opening to its streams, through the real store, worker process, mechanism and formats."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from harness.answers import flat, flat_chunks
from harness.dangers import LARGE_CAPS
from harness.rounds_bench import ANN, BOB, CAP, KEY, RECORDS, SALT, SCHEMA, SEED, TERMS, Bench
from harness.stores import statements, stored_bytes

from equipoise.errors import (
    AlreadyExists,
    BudgetExhausted,
    InvalidArgument,
    NotFound,
    OutOfRange,
    WrongState,
)
from equipoise.model.accounts import Budget
from equipoise.model.rounds import RoundState, Share
from equipoise.queries.workload_compiler import compile_workload
from equipoise.wire.results import chunk_from_bytes
from equipoise.wire.workloads import workload_to_bytes
from equipoise_server.computation.seed import bound_seed
from equipoise_server.datasets.digest import data_digest
from equipoise_server.datasets.source import source_at
from equipoise_server.mechanisms.registry import mechanism
from equipoise_server.rounds.terms.checks import setting_of

ANN_BYTES, BOB_BYTES = workload_to_bytes(ANN), workload_to_bytes(BOB)
DATA = "data/shop"


def test_what_an_analyst_looks_up_reads_no_other_analyst_s_share(bench: Bench) -> None:
    """So that how long it takes says nothing of how many others there are."""
    round_id = bench.opened()
    views, submissions = bench.rounds.analyst_views, bench.rounds.submissions
    with statements() as carried_out:
        assert [share.analyst for share in views.get("ann", round_id).terms.shares] == ["ann"]
        assert [share.analyst for share in views.page("ann")[0][0].terms.shares] == ["ann"]
        assert views.dataset("ann", "shop").version == 1
        for analyst, name, version in (("ann", "other", 0), ("cyd", "shop", 0), ("ann", "shop", 2)):
            with pytest.raises(NotFound, match="there is no such dataset"):
                views.dataset(analyst, name, version)
        submissions.dry_run("ann", round_id, ANN_BYTES)
        submissions.submit("ann", round_id, "own", ANN_BYTES, SALT)
        submissions.withdraw("ann", round_id, "back")
    of_shares = [each for each in carried_out if re.search(r"\b(FROM|JOIN) shares\b", each)]
    assert of_shares
    assert all("shares.analyst = " in each for each in of_shares), of_shares


def test_a_whole_round_delivers_what_the_mechanism_computes(bench: Bench) -> None:
    record = bench.released()
    setting = setting_of(TERMS, RECORDS, SCHEMA.universe_size, SCHEMA)
    data = source_at(bench.directory / "data" / "shop.csv").counts(SCHEMA)
    seed = bound_seed(
        SEED, None, data_digest(data), setting, record.plan, {"ann": ANN_BYTES, "bob": workload_to_bytes(BOB)}
    )
    workloads = {"ann": compile_workload(ANN, SCHEMA), "bob": compile_workload(BOB, SCHEMA)}
    expected = mechanism("equilibrium").run(setting, record.plan, data, workloads, seed, lambda *_: None)
    for analyst, answers in expected.answers.items():
        chunks = [
            chunk_from_bytes(chunk) for chunk in bench.rounds.analyst_views.results(analyst, record.id, 0, 100)
        ]
        assert [chunk.sequence for chunk in chunks] == list(range(1, len(chunks) + 1))
        assert chunks[-1].last
        assert flat_chunks(chunks) == flat(answers)


def test_charges_are_reserved_at_seal_and_spent_at_release(bench: Bench) -> None:
    round_id = bench.opened()
    bench.rounds.submissions.submit("ann", round_id, "1", ANN_BYTES, SALT)
    nothing = Budget(0.0, 0.0)
    assert all(
        (each.spent, each.committed) == (nothing, nothing) for each in bench.rounds.budgets.accounts("shop")[0]
    )
    bench.rounds.lifecycle.seal(round_id, "seal")
    reserved = bench.charged()
    assert set(reserved) == {DATA, "analyst/shop/query/ann", "analyst/shop/query/bob"}
    assert all(spent == 0 < committed for spent, committed in reserved.values())
    bench.rounds.lifecycle.run(round_id, "run")
    progress = bench.wait(round_id)
    assert progress.complete
    assert progress.peak_memory_bytes > 1 << 20
    assert bench.charged() == reserved
    bench.rounds.lifecycle.release(round_id, "release")
    assert bench.charged() == {name: (committed, committed) for name, (_, committed) in reserved.items()}
    assert bench.rounds.views.progress(round_id).peak_memory_bytes == progress.peak_memory_bytes
    entries, token = bench.rounds.budgets.journal()
    assert token == ""
    assert [entry.action for entry in entries] == [
        *["open-account"] * 3,
        *["reserve"] * 3,
        "run",
        *["spend"] * 3,
    ]


def test_rounds_add_up_on_the_data_account_until_the_cap(bench: Bench) -> None:
    bench.released()
    one = bench.charged()[DATA][0]
    bench.released()
    assert bench.charged()[DATA][0] > one
    # The worst round is all that an analyst's account with unit = query keeps.
    assert TERMS.analyst_budget is not None
    assert bench.charged()["analyst/shop/query/ann"][0] <= TERMS.analyst_budget.epsilon
    ids: list[str] = []
    refusal = ""
    while not refusal:
        try:
            ids.append(bench.opened())
        except BudgetExhausted as error:
            refusal = error.message
    assert ids
    assert re.match(
        r"account data/shop: .* Counted already: .* at Renyi order .* Still fits: .*; rounds that are open", refusal
    )
    # A plan says the same beforehand, in the same words, and opens or reserves nothing.
    plan = bench.rounds.opening.plan(TERMS)
    data, analyst = bench.rounds.opening.charges(TERMS, plan)
    assert (data.account, data.refusal) == (DATA, refusal)
    assert (analyst.account, analyst.refusal) == ("analyst/shop/query/ann", "")
    assert data.in_words == bench.rounds.views.charges(bench.rounds.views.get(ids[0]))[0].in_words
    assert data.divergence > data.max_divergence - data.divergence * (2 + len(ids)) > 0
    # What could be opened can be sealed, in any order.
    for round_id in reversed(ids):
        bench.rounds.lifecycle.seal(round_id, f"seal {round_id}")
    assert bench.charged()[DATA][1] <= CAP.epsilon


def test_one_analysts_account_never_refuses_the_round_of_another(bench: Bench) -> None:
    """Ann is in both rounds and has room for one; the second is refused before bob can have worked for it."""
    first = replace(TERMS, unit="analyst")
    with_bob, ann, bob = bench.opened(first), "analyst/shop/analyst/ann", "analyst/shop/analyst/bob"
    bench.rounds.lifecycle.seal(with_bob, "seal to see its cost")
    cost = bench.needed(ann)
    bench.rounds.lifecycle.abort(with_bob, "a public reason", "abort")
    bench.rounds.budgets.set_cap(ann, Budget(cost * 1.01, CAP.delta), "room for one")
    again = bench.opened(first)
    with pytest.raises(BudgetExhausted, match=rf"account {ann}: .*; rounds that are open .* \(1 here\)"):
        bench.opened(first)
    # Nothing stands on the accounts for it: what is shown changes when a round is sealed.
    assert bench.charged()[ann] == bench.charged()[bob] == (0.0, 0.0)
    with pytest.raises(WrongState, match=rf"what the 1 open rounds of this account .*{again}"):
        bench.rounds.budgets.set_cap(ann, Budget(cost * 0.9, CAP.delta), "none")
    without_ann = bench.opened(replace(first, shares=(Share("bob", 4, 12), Share("cyd", 4, 12))))
    for round_id in (without_ann, again):
        bench.rounds.lifecycle.seal(round_id, f"seal {round_id}")
    # An abort makes room.
    bench.rounds.lifecycle.abort(again, "a public reason", "abort again")
    bench.rounds.lifecycle.abort(bench.opened(first), "a public reason", "abort the third")
    bench.rounds.budgets.set_cap(ann, Budget(cost * 0.9, CAP.delta), "less")


def test_a_cap_too_small_is_refused_at_opening(bench: Bench) -> None:
    bench.rounds.datasets.register(
        "small",
        "shop.csv",
        SCHEMA,
        Budget(1.0, 1e-6),
        CAP,
        "2",
        people="new",
        new_budgets=True,
        accepted=LARGE_CAPS,
    )
    with pytest.raises(BudgetExhausted, match="account data/small: "):
        bench.rounds.opening.open(replace(TERMS, dataset="small"), "open")
    bench.rounds.datasets.register(
        "shy", "shop.csv", SCHEMA, CAP, Budget(1.0, 1e-6), "3", people="new", new_budgets=True, accepted=LARGE_CAPS
    )
    with pytest.raises(BudgetExhausted, match="account analyst/shy/query/ann: "):
        bench.rounds.opening.open(replace(TERMS, dataset="shy"), "open")
    assert bench.rounds.views.page() == ([], "")


def test_streams_open_at_the_grid_and_not_before(bench: Bench) -> None:
    round_id = bench.completed()
    record = bench.rounds.lifecycle.release(round_id, "release")
    assert record.release_time == datetime(2024, 1, 1, 12, 1, tzinfo=UTC)
    seen = bench.rounds.analyst_views.get("ann", round_id)
    assert (seen.state, seen.release_time) == (RoundState.SEALED, None)
    with pytest.raises(WrongState):
        bench.rounds.analyst_views.results("ann", round_id, 0, 10)
    bench.clock.move(60)
    assert bench.rounds.analyst_views.get("ann", round_id).state is RoundState.RELEASED
    assert bench.rounds.analyst_views.results("ann", round_id, 0, 10)


def test_streams_resume_and_end(bench: Bench) -> None:
    round_id = bench.released().id
    chunks = bench.rounds.analyst_views.results("ann", round_id, 0, 10)
    assert bench.rounds.analyst_views.results("ann", round_id, len(chunks), 10) == []
    assert bench.rounds.analyst_views.results("ann", round_id, 0, 10) == chunks
    with pytest.raises(OutOfRange):
        bench.rounds.analyst_views.results("ann", round_id, len(chunks) + 1, 10)


def test_the_round_goes_on_without_who_did_not_submit(bench: Bench) -> None:
    round_id = bench.opened()
    bench.rounds.submissions.submit("ann", round_id, "1", ANN_BYTES, SALT)
    bench.rounds.lifecycle.seal(round_id, "seal")
    bench.rounds.lifecycle.run(round_id, "run")
    assert bench.wait(round_id).complete
    bench.rounds.lifecycle.release(round_id, "release")
    bench.clock.move(60)
    assert bench.rounds.analyst_views.results("ann", round_id, 0, 10)
    with pytest.raises(NotFound, match="there is no such stream"):
        bench.rounds.analyst_views.results("bob", round_id, 0, 10)


def test_others_rounds_are_as_if_they_did_not_exist(bench: Bench) -> None:
    round_id = bench.opened()
    words = []
    for wanted in (round_id, "0" * 32):
        with pytest.raises(NotFound) as caught:
            bench.rounds.analyst_views.get("cyd", wanted)
        words.append(str(caught.value))
        with pytest.raises(NotFound):
            bench.rounds.submissions.submit("cyd", wanted, "1", ANN_BYTES, SALT)
        with pytest.raises(NotFound):
            bench.rounds.analyst_views.results("cyd", wanted, 0, 1)
    assert words == ["there is no such round"] * 2
    assert bench.rounds.analyst_views.page("cyd") == ([], "")
    assert bench.rounds.analyst_views.get("ann", round_id).terms.shares == (TERMS.shares[0],)


@pytest.mark.full
def test_a_round_that_nobody_asked_in_goes_on_like_any_other(bench: Bench) -> None:
    """Its analysts must not learn whether others took part: neither from a refusal, nor from what is released."""
    round_id = bench.opened()
    bench.rounds.submissions.submit("ann", round_id, "1", ANN_BYTES, SALT)
    bench.rounds.submissions.withdraw("ann", round_id, "2")
    bench.rounds.lifecycle.seal(round_id, "seal")
    # What it is charged was public when it was opened.
    charged = bench.charged()
    bench.rounds.lifecycle.abort(bench.sealed(), "a public reason", "abort")
    assert bench.charged() == charged
    bench.rounds.lifecycle.run(round_id, "run")
    assert bench.wait(round_id).complete
    bench.rounds.lifecycle.release(round_id, "release")
    bench.clock.move(60)
    assert bench.rounds.analyst_views.get("bob", round_id).state is RoundState.RELEASED
    for name in ("ann", "bob"):
        with pytest.raises(NotFound, match="there is no such stream"):
            bench.rounds.analyst_views.results(name, round_id, 0, 1)


def test_requests_are_carried_out_once_also_after_a_restart(bench: Bench) -> None:
    opened = bench.rounds.opening.open(TERMS, "open", "olga")
    receipt = bench.rounds.submissions.submit("ann", opened.id, "1", ANN_BYTES, SALT)
    sealed = bench.rounds.lifecycle.seal(opened.id, "seal", "olga")
    bench.clock.move(1000)
    bench.restart()
    assert bench.rounds.opening.open(TERMS, "open", "olga") == opened
    assert bench.rounds.submissions.submit("ann", opened.id, "1", ANN_BYTES, SALT) == receipt
    assert bench.rounds.lifecycle.seal(opened.id, "seal", "olga") == sealed
    assert (
        bench.rounds.datasets.register(
            "shop", "shop.csv", SCHEMA, CAP, CAP, "register", accepted=LARGE_CAPS
        ).records
        == RECORDS
    )
    assert len(bench.rounds.views.page()[0]) == 1
    with pytest.raises(AlreadyExists):
        bench.rounds.opening.open(replace(TERMS, beta=0.01), "open", "olga")
    with pytest.raises(AlreadyExists):
        bench.rounds.submissions.submit("ann", opened.id, "1", BOB_BYTES, SALT)
    with pytest.raises(AlreadyExists):
        bench.rounds.lifecycle.seal(opened.id, "open", "olga")
    # Another operator's, or another analyst's, request_id is its own.
    assert bench.rounds.opening.open(TERMS, "open", "otto").id != opened.id


def test_steps_out_of_order_are_refused(bench: Bench) -> None:
    round_id = bench.sealed()
    with pytest.raises(WrongState, match="the round is sealed, so it cannot be sealed"):
        bench.rounds.lifecycle.seal(round_id, "again")
    with pytest.raises(WrongState, match="the round is sealed, so it cannot be released"):
        bench.rounds.lifecycle.release(round_id, "early")
    bench.rounds.lifecycle.run(round_id, "run")
    with pytest.raises(WrongState, match="is running"):
        bench.rounds.lifecycle.run(round_id, "run again")
    bench.wait(round_id)
    bench.rounds.lifecycle.release(round_id, "release")
    with pytest.raises(WrongState):
        bench.rounds.lifecycle.abort(round_id, "too late", "abort")
    assert bench.rounds.lifecycle.release(round_id, "release").state is RoundState.RELEASED


def test_lists_are_paged_newest_first(bench: Bench) -> None:
    ids = [bench.opened() for _ in range(3)]
    page, token = bench.rounds.views.page(2)
    rest, end = bench.rounds.views.page(2, token)
    assert [record.id for record in (*page, *rest)] == ids[::-1]
    assert end == ""
    mine, token = bench.rounds.analyst_views.page("bob", 1)
    assert (mine[0].id, token) == (ids[2], ids[2])
    assert bench.rounds.analyst_views.page("bob", 5, token)[1] == ""
    with pytest.raises(InvalidArgument, match=r"^page_size: "):
        bench.rounds.views.page(1001)
    with pytest.raises(InvalidArgument, match=r"^page_token: "):
        bench.rounds.analyst_views.page("cyd", 5, token)


def test_lists_of_any_number_of_rounds_are_the_same_statements(bench: Bench) -> None:
    """Connections keep what they have prepared: one more for each round would be memory for each round."""
    told = []
    for _ in range(3):
        bench.opened()
        with statements() as carried_out:
            bench.rounds.views.page()
            bench.rounds.analyst_views.page("ann")
        told.append(carried_out)
    assert told[0] == told[1] == told[2] != set()


def test_the_seed_is_committed_and_not_readable_in_the_store(bench: Bench) -> None:
    record = bench.rounds.views.get(bench.opened())
    assert len(record.seed_commitment) == 32
    bench.stop()
    stored = stored_bytes(bench.url)
    assert record.seed_commitment in stored
    assert SEED not in stored
    assert KEY not in stored
    bench.start()


def test_a_round_that_protects_whole_analysts(bench: Bench) -> None:
    """The same life with unit = analyst, bob absent: an account of its own is charged, bob's place too."""
    round_id = bench.opened(replace(TERMS, unit="analyst"))
    bench.rounds.submissions.submit("ann", round_id, "ann", ANN_BYTES, SALT)
    bench.rounds.lifecycle.seal(round_id, "seal")
    bench.rounds.lifecycle.run(round_id, "run")
    assert bench.wait(round_id).complete
    bench.rounds.lifecycle.release(round_id, "release")
    bench.clock.move(60)
    columns = chunk_from_bytes(bench.rounds.analyst_views.results("ann", round_id, 0, 10)[0])
    assert len(columns.answers) == compile_workload(ANN, SCHEMA).query_count
    charged = bench.charged()
    assert charged["analyst/shop/analyst/ann"] == charged["analyst/shop/analyst/bob"]
    assert charged["analyst/shop/analyst/bob"][0] > 0
    # Each statement is protected by that, too.
    assert charged["analyst/shop/query/ann"] == charged["analyst/shop/query/bob"]
    assert charged["analyst/shop/query/bob"][0] > 0
    assert charged[DATA][0] > 0
