"""A store with one dataset and some rounds for the ledger's foreign keys, and shorthands."""

from __future__ import annotations

from datetime import UTC, datetime
from fractions import Fraction

from equipoise.accounting import (
    DELTA_UNIT,
    RHO_UNIT,
    ApproximateDpEvent,
    Cost,
    PrivacyEvent,
    ZcdpEvent,
    charge_of,
    events_to_json,
)
from equipoise_server.ledger import accounts, charges
from equipoise_server.ledger.caps import Cap, Composition
from equipoise_server.storage.store import Store
from equipoise_server.storage.tables.round import dataset_versions, datasets, rounds
from harness.stores import open_empty

NOW = datetime(2024, 1, 1, tzinfo=UTC)


def ledger_store(url: str, round_ids: list[str]) -> Store:
    """A fresh store in which a ledger can be kept for the dataset `t` and these rounds."""
    store = open_empty(url)
    dataset = {"name": "t", "account": "t", "analyst_epsilon": 1, "analyst_delta": 1e-6, "analyst_order": 9}
    version = {"dataset": "t", "version": 1, "source": "t.csv", "schema": "{}", "records": 10, "create_time": 0}
    version |= {"person": "", "person_mode": "rows", "person_records": 1}
    with store.write() as connection:
        connection.execute(datasets.insert().values(dataset))
        connection.execute(dataset_versions.insert().values(version))
        for round_id in round_ids:
            connection.execute(
                rounds.insert().values(
                    id=round_id,
                    dataset="t",
                    dataset_version=1,
                    state="open",
                    terms="{}",
                    plan="{}",
                    records=10,
                    universe_size=4,
                    seed_commitment=b"",
                    sealed_seed=b"",
                    open_time=0,
                    abort_reason="",
                    peak_memory_bytes=0,
                )
            )
    return store


def open_with(store: Store, name: str, composition: Composition, cap: Cap) -> None:
    """Open an account of the dataset."""
    with store.write() as connection:
        accounts.open_account(connection, NOW, name, account="t", composition=composition, cap=cap)


def parts_of(cost: Cost, order: float | None) -> list[PrivacyEvent]:
    """Parts that come to exactly this cost on an account of the order; None: where rounds do not add."""
    rho = Fraction(cost.rho if order is None else cost.divergence, RHO_UNIT) / Fraction(order or 1)
    pair = ApproximateDpEvent("pair", Fraction(cost.epsilon, RHO_UNIT), Fraction(cost.delta, DELTA_UNIT))
    return [ZcdpEvent("rho", rho), pair]


def reserve(store: Store, round_id: str, costs: dict[str, Cost]) -> None:
    """Reserve what comes to these costs on their accounts, in a transaction of its own."""
    with store.write() as connection:
        asked = []
        for name, cost in costs.items():
            made = parts_of(cost, accounts.account(connection, name).cap.order)
            asked.append(charges.Charge(name, charge_of(made), events_to_json("test", made)))
        charges.reserve(connection, round_id, asked, NOW)


def spend(store: Store, round_id: str) -> None:
    """Spend in a transaction of its own."""
    with store.write() as connection:
        charges.spend(connection, round_id, NOW)


def release(store: Store, round_id: str) -> None:
    """Release in a transaction of its own."""
    with store.write() as connection:
        charges.release(connection, round_id, NOW)


def totals(store: Store, name: str) -> tuple[Cost, Cost]:
    """What is spent, and what is spent or reserved."""
    with store.read() as connection:
        held = accounts.account(connection, name)
    return held.spent, held.committed
