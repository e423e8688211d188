"""Accounts of a Renyi order: what charges count on them, how much fits, and that the filter keeps its promise."""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from functools import cache

import pytest
from dp_accounting.rdp import RdpAccountant
from harness.ledger_store import NOW, ledger_store, open_with, release, spend, totals
from harness.renyi_events import EVERY, PLAY, diverges, played
from sqlalchemy import text
from sqlalchemy.exc import IntegrityError

from equipoise.accounting import (
    DELTA_UNIT,
    RHO_UNIT,
    ApproximateDpEvent,
    Cost,
    PrivacyEvent,
    ZcdpEvent,
    charge_at,
    charge_of,
    events_to_json,
)
from equipoise.errors import BudgetExhausted, DataLoss, InvalidArgument
from equipoise_server.conversion import epsilon_for, event_of, largest_rho, mixture_delta
from equipoise_server.ledger import accounts, charges, write_offs
from equipoise_server.ledger.adjustments import set_cap, write_off
from equipoise_server.ledger.caps import Cap, Composition, at_order, limits
from equipoise_server.ledger.guard_comparison import Finding
from equipoise_server.ledger.guard_snapshot import Snapshot
from equipoise_server.ledger.replay import check_accounts
from equipoise_server.ledger.rollback_guard import Guard
from equipoise_server.storage.store import Store

CAP = at_order("cap", Cap(4.0, 1e-6), 0)
ORDER = CAP.order or math.nan
LIMIT = limits(CAP)
ALONE = Cap(CAP.epsilon, CAP.delta)  # where rounds do not add
RENYI, WORST = "analyst/t/analyst/ann", "analyst/t/query/ann"
CYD = "analyst/t/analyst/cyd"  # not opened


@pytest.fixture
def unchecked(store_url: str) -> Iterator[Store]:
    store = ledger_store(store_url, [f"r{number}" for number in range(120)])
    open_with(store, RENYI, Composition.SEQUENTIAL, CAP)
    open_with(store, WORST, Composition.PARALLEL, ALONE)
    yield store
    store.close()


@pytest.fixture
def store(unchecked: Store) -> Iterator[Store]:
    """A store whose accounts say at the end what its journal says."""
    yield unchecked
    agrees(unchecked)


def agrees(store: Store) -> None:
    with store.read() as connection:
        check_accounts(connection)


def charge(store: Store, round_id: str, name: str, *made: PrivacyEvent) -> None:
    """Reserve what the parts cost."""
    asked = charges.Charge(name, charge_of(made), events_to_json("equilibrium", made))
    with store.write() as connection:
        charges.reserve(connection, round_id, [asked], NOW)


def counting(units: int) -> PrivacyEvent:
    """A part that counts exactly so many units at the accounts' order."""
    return ZcdpEvent("game", Fraction(units, RHO_UNIT) / Fraction(ORDER))


def losing(delta: int) -> PrivacyEvent:
    """A part that costs so many units of delta, and nothing else."""
    return ApproximateDpEvent("samplers", Fraction(0), Fraction(delta, DELTA_UNIT))


def test_an_account_is_full_at_exactly_its_limits(store: Store) -> None:
    charge(store, "r0", RENYI, counting(LIMIT.divergence - 1))
    with pytest.raises(BudgetExhausted, match="account analyst/t/analyst/ann: "):
        charge(store, "r1", RENYI, counting(2))
    charge(store, "r2", RENYI, counting(1), losing(LIMIT.delta))
    assert totals(store, RENYI)[1] == LIMIT
    for part in (counting(1), losing(1)):
        with pytest.raises(BudgetExhausted):
            charge(store, "r3", RENYI, part)
    spend(store, "r0")
    release(store, "r2")
    assert totals(store, RENYI) == (Cost(divergence=LIMIT.divergence - 1),) * 2


def test_every_kind_of_part_adds_up_on_one_account(store: Store) -> None:
    for number, part in enumerate(EVERY):
        charge(store, f"r{number}", RENYI, part)
        charge(store, f"r{number}", WORST, part)
    each = [charge_at([part], ORDER) for part in EVERY]
    assert totals(store, RENYI)[1] == sum(each, Cost())
    worst = max((charge_of([part]) for part in EVERY), key=lambda cost: epsilon_for(cost, CAP.delta))
    assert totals(store, WORST)[1] == worst


@pytest.mark.slow
def test_more_rounds_of_sampled_play_fit_than_as_pairs_and_no_more_than_are_proven(store: Store) -> None:
    # The best that pairs can do: the cap divided evenly among as many rounds as there can be.
    as_pairs = max(n for n in range(1, 9) if n * mixture_delta(PLAY, CAP.epsilon / n) <= CAP.delta)
    part = played(PLAY, CAP.epsilon / as_pairs)
    counted = LIMIT.divergence // charge_at([part], ORDER).divergence
    for number in range(counted):
        charge(store, f"r{number}", RENYI, part)
    with pytest.raises(BudgetExhausted):
        charge(store, f"r{counted}", RENYI, part)
    assert counted > 3 * as_pairs
    one = counting(math.ceil(RHO_UNIT * diverges(PLAY, ORDER)))
    proven = RdpAccountant([ORDER]).compose(event_of([one])[0], counted)
    assert proven.get_epsilon(CAP.delta / 2) <= CAP.epsilon


