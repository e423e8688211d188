"""A store of an earlier version is brought up to date with everything that it holds."""

from __future__ import annotations

from pathlib import Path

import pytest
from alembic import command
from alembic.config import Config
from sqlalchemy import create_engine, text
from sqlalchemy.exc import IntegrityError

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


def test_results_and_journal_of_the_first_version_are_kept(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'equipoise.db'}"
    engine = create_engine(url)
    with engine.begin() as connection:
        config = Config()
        config.set_main_option("script_location", str(MIGRATIONS))
        config.attributes["connection"] = connection
        command.upgrade(config, "0001")
        for statement in EARLIER:
            connection.exec_driver_sql(statement)
    engine.dispose()
    store = open_store(url)
    with store.read() as connection:
        chunks = connection.execute(text("SELECT run_id, analyst, sequence, chunk FROM result_chunks")).all()
        runs = connection.execute(text("SELECT id, round_id, complete_time, peak_memory_bytes FROM runs")).all()
        rounds = connection.execute(text("SELECT id, run_id, close_time FROM rounds ORDER BY position")).all()
        shares = connection.execute(text("SELECT analyst, statements, queries, sensitivity FROM shares")).all()
        synopses = connection.execute(text("SELECT run_id, cells FROM synopses")).all()
        journal = connection.execute(text("SELECT * FROM journal")).all()
    assert [tuple(row) for row in chunks] == [("old", "ann", 1, b"\n"), ("old", "ann", 2, b"\v")]
    assert [tuple(row) for row in runs] == [("old", "old", 5, 7)]
    assert [tuple(row) for row in rounds] == [("old", "old", None), ("new", None, None)]
    assert [tuple(row) for row in shares] == [("ann", 1, 1, 0)]
    assert [tuple(row) for row in synopses] == [("old", b"\f")]
    assert [tuple(row) for row in journal] == [(1, 9, "reserve", "data/t", "old", 1, 2, 3, "{}", b"\r")]
    for statement in (
        "UPDATE journal SET rho = 2",
        "DELETE FROM journal",
        "UPDATE result_chunks SET chunk = x'00'",
        "DELETE FROM result_chunks",
    ):
        with pytest.raises(IntegrityError, match="append-only"), store.write() as connection:
            connection.execute(text(statement))
    store.close()
