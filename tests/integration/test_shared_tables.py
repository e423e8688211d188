"""The workers of grants of one table read it once, when a grant is given, and begin without one another."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from harness.rounds_bench import COLOUR, Bench, new_bench, write_table
from harness.session_terms import attached
from harness.waiting import PATIENCE

from equipoise.errors import DataLoss
from equipoise.model.accounts import Budget
from equipoise.model.grants import grant_terms
from equipoise.wire.statements import statement_to_bytes
from equipoise_server.sessions.answer_journal import AnswerJournal
from equipoise_server.sessions.grant_spending import GrantSpending
from equipoise_server.workers.shared_tables import SharedTables

GIVEN = Budget(1.0, 1e-6)
RED = statement_to_bytes(COLOUR == "red", 10**9)
pytestmark = pytest.mark.slow


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Bench, list[object]]]:
    """A bench, and every table that its server reads for grants."""
    read: list[object] = []
    original = SharedTables.table

    def table(own: SharedTables, job: object) -> object:
        found = original(own, job)  # type: ignore[arg-type]
        if found not in read:
            read.append(found)
        return found

    monkeypatch.setattr(SharedTables, "table", table)
    made = new_bench(tmp_path, f"sqlite:///{tmp_path / 'store.db'}")
    yield made, read
    made.stop()


def test_a_table_is_read_when_a_grant_is_given_and_once_for_all(bench: tuple[Bench, list[object]]) -> None:
    made, read = bench
    grants = {
        name: made.sessions.open(grant_terms("shop", name, GIVEN, None, 0.05), name).id for name in ("ann", "bob")
    }
    (table,) = read  # nobody has asked
    assert table.wait(PATIENCE)  # type: ignore[attr-defined]
    write_table(made.directory / "data", 90)  # whoever reads it now finds another one
    for name, grant in grants.items():
        stream = attached(made, name, grant)
        assert stream.ask(1, RED).result(PATIENCE).cost == 10**9
        stream.detach()
    assert read == [table]
    made.restart()
    with pytest.raises(DataLoss):
        attached(made, "ann", grants["ann"]).ask(2, RED).result(PATIENCE)


def test_who_has_asked_much_keeps_nobody_else_waiting(
    bench: tuple[Bench, list[object]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What ann was answered is read again for long, in which bob asks and is answered."""
    made, _ = bench
    grants = {
        name: made.sessions.open(grant_terms("shop", name, GIVEN, None, 0.05), name).id for name in ("ann", "bob")
    }
    reads, goes_on, original = threading.Event(), threading.Event(), AnswerJournal.spending

    def spending(own: AnswerJournal) -> GrantSpending:
        if threading.current_thread() is of_ann:
            reads.set()
            assert goes_on.wait(PATIENCE)
        return original(own)

    monkeypatch.setattr(AnswerJournal, "spending", spending)
    of_ann = threading.Thread(target=lambda: attached(made, "ann", grants["ann"]))
    of_ann.start()
    try:
        assert reads.wait(PATIENCE)
        assert attached(made, "bob", grants["bob"]).ask(1, RED).result(PATIENCE).sequence == 1
        assert made.sessions.loops.process_id(grants["ann"]) is None
    finally:
        goes_on.set()
        of_ann.join()
    assert made.sessions.loops.process_id(grants["ann"]) is not None