def test_where_the_worst_round_counts_each_is_converted_by_itself_at_its_best_order(store: Store) -> None:
    """A round that any order allows fits, whatever else stands there; what no order allows does not."""
    largest = largest_rho(ALONE.epsilon, ALONE.delta)
    rho = Fraction(largest, RHO_UNIT)
    rounds: tuple[list[PrivacyEvent], ...] = (
        [ZcdpEvent("answers", rho)],
        [ApproximateDpEvent("answers", Fraction(4), Fraction(0))],
        [ApproximateDpEvent("answers", Fraction(2), Fraction(1, 10**7)), ZcdpEvent("game", rho / 5)],
        [losing(10**12)],
    )
    for number, made in enumerate(rounds):
        charge(store, f"r{number}", WORST, *made)
        assert epsilon_for(charge_of(made), ALONE.delta) <= ALONE.epsilon
    for beyond in (ZcdpEvent("answers", rho + Fraction(1, RHO_UNIT)), losing(10**12 + 1)):
        with pytest.raises(BudgetExhausted):
            charge(store, "r9", WORST, beyond)
    # Where rounds add, the first of them takes more than all.
    with pytest.raises(BudgetExhausted):
        charge(store, "r9", RENYI, *rounds[0])


def test_another_cap_is_counted_at_the_same_order(store: Store) -> None:
    charge(store, "r0", RENYI, counting(LIMIT.divergence))
    with store.write() as connection:
        set_cap(connection, RENYI, Cap(8.0, 1e-6), NOW, {})
    with store.read() as connection:
        held = accounts.account(connection, RENYI)
    assert (held.cap, held.limit) == (Cap(8.0, 1e-6, ORDER), limits(Cap(8.0, 1e-6, ORDER)))
    charge(store, "r1", RENYI, counting(1))
    for smaller in (CAP, Cap(5.5, 1e-12)):
        with pytest.raises(InvalidArgument, match="cap: is below"), store.write() as connection:
            set_cap(connection, RENYI, smaller, NOW, {})
    with pytest.raises(InvalidArgument, match="takes all of the cap"), store.write() as connection:
        set_cap(connection, RENYI, Cap(0.5, 1e-6), NOW, {})


def lose(store: Store, snapshot: Snapshot | None, finding: Finding) -> None:
    with store.write() as connection:
        write_off(connection, snapshot, finding, NOW)


def test_what_the_store_forgot_is_spent_at_the_order(store: Store) -> None:
    charge(store, "r0", RENYI, counting(5))
    known = {
        RENYI: Cost(delta=3, divergence=12),
        WORST: Cost(rho=9),
        CYD: Cost(divergence=7),
    }
    lose(store, Snapshot(99, b"\1" * 32, known, {RENYI: ORDER, CYD: ORDER}), Finding.BEHIND)
    assert totals(store, RENYI) == (Cost(delta=3, divergence=7), Cost(delta=3, divergence=12))
    assert totals(store, WORST) == (Cost(rho=9),) * 2
    release(store, "r0")
    open_with(store, CYD, Composition.SEQUENTIAL, CAP)
    assert totals(store, CYD) == (Cost(divergence=7),) * 2
    lose(store, None, Finding.MISSING)
    assert totals(store, RENYI)[1] == LIMIT
    assert totals(store, WORST)[1] == Cost(epsilon=4 * 10**12, delta=10**12)


def test_what_was_lost_is_never_counted_at_another_order(store: Store) -> None:
    """To choose an order for it now would be to choose it after results were seen."""
    snapshot = Snapshot(99, b"\1" * 32, {CYD: Cost(divergence=5)}, {CYD: 6.0})
    lose(store, snapshot, Finding.BEHIND)
    with store.read() as connection:
        assert write_offs.lost_orders(connection, "t") == (set(), {6.0})
        assert write_offs.lost_orders(connection, "other") == (set(), set())
    with pytest.raises(DataLoss, match=f"written off of account {CYD} was counted at another order"):
        open_with(store, CYD, Composition.SEQUENTIAL, CAP)
    open_with(store, CYD, Composition.SEQUENTIAL, at_order("cap", ALONE, 6.0))
    assert totals(store, CYD) == (Cost(divergence=5),) * 2


def test_of_an_account_that_a_copy_counted_at_another_order_nothing_is_left(store: Store) -> None:
    charge(store, "r0", RENYI, counting(5))
    lose(store, Snapshot(99, b"\1" * 32, {RENYI: Cost(divergence=1)}, {RENYI: 2.0}), Finding.FORKED)
    counted = totals(store, RENYI)[1]
    assert (counted.delta >= LIMIT.delta, counted.divergence >= LIMIT.divergence) == (True, True)


