"""A store of an earlier version is brought up to date with everything that it holds."""

from __future__ import annotations

import hashlib
import json
import re
from datetime import UTC, datetime

import pytest
from alembic import command
from alembic.config import Config
from sqlalchemy import Connection, create_engine, text
from sqlalchemy.exc import IntegrityError

from equipoise.accounting import Cost
from equipoise.errors import InvalidArgument
from equipoise_server.ledger import charges
from equipoise_server.ledger.accounts import account
from equipoise_server.ledger.caps import Cap, limits
from equipoise_server.ledger.replay import check_accounts
from equipoise_server.storage.migrate import MIGRATIONS
from equipoise_server.storage.store import open_store

ROUND = (
    "INSERT INTO rounds (id, dataset, state, terms, plan, records, universe_size, seed_commitment, sealed_seed, "
    "open_time, release_time, abort_reason, peak_memory_bytes) VALUES "
    "('{0}', 't', '{1}', '{{}}', '{{}}', 1, 1, x'00', x'00', 0, {2}, '', 7)"
)
EARLIER = [
    "INSERT INTO identities VALUES ('ann', 'analyst', 0)",
    "INSERT INTO datasets VALUES ('t', 't.csv', '{}', 1, 1, 0.1, 0)",
    ROUND.format("old", "released", 5),
    ROUND.format("new", "open", "NULL"),
    "INSERT INTO shares VALUES ('old', 'ann', 0, 1, 1)",
    "INSERT INTO submissions VALUES ('old', 'ann', x'01', x'02', 1, 1, 0)",
    "INSERT INTO result_chunks VALUES ('old', 'ann', 1, x'0a'), ('old', 'ann', 2, x'0b')",
    "INSERT INTO synopses VALUES ('old', x'0c')",
    "INSERT INTO journal VALUES (1, 9, 'reserve', 'data/t', 'old', 1, 2, 3, '{}', x'0d')",
]


def in_words_of(connection: Connection, statement: str) -> str:
    """A statement with its bytes as the database writes them."""
    if connection.dialect.name == "sqlite":
        return statement
    return re.sub(r"x'([0-9a-f]*)'", r"decode('\1', 'hex')", statement)


ANN = "analyst/t/query/ann"
SECOND = [
    "INSERT INTO datasets VALUES ('t', 't.csv', '{{}}', 1, 1, 0.1, 0, NULL)",
    "INSERT INTO rounds (id, dataset, state, terms, plan, records, universe_size, seed_commitment, sealed_seed, "
    "open_time, abort_reason, peak_memory_bytes) VALUES "
    "('r0', 't', 'open', '{{}}', '{{}}', 1, 1, '', '', 0, '', 0)",
    "INSERT INTO accounts VALUES ('{0}', 't', '{1}', 1, 0.000001, "
    "24355569335, 1000000000000, 1000000000000, 0, 0, 0, 7, 8, 9)",
    "INSERT INTO charges VALUES ('r0', '{0}', 'reserved', 7, 8, 9, '{{\"events\": []}}')",
]


def earlier(url: str, revision: str, statements: list[str], journal: list[dict[str, object]]) -> None:
    """A store as an earlier version left it."""
    engine = create_engine(url)
    with engine.begin() as connection:
        config = Config()
        config.set_main_option("script_location", str(MIGRATIONS))
        config.attributes["connection"] = connection
        command.upgrade(config, revision)
        for statement in statements:
            connection.exec_driver_sql(in_words_of(connection, statement))
        for entry in journal:
            names = ", ".join(f":{name}" for name in entry)
            connection.execute(text(f"INSERT INTO journal ({', '.join(entry)}) VALUES ({names})"), entry)
    engine.dispose()


def chained(*entries: dict[str, object]) -> list[dict[str, object]]:
    """Entries with their digests, as version 1 of the chain makes them."""
    digest, found = bytes(32), []
    for sequence, each in enumerate(entries, start=1):
        entry = {"sequence": sequence, "time": 9, "account": ANN, "round_id": "", "events": "{}"} | each
        hashed = {"version": 1, "round": entry["round_id"]}
        hashed |= {name: value for name, value in entry.items() if name != "round_id"}
        encoded = json.dumps(hashed, sort_keys=True, separators=(",", ":")).encode()
        digest = hashlib.sha256(digest + encoded).digest()
        found.append(entry | {"digest": digest})
    return found


def test_accounts_and_journal_of_the_second_version_mean_what_they_meant(store_url: str) -> None:
    opening = json.dumps({"cap": {"epsilon": 1.0, "delta": 1e-6}, "composition": "worst"})
    entries = chained(
        {"action": "open-account", "rho": 0, "epsilon": 0, "delta": 0, "events": opening},
        {"action": "reserve", "rho": 7, "epsilon": 8, "delta": 9, "round_id": "r0"},
    )
    earlier(store_url, "0002", [each.format(ANN, "worst") for each in SECOND], entries)
    store = open_store(store_url)
    with store.write() as connection:
        check_accounts(connection)
        charges.spend(connection, "r0", datetime(2024, 1, 1, tzinfo=UTC))
        check_accounts(connection)
        held = account(connection, ANN)
    assert (held.cap, held.limit) == (Cap(1.0, 1e-6), limits(Cap(1.0, 1e-6)))
    assert held.spent == held.committed == Cost(7, 8, 9)
    store.close()


def test_a_store_whose_rounds_add_without_an_order_is_refused(store_url: str) -> None:
    """No order that is chosen now, after its results were seen, is proven to hold its cap."""
    earlier(store_url, "0002", [each.format("data/t", "sum") for each in SECOND], [])
    with pytest.raises(InvalidArgument, match="store: was written by a version whose accounts have no Renyi order"):
        open_store(store_url)


def test_results_and_journal_of_the_first_version_are_kept(store_url: str) -> None:
    earlier(store_url, "0001", EARLIER, [])
    store = open_store(store_url)
    with store.read() as connection:
        chunks = connection.execute(text("SELECT run_id, analyst, sequence, chunk FROM result_chunks")).all()
        runs = connection.execute(text("SELECT id, round_id, complete_time, peak_memory_bytes FROM runs")).all()
        rounds = connection.execute(text("SELECT id, run_id, close_time FROM rounds ORDER BY position")).all()
        shares = connection.execute(
            text("SELECT analyst, statements, queries, sensitivity, support FROM shares")
        ).all()
        synopses = connection.execute(text("SELECT run_id, cells FROM synopses")).all()
        journal = connection.execute(text("SELECT * FROM journal")).all()
    assert [tuple(row) for row in chunks] == [("old", "ann", 1, b"\n"), ("old", "ann", 2, b"\v")]
    assert [tuple(row) for row in runs] == [("old", "old", 5, 7)]
    assert [tuple(row) for row in rounds] == [("old", "old", None), ("new", None, None)]
    assert [tuple(row) for row in shares] == [("ann", 1, 1, 0, 0)]
    assert [tuple(row) for row in synopses] == [("old", b"\f")]
    assert [tuple(row) for row in journal] == [(1, 9, "reserve", "data/t", "old", 1, 2, 3, "{}", b"\r", 0)]
    for statement in (
        "UPDATE journal SET rho = 2",
        "DELETE FROM journal",
        "UPDATE result_chunks SET chunk = x'00'",
        "DELETE FROM result_chunks",
    ):
        with pytest.raises(IntegrityError, match="append-only"), store.write() as connection:
            connection.execute(text(in_words_of(connection, statement)))
    store.close()
