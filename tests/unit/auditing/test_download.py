"""A download of what goes on meanwhile: nothing that is recorded a moment later is taken for something hidden."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import pytest
from harness.audited_rounds import all_pages
from harness.rounds_bench import Bench, log_of

from equipoise.auditing import download as downloading
from equipoise.auditing.download import download
from equipoise.auditing.verify import Audit, Outcome, verify
from equipoise.clients.auditor import Auditor
from equipoise.model.accounts import JournalEntry
from equipoise_server.rounds.analyst_deletion import delete_analyst
from equipoise_server.transparency.views import LogViews


@dataclass
class BenchAuditor:
    """An auditor of a bench.

    `meanwhile`: what happens once the log was read, before the journal is. `before`: what happens each time
    before the log is read, of which the number of earlier readings is told.
    """

    bench: Bench
    meanwhile: Callable[[], None]
    before: Callable[[int], None]
    log_read: bool = False
    readings: int = 0

    def __post_init__(self) -> None:
        self._views = LogViews(self.bench.store)

    def journal(self) -> Iterator[JournalEntry]:
        if self.log_read:
            self.meanwhile()
        yield from all_pages(self.bench.rounds.budgets.journal)

    def rounds(self) -> Iterator[Any]:
        return iter(())

    def checkpoint(self) -> bytes:
        self.before(self.readings)
        self.readings += 1
        return self._views.checkpoint()

    def leaves(self) -> Iterator[bytes]:
        return iter(all_pages(self._views.leaves))

    def records(self) -> Iterator[Any]:
        self.log_read = True
        return iter(all_pages(self._views.records))


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Bench]:
    monkeypatch.setattr(downloading, "PATIENCE_SECONDS", 1.0)
    bench = Bench(tmp_path, f"sqlite:///{tmp_path / 'equipoise.db'}", distinct_seeds=True)
    yield bench
    bench.stop()


def audit(
    bench: Bench, meanwhile: Callable[[], None] = lambda: None, before: Callable[[int], None] = lambda _: None
) -> Audit:
    """Everything as it was downloaded, while that happened."""
    archive = download(cast("Auditor", BenchAuditor(bench, meanwhile, before)))
    with bench.store.read() as connection:
        signer = log_of(bench.directory, bench.store, bench.guard, bench.clock()).signer
        return verify(archive, signer.verifier_keys(connection))


def failures(audit: Audit) -> list[str]:
    return [f"{each.number}: {each.detail}" for each in audit.checks if each.outcome is Outcome.FAILED]


@pytest.mark.slow
def test_a_round_that_is_charged_while_records_are_downloaded_is_not_called_hidden(bench: Bench) -> None:
    first = bench.opened()
    bench.rounds.lifecycle.seal(first, "seal it")
    bench.rounds.schedule.keep()

    def charged() -> None:
        bench.rounds.lifecycle.seal(bench.opened(), "seal another")

    later = audit(bench, charged)
    assert failures(later) == []
    assert {entry.round_id for entry in later.archive.journal} == {"", first}
    bench.rounds.schedule.keep()
    assert failures(audit(bench)) == []


@pytest.mark.slow
def test_a_round_that_was_charged_before_and_is_not_recorded_is_found_all_the_same(bench: Bench) -> None:
    bench.rounds.schedule.keep()
    hidden = bench.opened()
    bench.rounds.lifecycle.seal(hidden, "seal it")
    assert failures(audit(bench)) == [
        f"A8: the round {hidden} is in the budget journal, but is not recorded",
    ]


@pytest.mark.slow
def test_an_analyst_who_is_deleted_while_records_are_downloaded_is_not_called_withheld(bench: Bench) -> None:
    """Its items are gone at once; that it was deleted enters the log a moment later."""
    bench.rounds.lifecycle.abort(bench.opened(), "not wanted", "abort")
    bench.rounds.schedule.keep()
    delete_analyst(bench.rounds.operations, "ann", "delete")

    def entered(readings: int) -> None:
        if readings:
            bench.rounds.schedule.keep()

    assert failures(audit(bench)) == [
        "A12: entry 5 of the log (round-opened): the item of 'ann' is withheld, as only a deleted analyst's may "
        "be, but the log does not say that 'ann' was deleted",
    ]
    assert failures(audit(bench, before=entered)) == []
