"""Every column of every table, altered behind the server's back: `check` finds it, or nothing depends on it."""

from __future__ import annotations

import shutil
import sqlite3
from dataclasses import replace
from pathlib import Path

import pytest
from harness.rounds_bench import ANN, KEY, SALT, SCHEMA, TERMS, Bench
from harness.session_terms import ASKED, ONLINE, ask, attached
from sqlalchemy import Column, LargeBinary, Table, Text

from equipoise.errors import DataLoss
from equipoise.model.identities import Role
from equipoise.wire.workloads import workload_to_bytes
from equipoise_server.admin.checks import check_content
from equipoise_server.identity.login_tokens import Account
from equipoise_server.identity.logins import Logins
from equipoise_server.rounds.clock_watch import confirm
from equipoise_server.rounds.dataset_endings import delete_dataset, retire_dataset
from equipoise_server.storage.idempotency import make_request
from equipoise_server.storage.store import open_store
from equipoise_server.storage.tables.metadata import metadata
from equipoise_server.transparency.identity_records import recorded_registry

# What is on no record, and why no number, no charge and nobody's access depends on it.
UNBOUND = {
    "accounts.limit_delta": "the cap decides what fits, too",
    "accounts.limit_divergence": "the cap decides what fits, too",
    "accounts.limit_epsilon": "the cap decides what fits, too",
    "accounts.limit_rho": "the cap decides what fits, too",
    "callers.caller": "remembers requests, so that they can be repeated",
    "callers.last_time": "remembers requests",
    "callers.requests": "remembers requests",
    "certificates.created": "shown to operators alone",
    "certificates.used": "shown to operators alone",
    "dataset_versions.source": "a file with other content than was registered is not counted",
    "identities.created": "shown to operators alone",
    "record_items.place": "the order alone counts",
    "records.publish_time": "only a release has to wait, and its time is compared",
    "requests.answer": "what a repeated request is told again",
    "requests.caller": "remembers requests",
    "requests.content": "remembers requests",
    "requests.method": "remembers requests",
    "requests.number": "remembers requests",
    "requests.request_id": "remembers requests",
    "requests.time": "remembers requests",
    "rounds.position": "the order alone counts",
    "rounds.peak_memory_bytes": "shown to operators alone",
    "runs.complete_time": "shown to operators alone",
    "runs.peak_memory_bytes": "shown to operators alone",
    "runs.start_time": "shown to operators alone",
    "sealed_seeds.sealed": "auditors alone can open it, and compare it with the commitment",
    "shares.position": "the order alone counts",
    "trusted_time.confirmations": "a clock that is trusted, not a fact",
    "trusted_time.time": "a clock that is trusted, not a fact",
}


@pytest.fixture
def bench(on_sqlite: Bench) -> Bench:
    return on_sqlite


def altered(column: Column[object]) -> str:
    """Another value of the same form, as SQL."""
    name = f'"{column.name}"'
    if isinstance(column.type, LargeBinary):
        half = f"length({name}) / 2"
        other = f"CASE substr({name}, {half} + 1, 1) WHEN x'5a' THEN x'5b' ELSE x'5a' END"
        return f"CAST(substr({name}, 1, {half}) || {other} || substr({name}, {half} + 2) AS BLOB)"
    return f"{name} || 'x'" if isinstance(column.type, Text) else f"{name} + 1"


def alter(database: Path, table: Table, column: Column[object]) -> bool:
    """Alter the last value of a column; tell whether there was one that the table's own rules let be altered."""
    connection = sqlite3.connect(database)
    last = f"SELECT max(rowid) FROM {table.name} WHERE \"{column.name}\" NOT IN ('', x'')"
    try:
        with connection:
            statement = f'UPDATE {table.name} SET "{column.name}" = {altered(column)} WHERE rowid = ({last})'
            return connection.execute(statement).rowcount == 1
    except sqlite3.IntegrityError:
        return False
    finally:
        connection.close()


@pytest.mark.nightly
def test_every_altered_column_is_found_or_nothing_depends_on_it(bench: Bench, tmp_path: Path) -> None:
    bench.released()
    for name, ends in (("aborted", True), ("submitted", False)):
        round_id = bench.opened(replace(TERMS, data_budget=replace(TERMS.data_budget, epsilon=1.0)))
        bench.rounds.submissions.submit("ann", round_id, name, workload_to_bytes(ANN), SALT)
        if ends:
            bench.rounds.lifecycle.abort(round_id, "the power failed", "abort")
    stream = attached(bench, "ann", bench.sessions.open(ONLINE, "open", "olga").id)
    for sequence, statement in enumerate(ASKED["ann"][:2], start=1):
        ask(stream, sequence, statement)
    datasets, operations = bench.rounds.datasets, bench.rounds.operations
    datasets.register("again", "shop.csv", SCHEMA, None, None, "again", people="same-as:shop")
    retire_dataset(operations, "again", "retire")
    delete_dataset(operations, "again", "delete")
    account = Account("https://login.example", "olga-1")
    request = make_request("holder", "login", "add_identity")
    Logins(recorded_registry(operations)).allow("ottilie", Role.OPERATOR, account, request)
    with bench.store.write() as connection:
        confirm(connection, bench.clock())
    bench.sequencer.sequence(bench.clock())
    with bench.store.read() as connection:
        check_content(connection, bench.signer, KEY)
    bench.sessions.loops.stop()
    bench.rounds.lifecycle.close()
    bench.store.close()

    database, whole = tmp_path / "altered.db", tmp_path / "whole.db"
    shutil.copy(bench.url.removeprefix("sqlite:///"), whole)
    bare = sqlite3.connect(whole)
    for (trigger,) in bare.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
        bare.execute(f"DROP TRIGGER {trigger}")
    bare.close()

    unnoticed, tried = set(), 0
    for table in metadata.sorted_tables:
        for column in table.columns:
            shutil.copy(whole, database)
            if not alter(database, table, column):
                continue
            tried += 1
            store = open_store(f"sqlite:///{database}")
            try:
                with store.read() as connection:
                    check_content(connection, bench.signer, KEY)
                unnoticed.add(f"{table.name}.{column.name}")
            except DataLoss:
                pass
            finally:
                store.close()
    assert unnoticed - UNBOUND.keys() == set()
    assert tried > 120
