"""Both ledgers: sums and worst rounds, all accounts or none, never beyond the cap."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from fractions import Fraction

import pytest
from harness.ledger_store import ledger_store, open_with, release, reserve, spend, totals
from harness.stores import allow_changes
from sqlalchemy import text
from sqlalchemy.exc import IntegrityError

from equipoise.accounting import DELTA_UNIT, RHO_UNIT, Cost, PureDpEvent, ZcdpEvent, charge_at
from equipoise.errors import BudgetExhausted, DataLoss
from equipoise.model.accounts import counted_digits, left_digits
from equipoise_server.conversion import epsilon_for, largest_rho
from equipoise_server.ledger import accounts, charges, journal
from equipoise_server.ledger.account_names import analyst_account, data_account, holder
from equipoise_server.ledger.caps import Cap, Composition, at_order, counted, limits
from equipoise_server.storage.store import Store
from equipoise_server.storage.tables.ledger import accounts as accounts_table

CAP = Cap(1.0, 1e-6)
ADDING = at_order("cap", CAP)
DATA, ANN, BOB = "data/t", "analyst/t/query/ann", "analyst/t/query/bob"
LIMIT = limits(ADDING).divergence
MAX_RHO = largest_rho(CAP.epsilon, CAP.delta)
NOTHING = Cost()


@pytest.fixture
def store(store_url: str) -> Iterator[Store]:
    store = ledger_store(store_url, [f"r{number}" for number in range(40)])
    open_with(store, DATA, Composition.SEQUENTIAL, ADDING)
    for name in (ANN, BOB):
        open_with(store, name, Composition.PARALLEL, CAP)
    yield store
    store.close()


def actions(store: Store) -> list[tuple[str, str, str]]:
    with store.read() as connection:
        entries = journal.page(connection, 0, 1000)
    return [(entry.action, entry.account, entry.round_id) for entry in entries]


def test_a_reservation_counts_before_it_is_spent(store: Store) -> None:
    reserve(store, "r0", {DATA: Cost(divergence=LIMIT // 2)})
    assert totals(store, DATA) == (NOTHING, Cost(divergence=LIMIT // 2))
    spend(store, "r0")
    assert totals(store, DATA) == (Cost(divergence=LIMIT // 2), Cost(divergence=LIMIT // 2))


def test_rounds_add_on_the_data_account_up_to_the_cap(store: Store) -> None:
    reserve(store, "r0", {DATA: Cost(divergence=LIMIT - 1)})
    with pytest.raises(BudgetExhausted, match="account data/t: "):
        reserve(store, "r1", {DATA: Cost(divergence=2)})
    reserve(store, "r2", {DATA: Cost(divergence=1)})
    assert totals(store, DATA)[1] == Cost(divergence=LIMIT)


def test_a_round_to_be_opened_needs_room_beside_those_that_are_open(store: Store) -> None:
    reserve(store, "r0", {DATA: Cost(divergence=LIMIT // 4)})
    with store.read() as connection:
        held, analyst = accounts.account(connection, DATA), accounts.account(connection, ANN)
    others = [Cost(divergence=LIMIT // 4), Cost(divergence=LIMIT // 4)]
    accounts.check_room(held, others, Cost(divergence=LIMIT // 4))
    counted_too = r"Still fits: divergence 0\.\d+, .*; rounds that are open .* \(2 here\)"
    with pytest.raises(BudgetExhausted, match=counted_too):
        accounts.check_room(held, others, Cost(divergence=LIMIT // 2))
    with pytest.raises(BudgetExhausted, match=r"pure up to 0\.\d+\), or raise the cap .* at delta 1e-06$"):
        accounts.check_room(held, [], Cost(divergence=LIMIT))
    # A statement is in one round only, so what other rounds cost takes nothing away.
    accounts.check_room(analyst, [Cost(rho=MAX_RHO)] * 2, Cost(rho=MAX_RHO))
    with pytest.raises(BudgetExhausted, match=r"only the worst round counts, .* Plan a round that costs less"):
        accounts.check_room(analyst, [], Cost(rho=MAX_RHO + 1))


def test_what_still_fits_is_told_and_fits(store: Store) -> None:
    """The epsilons of a refusal are those of rounds that are taken, and hardly any larger one is."""
    reserve(store, "r0", {DATA: Cost(divergence=LIMIT // 3)})
    with store.read() as connection:
        held = accounts.account(connection, DATA)
    with pytest.raises(BudgetExhausted) as refused:
        accounts.total_with(held, Cost(divergence=LIMIT))
    told = re.findall(r"up to (\d[.\d]*\d)", refused.value.message)
    concentrated, pure = map(Fraction, told)
    order = ADDING.order or 0
    for grown, fitting in ((Fraction(1), True), (Fraction(1001, 1000), False)):
        rho = Fraction(largest_rho(float(concentrated * grown), CAP.delta), RHO_UNIT)
        for part in (ZcdpEvent("answers", rho), PureDpEvent("answers", pure * grown)):
            try:
                accounts.total_with(held, charge_at([part], order))
            except BudgetExhausted:
                assert not fitting
            else:
                assert fitting


@pytest.mark.parametrize(
    ("asked", "exceeded", "unsaid"),
    [
        (Cost(divergence=LIMIT), "the limit of divergence. It", "charges less delta"),
        (Cost(delta=limits(ADDING).delta), "the limit of delta. It", "of less epsilon"),
        (
            Cost(divergence=LIMIT, delta=limits(ADDING).delta),
            "the limit of divergence and the limit of delta. It",
            "that costs less",
        ),
    ],
)
def test_a_refusal_names_each_limit_that_is_exceeded_and_no_other(
    store: Store, asked: Cost, exceeded: str, unsaid: str
) -> None:
    """It says what the round would count, what is counted of each limit, and what still fits of each."""
    reserve(store, "r0", {DATA: Cost(divergence=LIMIT // 2, delta=10**9)})
    with store.read() as connection:
        held = accounts.account(connection, DATA)
    with pytest.raises(BudgetExhausted) as refused:
        accounts.total_with(held, asked)
    told = refused.value.message
    assert f"account {DATA}: no budget left for this round: it exceeds {exceeded}" in told
    asked_in_words = (
        f"would count divergence {counted_digits(asked.divergence / RHO_UNIT)}, "
        f"delta {counted_digits(asked.delta / DELTA_UNIT)}. "
    )
    assert asked_in_words in told
    assert f"Counted already: {counted(ADDING, held.committed).in_words}. " in told
    assert f"Still fits: divergence {left_digits((LIMIT - LIMIT // 2) / RHO_UNIT)}, delta 4.99e-07. Plan" in told
    assert "or raise the cap of epsilon 1 at delta 1e-06" in told
    assert unsaid not in told


def test_small_deltas_add_and_have_a_limit_of_their_own(store: Store) -> None:
    # 1 / n^2 for n = 10^9 is a single unit: it must neither vanish nor be free.
    reserve(store, "r0", {DATA: Cost(divergence=1, delta=1)})
    reserve(store, "r1", {DATA: Cost(divergence=1, delta=1)})
    assert totals(store, DATA)[1] == Cost(divergence=2, delta=2)
    rest = limits(ADDING).delta - 2
    with pytest.raises(
        BudgetExhausted, match=r"Still fits: .*, delta 4\.99999e-07\. Plan a round that charges less delta, or"
    ):
        reserve(store, "r2", {DATA: Cost(delta=rest + 1)})
    # What is spent of one limit takes nothing from the other.
    reserve(store, "r2", {DATA: Cost(divergence=LIMIT - 2, delta=rest)})
    with pytest.raises(BudgetExhausted):
        reserve(store, "r3", {DATA: Cost(delta=1)})


def test_an_account_has_an_order_where_rounds_add_and_only_there(store: Store) -> None:
    for name, composition, cap in (
        ("data/x", Composition.SEQUENTIAL, CAP),
        ("analyst/t/query/x", Composition.PARALLEL, ADDING),
    ):
        with pytest.raises(ValueError, match="order must be set where rounds add up"):
            open_with(store, name, composition, cap)


def test_a_released_reservation_is_gone(store: Store) -> None:
    reserve(store, "r0", {DATA: Cost(divergence=LIMIT), ANN: Cost(epsilon=10**12)})
    release(store, "r0")
    assert totals(store, DATA) == totals(store, ANN) == (NOTHING, NOTHING)
    reserve(store, "r1", {DATA: Cost(divergence=LIMIT)})


def test_what_is_spent_is_never_released(store: Store) -> None:
    reserve(store, "r0", {DATA: Cost(divergence=LIMIT)})
    spend(store, "r0")
    release(store, "r0")
    spend(store, "r0")
    assert totals(store, DATA) == (Cost(divergence=LIMIT), Cost(divergence=LIMIT))


def test_one_refusal_refuses_the_whole_round(store: Store) -> None:
    with pytest.raises(BudgetExhausted, match="account data/t"):
        reserve(store, "r0", {ANN: Cost(epsilon=1), BOB: Cost(epsilon=1), DATA: Cost(divergence=LIMIT + 1)})
    assert {totals(store, name)[1] for name in (ANN, BOB, DATA)} == {NOTHING}
    assert [action for action, _, _ in actions(store)] == ["open-account"] * 3


def test_statements_of_different_rounds_do_not_add(store: Store) -> None:
    whole = Cost(epsilon=10**12, delta=10**12)
    for round_id in ("r0", "r1", "r2"):
        reserve(store, round_id, {ANN: whole})
        spend(store, round_id)
    assert totals(store, ANN) == (whole, whole)
    with pytest.raises(BudgetExhausted, match="account analyst/t/query/ann: "):
        reserve(store, "r3", {ANN: Cost(epsilon=10**12 + 1)})


def test_the_worst_round_is_what_is_kept(store: Store) -> None:
    costs = [Cost(rho=MAX_RHO // 9), Cost(epsilon=9 * 10**11), Cost(rho=MAX_RHO // 3)]
    for number, cost in enumerate(costs):
        reserve(store, f"r{number}", {ANN: cost})
        spend(store, f"r{number}")
    worst = max(costs, key=lambda cost: epsilon_for(cost, CAP.delta))
    assert totals(store, ANN) == (worst, worst)


def test_releasing_the_worst_round_leaves_the_next_one(store: Store) -> None:
    reserve(store, "r0", {ANN: Cost(epsilon=5)})
    reserve(store, "r1", {ANN: Cost(epsilon=9)})
    release(store, "r1")
    assert totals(store, ANN) == (NOTHING, Cost(epsilon=5))


def test_one_analysts_account_never_refuses_another(store: Store) -> None:
    reserve(store, "r0", {ANN: Cost(epsilon=10**12)})
    reserve(store, "r1", {BOB: Cost(epsilon=10**12)})


def test_threads_racing_for_the_last_budget_get_exactly_what_fits(store: Store) -> None:
    part, fitting = LIMIT // 7, []

    def race(round_id: str) -> None:
        try:
            reserve(store, round_id, {DATA: Cost(divergence=part)})
        except BudgetExhausted:
            return
        fitting.append(round_id)

    threads = [threading.Thread(target=race, args=(f"r{number}",)) for number in range(40)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(fitting) == 7
    assert totals(store, DATA)[1] == Cost(divergence=7 * part)


@pytest.mark.parametrize("cost", [LIMIT // 2 + 1, LIMIT // 4], ids=["refused", "added"])
def test_a_reservation_upon_an_account_that_changed_meanwhile_is_made_anew(
    store: Store, monkeypatch: pytest.MonkeyPatch, cost: int
) -> None:
    """Where two transactions see the same account, as on PostgreSQL, only one of them may count on what it saw."""
    with store.read() as connection:
        seen = [accounts.account(connection, DATA)] * 2
    reserve(store, "r0", {DATA: Cost(divergence=LIMIT // 2)})
    read = accounts.account
    monkeypatch.setattr(charges, "account", lambda *asked: seen.pop() if seen else read(*asked))
    if cost > LIMIT // 2:
        with pytest.raises(BudgetExhausted):
            reserve(store, "r1", {DATA: Cost(divergence=cost)})
        cost = 0
    else:
        reserve(store, "r1", {DATA: Cost(divergence=cost)})
    assert not seen
    assert totals(store, DATA)[1] == Cost(divergence=LIMIT // 2 + cost)


def test_the_table_refuses_what_the_ledger_would_let_through(store: Store) -> None:
    with pytest.raises(IntegrityError, match="ck_accounts_divergence"), store.write() as connection:
        connection.execute(
            accounts_table.update().where(accounts_table.c.name == DATA).values(committed_divergence=LIMIT + 1)
        )


def test_opening_an_account_again_changes_nothing(store: Store) -> None:
    open_with(store, DATA, Composition.SEQUENTIAL, at_order("cap", Cap(50.0, 0.1)))
    with store.read() as connection:
        assert accounts.account(connection, DATA).cap == ADDING


def test_limits_read_the_decimal_the_operator_wrote() -> None:
    limit = limits(Cap(0.1, 1e-6))
    assert (limit.epsilon, limit.delta) == (10**11, 10**12)


def test_every_step_is_in_the_journal(store: Store) -> None:
    reserve(store, "r0", {DATA: Cost(divergence=1), ANN: Cost(epsilon=1)})
    spend(store, "r0")
    reserve(store, "r1", {DATA: Cost(divergence=1)})
    release(store, "r1")
    assert actions(store)[3:] == [
        ("reserve", ANN, "r0"),
        ("reserve", DATA, "r0"),
        ("spend", ANN, "r0"),
        ("spend", DATA, "r0"),
        ("reserve", DATA, "r1"),
        ("release", DATA, "r1"),
    ]
    with store.read() as connection:
        list(journal.verified(connection, page_size=2))


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE journal SET divergence = 2 WHERE sequence = 5",
        "UPDATE journal SET action = 'release' WHERE sequence = 5",
        "DELETE FROM journal WHERE sequence = 4",
        "DELETE FROM journal WHERE sequence = 1",
        "UPDATE journal SET rho = -1 WHERE sequence = 4",
        "UPDATE journal SET digest = (SELECT digest FROM journal WHERE sequence = 5) WHERE sequence = 6",
    ],
)
def test_a_changed_journal_is_noticed(store: Store, damage: str) -> None:
    reserve(store, "r0", {DATA: Cost(divergence=1), ANN: Cost(epsilon=1)})
    spend(store, "r0")
    with store.write() as connection:
        allow_changes(connection, "journal")
        connection.execute(text(damage))
    with store.read() as connection, pytest.raises(DataLoss, match="the budget journal is damaged at entry"):
        list(journal.verified(connection, page_size=2))


def test_an_accounts_name_says_whose_it_is() -> None:
    assert holder(analyst_account("a.b", "query", "ann-1")) == ("query", "ann-1")
    assert holder(data_account("analyst")) is None
