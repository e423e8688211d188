"""A store with one dataset and some rounds for the ledger's foreign keys, and shorthands."""

from __future__ import annotations

from datetime import UTC, datetime

from equipoise.accounting import Cost
from equipoise_server.ledger import accounts, charges
from equipoise_server.ledger.caps import Cap, Composition
from equipoise_server.storage.store import Store, open_store
from equipoise_server.storage.tables import datasets, rounds

NOW = datetime(2024, 1, 1, tzinfo=UTC)


def ledger_store(url: str, round_ids: list[str]) -> Store:
    """A fresh store in which a ledger can be kept for the dataset `t` and these rounds."""
    store = open_store(url)
    dataset = {"name": "t", "source": "t.csv", "schema": "{}", "records": 10, "create_time": 0}
    with store.write() as connection:
        connection.execute(datasets.insert().values(analyst_epsilon=1, analyst_delta=1e-6, **dataset))
        for round_id in round_ids:
            connection.execute(
                rounds.insert().values(
                    id=round_id,
                    dataset="t",
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
        accounts.open_account(connection, NOW, name, dataset="t", composition=composition, cap=cap)


def reserve(store: Store, round_id: str, costs: dict[str, Cost]) -> None:
    """Reserve in a transaction of its own."""
    asked = [charges.Charge(name, cost, "{}") for name, cost in costs.items()]
    with store.write() as connection:
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
