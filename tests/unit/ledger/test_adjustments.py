"""Caps set anew, losses written off, and accounts recomputed from the journal."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import astuple
from pathlib import Path

import pytest
from harness.ledger_store import NOW, ledger_store, open_with, release, reserve, spend, totals
from sqlalchemy import text

from equipoise.accounting import Cost
from equipoise.errors import BudgetExhausted, DataLoss, InvalidArgument, NotFound, WrongState
from equipoise_server.conversion import epsilon_at, epsilon_for, largest_rho
from equipoise_server.ledger import journal
from equipoise_server.ledger.adjustments import WrittenOff, set_cap, write_off
from equipoise_server.ledger.caps import MAX_AMOUNT, MAX_EPSILON, Cap, Composition, at_order, counted, limits
from equipoise_server.ledger.guard_comparison import Finding, compare
from equipoise_server.ledger.guard_snapshot import Snapshot
from equipoise_server.ledger.replay import check_accounts
from equipoise_server.ledger.seen_digests import SeenDigests
from equipoise_server.storage.store import Store

CAP = Cap(1.0, 1e-6)
ADDING = at_order("cap", CAP)
ORDER = ADDING.order or 0.0
DATA, ANN, WHOLE = "data/t", "analyst/t/query/ann", "analyst/t/analyst/ann"
LIMIT = limits(ADDING).divergence
MAX_RHO = largest_rho(CAP.epsilon, CAP.delta)


@pytest.fixture
def unchecked(store_url: str) -> Iterator[Store]:
    store = ledger_store(store_url, [f"r{number}" for number in range(9)])
    open_with(store, DATA, Composition.SEQUENTIAL, ADDING)
    open_with(store, ANN, Composition.PARALLEL, CAP)
    open_with(store, WHOLE, Composition.SEQUENTIAL, ADDING)
    yield store
    store.close()


@pytest.fixture
def store(unchecked: Store) -> Iterator[Store]:
    """A store whose accounts say at the end what its journal says."""
    yield unchecked
    agrees(unchecked)


def agrees(store: Store) -> None:
    """Every account says what the journal says."""
    with store.read() as connection:
        check_accounts(connection)


def cap(store: Store, name: str, epsilon: float, delta: float, pending: dict[str, Cost] | None = None) -> None:
    with store.write() as connection:
        set_cap(connection, name, Cap(epsilon, delta), NOW, pending or {})


def lose(store: Store, committed: dict[str, Cost], finding: Finding) -> list[WrittenOff]:
    orders = {name: ORDER for name in committed if name != ANN}
    snapshot = Snapshot(99, b"\1" * 32, committed, orders)
    with store.write() as connection:
        return write_off(connection, None if finding is Finding.MISSING else snapshot, finding, NOW)


def test_rounds_of_whole_analysts_add_up_to_their_cap(store: Store) -> None:
    third = Cost(divergence=LIMIT // 3, delta=10**11)
    for round_id in ("r0", "r1", "r2"):
        reserve(store, round_id, {WHOLE: third})
        spend(store, round_id)
    assert totals(store, WHOLE)[0] == third + third + third
    with pytest.raises(BudgetExhausted, match="account analyst/t/analyst/ann: "):
        reserve(store, "r3", {WHOLE: Cost(divergence=3)})


def test_a_raised_cap_lets_more_in_and_a_lowered_one_does_not(store: Store) -> None:
    reserve(store, "r0", {DATA: Cost(divergence=LIMIT)})
    with pytest.raises(BudgetExhausted):
        reserve(store, "r1", {DATA: Cost(divergence=LIMIT)})
    cap(store, DATA, 2.0, 1e-6)
    reserve(store, "r1", {DATA: Cost(divergence=LIMIT)})
    with pytest.raises(InvalidArgument, match="cap: is below what is spent or reserved: epsilon 1") as refused:
        cap(store, DATA, 1.1, 1e-6)
    assert counted(Cap(1.1, 1e-6, ORDER), Cost(divergence=2 * LIMIT)).in_words in refused.value.message
    with pytest.raises(NotFound):
        cap(store, "data/other", 1.0, 1e-6)
    release(store, "r1")
    cap(store, DATA, 1.0, 1e-6)


def test_a_cap_leaves_room_for_what_open_rounds_will_reserve(store: Store) -> None:
    part = Cost(divergence=LIMIT // 4)
    reserve(store, "r0", {DATA: part})
    two = {"r1": part, "r2": part}
    # By half of the delta the limit is converted.
    fitting = epsilon_at(LIMIT // 2, ORDER, CAP.delta / 2) + 1e-6
    with pytest.raises(WrongState, match=r"what the 2 open rounds of this account .* \(the newest: r1, r2\)"):
        cap(store, DATA, fitting, CAP.delta, two)
    cap(store, DATA, fitting, CAP.delta, {"r1": part})
    # Where the worst round counts, each of them needs room for itself only.
    alone = Cost(rho=MAX_RHO // 4)
    two = {"r1": alone, "r2": alone}
    with pytest.raises(WrongState):
        cap(store, ANN, epsilon_for(alone, CAP.delta) - 1e-6, CAP.delta, two)
    cap(store, ANN, epsilon_for(alone, CAP.delta) + 1e-6, CAP.delta, two)


def test_which_round_is_the_worst_follows_the_delta_of_the_cap(store: Store) -> None:
    """A pair does not depend on delta, a rho does: so they change places."""
    rho, pair = Cost(rho=MAX_RHO // 4), Cost(epsilon=int(epsilon_for(Cost(rho=MAX_RHO // 4), 1e-4) * 1e12) + 10**9)
    assert epsilon_for(rho, 1e-6) > epsilon_for(pair, 1e-6) > epsilon_for(rho, 1e-4)
    reserve(store, "r0", {ANN: rho})
    spend(store, "r0")
    reserve(store, "r1", {ANN: pair})
    assert totals(store, ANN) == (rho, rho)
    cap(store, ANN, 1.0, 1e-4)
    assert totals(store, ANN) == (rho, pair)
    agrees(store)
    release(store, "r1")
    assert totals(store, ANN) == (rho, rho)


def test_what_the_store_forgot_is_spent(store: Store) -> None:
    reserve(store, "r0", {DATA: Cost(divergence=5), ANN: Cost(epsilon=5), WHOLE: Cost(divergence=9)})
    known = {
        DATA: Cost(divergence=12, delta=3),
        ANN: Cost(epsilon=7),
        WHOLE: Cost(divergence=4),
        "analyst/t/analyst/gone": Cost(divergence=2),
    }
    done = lose(store, known, Finding.BEHIND)
    assert done == [
        WrittenOff("analyst/t/analyst/gone", Cost(divergence=2)),
        WrittenOff(ANN, Cost(epsilon=7)),
        WrittenOff(DATA, Cost(divergence=7, delta=3)),
    ]
    assert totals(store, DATA) == (Cost(divergence=7, delta=3), Cost(divergence=12, delta=3))
    assert totals(store, ANN) == (Cost(epsilon=7), Cost(epsilon=7))
    # The worst round stays the worst, also when a charge is given back, or a cap set.
    release(store, "r0")
    assert totals(store, ANN) == (Cost(epsilon=7), Cost(epsilon=7))
    cap(store, ANN, 1.0, 1e-5)
    assert totals(store, ANN) == (Cost(epsilon=7), Cost(epsilon=7))
    # An account that the copy does not have begins with what was lost under its name.
    open_with(store, "analyst/t/analyst/gone", Composition.SEQUENTIAL, ADDING)
    assert totals(store, "analyst/t/analyst/gone") == (Cost(divergence=2), Cost(divergence=2))


def test_of_a_store_that_went_another_way_all_of_the_mark_is_added(store: Store) -> None:
    reserve(store, "r0", {DATA: Cost(divergence=5), ANN: Cost(epsilon=5)})
    lose(store, {DATA: Cost(divergence=5), ANN: Cost(epsilon=3)}, Finding.FORKED)
    assert totals(store, DATA)[1] == Cost(divergence=10)
    assert totals(store, ANN)[1] == Cost(epsilon=5)


def test_without_a_guard_nothing_is_left(store: Store) -> None:
    reserve(store, "r0", {DATA: Cost(divergence=5)})
    lose(store, {}, Finding.MISSING)
    for number, name in enumerate((DATA, WHOLE), start=1):
        with pytest.raises(BudgetExhausted):
            reserve(store, f"r{number}", {name: Cost(divergence=1)})
        with pytest.raises(BudgetExhausted):
            reserve(store, f"r{number}", {name: Cost(delta=1)})
    assert epsilon_for(totals(store, ANN)[0], CAP.delta) == CAP.epsilon


def test_more_than_a_cap_allows_can_be_written_off_and_then_nothing_fits(store: Store) -> None:
    lose(store, {DATA: Cost(divergence=2 * LIMIT)}, Finding.BEHIND)
    assert totals(store, DATA)[1] == Cost(divergence=2 * LIMIT)
    with pytest.raises(BudgetExhausted):
        reserve(store, "r0", {DATA: Cost(divergence=1)})
    cap(store, DATA, 3.0, 1e-6)
    reserve(store, "r0", {DATA: Cost(divergence=1)})


def test_a_delta_beyond_its_limit_leaves_room_for_nothing(store: Store) -> None:
    """Whatever of the divergence is left: the two limits are not traded for one another."""
    limit = limits(at_order("cap", Cap(1.0, 1e-6)))
    lose(store, {DATA: Cost(delta=limit.delta + 1)}, Finding.BEHIND)
    with pytest.raises(BudgetExhausted):
        reserve(store, "r0", {DATA: Cost(divergence=1)})


@pytest.mark.parametrize("composition", Composition)
def test_sums_beyond_what_a_column_holds_are_cut_to_it_and_leave_room_for_nothing(
    store_url: str, composition: Composition
) -> None:
    """Every copy that went another way adds all that the one before it knew."""
    largest = Cap(MAX_EPSILON, 0.5)
    adding = composition is Composition.SEQUENTIAL
    counted = at_order("cap", largest) if adding else largest
    limit = limits(counted)
    assert max(astuple(limit)) < MAX_AMOUNT // 8
    store = ledger_store(store_url, ["r0", "r1"])
    open_with(store, DATA, composition, counted)
    one = Cost(divergence=limit.divergence, delta=limit.delta) if adding else Cost(epsilon=limit.epsilon)
    waiting = Cost(divergence=7) if adding else Cost(epsilon=7)
    reserve(store, "r0", {DATA: waiting})
    orders = {} if counted.order is None else {DATA: counted.order}
    for _ in range(10):
        known = Cost(*map(max, astuple(totals(store, DATA)[1]), astuple(one)))
        with store.write() as connection:
            write_off(connection, Snapshot(99, b"\1" * 32, {DATA: known}, orders), Finding.FORKED, NOW)
        agrees(store)
    if adding:
        assert totals(store, DATA)[1] == Cost(divergence=MAX_AMOUNT, delta=MAX_AMOUNT)
    # What is given back of a sum that was cut leaves it cut.
    release(store, "r0")
    agrees(store)
    assert max(astuple(totals(store, DATA)[1])) == (MAX_AMOUNT if adding else limit.epsilon)
    if adding:
        with pytest.raises(BudgetExhausted):
            reserve(store, "r1", {DATA: Cost(divergence=1)})
        with pytest.raises(InvalidArgument, match="cap: is below what is spent"):
            cap(store, DATA, MAX_EPSILON, 0.9)
    store.close()


def test_what_another_copy_counted_at_a_smaller_order_is_cut_to_what_a_column_holds(store_url: str) -> None:
    store = ledger_store(store_url, ["r0"])
    open_with(store, DATA, Composition.SEQUENTIAL, at_order("cap", Cap(MAX_EPSILON, 0.5), 8.0))
    snapshot = Snapshot(99, b"\1" * 32, {DATA: Cost(divergence=MAX_AMOUNT)}, {DATA: 2.0})
    with store.write() as connection:
        assert write_off(connection, snapshot, Finding.FORKED, NOW)[0].cost.divergence == MAX_AMOUNT
    agrees(store)
    with pytest.raises(BudgetExhausted):
        reserve(store, "r0", {DATA: Cost(divergence=1)})
    store.close()


@pytest.mark.parametrize("order", [2.0, 4.0, 6.0, 7.5])
def test_what_another_copy_counted_at_a_smaller_order_counts_for_more_at_a_larger_one(
    store_url: str, order: float
) -> None:
    """Gaussian noise of the divergence that the other copy counted has more of it at the account's own order."""
    store = ledger_store(store_url, ["r0"])
    own = at_order("cap", Cap(4.0, 1e-6), 8.0)
    open_with(store, DATA, Composition.SEQUENTIAL, own)
    known = limits(own).divergence
    snapshot = Snapshot(99, b"\1" * 32, {DATA: Cost(divergence=known)}, {DATA: order})
    with store.write() as connection:
        (lost,) = write_off(connection, snapshot, Finding.FORKED, NOW)
    assert lost.cost.divergence >= known * 8 / order
    agrees(store)
    store.close()


