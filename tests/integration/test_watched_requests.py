"""An operator sees how far the registration of a table is, while the server reads it."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest
from harness.abuse.place import connection
from harness.dangers import LARGE_CAPS
from harness.rounds_bench import CAP, SCHEMA
from harness.server_process import make_state, running
from harness.stores import Cluster
from sqlalchemy import create_engine, text
from sqlalchemy.pool import NullPool

from equipoise.clients.operator import Operator
from equipoise.model.rounds import Progress

LOCK = 23


@pytest.mark.full
def test_a_registration_is_followed_until_it_is_answered(tmp_path: Path, postgresql: Cluster) -> None:
    state = make_state(tmp_path / "state", [])
    reading, seen = threading.Event(), list[Progress]()

    def on_progress(progress: Progress) -> None:
        seen.append(progress)
        if progress.phase:
            reading.set()

    with postgresql.database(tmp_path) as url, running(state) as server:
        (state / "data" / "shop.database.toml").write_text(f'url = "{url}"\ntable = "shop"\n')
        engine = create_engine(url, poolclass=NullPool)
        with engine.begin() as made:
            made.execute(text("CREATE TABLE kept AS SELECT 'red' AS colour, 's' AS size"))
            waits = f"(SELECT pg_advisory_xact_lock_shared({LOCK})) AS waited"
            made.execute(text(f"CREATE VIEW shop AS SELECT kept.* FROM kept, {waits}"))
        with connection(server, server.operator()) as way, engine.connect() as holder:
            operator = Operator(way)

            holder.execute(text(f"SELECT pg_advisory_lock({LOCK})"))

            def let_go() -> None:
                reading.wait(120)
                holder.execute(text(f"SELECT pg_advisory_unlock({LOCK})"))

            letting_go = threading.Thread(target=let_go)
            letting_go.start()
            registered = operator.register_dataset(
                "shop", "shop.database.toml", SCHEMA, CAP, CAP, accepted=LARGE_CAPS, on_progress=on_progress
            )
            letting_go.join()
    assert registered.records == 1
    assert {each.phase for each in seen} - {""} == {"reading the table"}