@pytest.mark.parametrize("other", [2.0, ORDER + 50])
def test_what_a_copy_spent_at_another_order_is_never_counted_as_less(store: Store, other: float) -> None:
    charge(store, "r0", RENYI, counting(5))
    spent = 3 * LIMIT.divergence
    lose(store, Snapshot(99, b"\1" * 32, {RENYI: Cost(divergence=spent)}, {RENYI: other}), Finding.FORKED)
    assert totals(store, RENYI)[1].divergence >= 5 + spent
    assert totals(store, RENYI)[1].delta >= LIMIT.delta


def test_a_guard_remembers_orders(tmp_path_factory: pytest.TempPathFactory, store: Store) -> None:
    guard = Guard(tmp_path_factory.mktemp("guard") / "guard")
    with pytest.raises(DataLoss, match="missing"):
        guard.advance(store)
    charge(store, "r0", RENYI, counting(5), losing(2))
    guard.set(store)
    snapshot = guard.read()
    assert snapshot is not None
    assert snapshot.committed[RENYI] == Cost(delta=2, divergence=5)
    assert snapshot.orders == {RENYI: ORDER}


@pytest.mark.parametrize(
    "change", ["renyi_order = 9", "committed_divergence = 4", "spent_divergence = 1", "limit_divergence = 5"]
)
def test_an_account_that_was_changed_beside_the_journal_is_noticed(unchecked: Store, change: str) -> None:
    charge(unchecked, "r0", RENYI, counting(5))
    with unchecked.write() as connection:
        connection.execute(text(f"UPDATE accounts SET {change} WHERE name = '{RENYI}'"))
    if change.startswith("limit"):
        # A limit follows from the cap: lowered, it refuses more.
        with pytest.raises(BudgetExhausted):
            charge(unchecked, "r1", RENYI, counting(1))
        return
    with pytest.raises(DataLoss, match=f"account {RENYI} does not say what the budget journal says"):
        agrees(unchecked)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "change", "refused"),
    [
        (RENYI, f"committed_divergence = {LIMIT.divergence + 1}", "ck_accounts_divergence"),
        (RENYI, "spent_divergence = 1", "ck_accounts_spent_divergence"),
        (RENYI, "limit_rho = 1", "ck_accounts_counting"),
        (RENYI, "renyi_order = NULL", "ck_accounts_counting"),
        (WORST, "limit_divergence = 1", "ck_accounts_counting"),
        (WORST, "renyi_order = 9", "ck_accounts_counting"),
        (RENYI, "composition = 'worst'", "ck_accounts_counting"),
    ],
)
def test_the_table_refuses_what_no_account_can_be(unchecked: Store, name: str, change: str, refused: str) -> None:
    with pytest.raises(IntegrityError, match=refused), unchecked.write() as connection:
        connection.execute(text(f"UPDATE accounts SET {change} WHERE name = '{name}'"))


def worst_delta(order: float, limit: float, epsilon: float, counted: float) -> float:
    """The largest delta at `epsilon` for an adversary who sees every result before it chooses the next round.

    Each round is randomised response of one of two epsilons, as long as what is counted fits. `counted`: the part
    of its divergence that the filter counts.
    """
    rounds = []
    for each in (0.5, 0.25):
        right = math.exp(each) / (1 + math.exp(each))
        power = right**order * (1 - right) ** (1 - order) + (1 - right) ** order * right ** (1 - order)
        rounds.append((round(4 * each), right, counted * math.log(power) / (order - 1)))

    @cache
    def most(loss: int, first: int, second: int) -> float:
        """`loss` in quarters; `first`, `second`: rounds of either kind so far."""
        best = max(0.0, 1 - math.exp(epsilon - loss / 4))
        for place, (step, right, divergence) in enumerate(rounds):
            more = (first + (place == 0), second + (place == 1))
            if more[0] * rounds[0][2] + more[1] * rounds[1][2] <= limit and divergence:
                lucky, unlucky = most(loss + step, *more), most(loss - step, *more)
                best = max(best, right * lucky + (1 - right) * unlucky)
        return best

    return most(0, 0, 0)


def test_choosing_rounds_by_their_results_never_beats_the_filter() -> None:
    """Exactly, over all strategies; a filter that counts two thirds of every divergence is beaten."""
    epsilon, order, delta = 2.0, 4.0, 0.02
    limit = limits(Cap(epsilon, delta, order)).divergence / RHO_UNIT
    assert 0 < worst_delta(order, limit, epsilon, 1.0) <= delta / 2
    assert worst_delta(order, limit, epsilon, 0.5) > delta / 2


def test_a_charge_whose_parts_are_not_those_of_its_amount_is_refused(store: Store) -> None:
    """As of a plan that was made without parts: they would count nothing."""
    without = charges.Charge(RENYI, Cost(rho=10**9), events_to_json("test", []))
    with store.write() as connection, pytest.raises(DataLoss, match=f"charge on {RENYI} do not make up"):
        charges.reserve(connection, "r0", [without], NOW)
    assert totals(store, RENYI) == (Cost(), Cost())