def test_a_mark_that_was_written_off_is_good_again_and_another_is_not(store: Store, tmp_path: Path) -> None:
    seen = SeenDigests(tmp_path / "digests")
    with store.read() as connection:
        head = journal.head(connection)
        seen.extend(0, [*journal.digests(connection, 0, head.sequence), *[b"\1" * 32] * (99 - head.sequence)])
        assert compare(connection, Snapshot(99, b"\1" * 32, {}), seen) is Finding.BEHIND
    lose(store, {}, Finding.BEHIND)
    with store.read() as connection:
        assert compare(connection, Snapshot(99, b"\1" * 32, {}), seen) is Finding.CONTAINED
        assert compare(connection, Snapshot(98, b"\1" * 32, {}), seen) is Finding.FORKED
        assert compare(connection, Snapshot(1, b"\1" * 32, {}), seen) is Finding.FORKED


@pytest.mark.parametrize(
    "change",
    ["committed_rho = committed_rho - 1", "cap_epsilon = 2", "spent_rho = spent_rho - 1", "spent_delta = 1"],
)
def test_an_account_that_was_changed_beside_the_journal_is_noticed(unchecked: Store, change: str) -> None:
    reserve(unchecked, "r0", {ANN: Cost(rho=5)})
    spend(unchecked, "r0")
    agrees(unchecked)
    with unchecked.write() as connection:
        connection.execute(text(f"UPDATE accounts SET {change} WHERE name = '{ANN}'"))
    with pytest.raises(DataLoss, match=f"account {ANN} does not say what the budget journal says"):
        agrees(unchecked)


# PostgreSQL's own checks cannot be passed by.
@pytest.mark.parametrize("empty_store", ["sqlite"], indirect=True)
@pytest.mark.parametrize(
    ("change", "named"),
    [
        ("UPDATE accounts SET spent_rho = -1", "account [^ ]+ is damaged"),
        ("UPDATE accounts SET composition = 'some'", "account [^ ]+ is damaged"),
        ("UPDATE charges SET rho = -1", f"what the round r0 charges account {ANN} is damaged"),
    ],
)
def test_what_cannot_stand_on_an_account_is_named(unchecked: Store, change: str, named: str) -> None:
    reserve(unchecked, "r0", {ANN: Cost(rho=5)})
    with unchecked.write() as connection:
        connection.execute(text("PRAGMA ignore_check_constraints = ON"))
        connection.execute(text(change))
        connection.execute(text("PRAGMA ignore_check_constraints = OFF"))
    with pytest.raises(DataLoss, match=named):
        agrees(unchecked)


@pytest.mark.parametrize(
    "change", ["UPDATE charges SET rho = 4", "UPDATE charges SET state = 'reserved'", "DELETE FROM charges"]
)
def test_a_charge_that_was_changed_beside_the_journal_is_noticed(unchecked: Store, change: str) -> None:
    """Otherwise a later release or another cap would take the wrong amount for live."""
    reserve(unchecked, "r0", {ANN: Cost(rho=5)})
    spend(unchecked, "r0")
    with unchecked.write() as connection:
        connection.execute(text(change))
    with pytest.raises(DataLoss, match=f"account {ANN} does not say what the budget journal says"):
        agrees(unchecked)


def test_an_account_without_an_opening_and_one_that_is_gone_are_noticed(unchecked: Store) -> None:
    with unchecked.write() as connection:
        connection.execute(text(f"UPDATE accounts SET name = 'data/x' WHERE name = '{WHOLE}'"))
    with pytest.raises(DataLoss, match="account data/x does not"):
        agrees(unchecked)
    with unchecked.write() as connection:
        connection.execute(text("DELETE FROM accounts WHERE name = 'data/x'"))
    with pytest.raises(DataLoss, match=f"account {WHOLE} is in the budget journal, but not in the store"):
        agrees(unchecked)
