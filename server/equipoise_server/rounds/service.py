"""All that can be done with datasets and rounds, for whoever serves them. Synchronous and thread-safe."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import structlog
from sqlalchemy import Connection, select

from equipoise.errors import EquipoiseError, WrongState
from equipoise.schema import Schema
from equipoise_server.ledger import journal
from equipoise_server.mechanisms.interface import Budget, Plan
from equipoise_server.rounds.budgets import Budgets
from equipoise_server.rounds.clock import Clock, next_grid_point, system_clock
from equipoise_server.rounds.custody import SeedSource, system_seeds
from equipoise_server.rounds.datasets import Datasets, NewDataset
from equipoise_server.rounds.jobs import read_job
from equipoise_server.rounds.life import Step, check_submitted, store_results, take_step
from equipoise_server.rounds.opening import Opening, open_request
from equipoise_server.rounds.paging import cut_page, page_limit
from equipoise_server.rounds.records import (
    AccountRecord,
    DatasetRecord,
    DryRun,
    JournalRecord,
    ProgressRecord,
    ReceiptRecord,
    RoundRecord,
    Terms,
)
from equipoise_server.rounds.rows import check_token, newest_first, read_round, round_records
from equipoise_server.rounds.runner import NOTHING, Runner
from equipoise_server.rounds.states import Action, RoundState
from equipoise_server.rounds.submissions import Submissions
from equipoise_server.rounds.terms import check_reason
from equipoise_server.storage.requests import Request, make_request
from equipoise_server.storage.store import Store
from equipoise_server.storage.tables import rounds
from equipoise_server.storage.times import to_microseconds

log = structlog.get_logger(__name__)

ELSEWHERE = "the round is run by another server, {}"

Chunks = list[bytes]
RoundPage = tuple[list[RoundRecord], str]
DatasetPage = tuple[list[DatasetRecord], str]
AccountPage = tuple[list[AccountRecord], str]
JournalPage = tuple[list[JournalRecord], str]


class Rounds:
    """The service. `caller` is the operator's name: a `request_id` belongs to one caller.

    Lists give a page and the token of the next one, empty on the last page; `page_size` 0 stands for 100.
    """

    def __init__(
        self,
        store: Store,
        data_directory: Path,
        storage_key: bytes,
        clock: Clock = system_clock,
        seeds: SeedSource = system_seeds,
        release_grid_seconds: int = 60,
    ) -> None:
        self._store = store
        self._storage_key = storage_key
        self._clock = clock
        self._grid = release_grid_seconds
        self._datasets = Datasets(store, data_directory, clock)
        self._opening = Opening(store, clock, seeds, storage_key)
        self._budgets = Budgets(store)
        self._submissions = Submissions(store, clock)
        self._runner = Runner(store.claims())
        # An operator's step and what follows in memory (a worker started or ended) happen as one. Analysts
        # never wait for it.
        self._turn = threading.Lock()
        self._problems: dict[str, str] = {}  # why a round could not be run when that was last tried

    # Datasets

    def register_dataset(
        self,
        name: str,
        source: str,
        schema: Schema,
        data_cap: Budget,
        analyst_cap: Budget,
        request_id: str,
        caller: str = "",
    ) -> DatasetRecord:
        """Register a table of the data directory: its number of records is public from now on.

        Raises `InvalidArgument` (also where the schema refuses records), `AlreadyExists`.
        """
        new = NewDataset(name, source, schema, data_cap, analyst_cap)
        return self._datasets.register(new, new.request(f"operator/{caller}", request_id))

    def get_dataset(self, name: str) -> DatasetRecord:
        """One dataset. Raises `NotFound`."""
        return self._datasets.get(name)

    def list_datasets(self, page_size: int = 0, page_token: str = "") -> DatasetPage:
        """The datasets in the order of their names."""
        return self._datasets.page(page_size, page_token)

    # The operators' side of a round

    def plan(self, terms: Terms) -> Plan:
        """What a round would do and cost. Raises `InvalidArgument`, `NotFound`, `BudgetExhausted`."""
        return self._opening.plan(terms)

    def open(self, terms: Terms, request_id: str, caller: str = "") -> RoundRecord:
        """Open a round. Raises as `plan` does, and `BudgetExhausted` naming the account it does not fit."""
        return self._opening.open(terms, open_request(terms, f"operator/{caller}", request_id))

    def seal(self, round_id: str, request_id: str, caller: str = "") -> RoundRecord:
        """Fix the workloads and reserve both budgets. Raises `WrongState`, also without any submission."""
        request = make_request(f"operator/{caller}", request_id, "seal", round_id)
        with self._turn:
            return self._step(request, round_id, Action.SEAL, check_submitted)

    def run(self, round_id: str, request_id: str, caller: str = "") -> RoundRecord:
        """Start the worker; again, where it has died. Raises `WrongState` while one is at work."""

        def check_idle(_: Connection, record: RoundRecord) -> Mapping[str, object]:
            # Claimed before it shows as RUNNING: other servers look for such rounds that nobody has.
            if self._runner.active(record.id) or not self._runner.claim(record.id):
                raise WrongState("the round is being run, or has been, and waits for its release")
            return {}

        request = make_request(f"operator/{caller}", request_id, "run", round_id)
        with self._turn:
            try:
                record = self._step(request, round_id, Action.RUN, check_idle)
                # A crash here means: RUNNING without a worker, which is what `recover` looks for.
                self._start(round_id)
            finally:
                self._runner.unclaim(round_id)
        return record

    def release(self, round_id: str, request_id: str, caller: str = "") -> RoundRecord:
        """Store answers and charges in one transaction; streams open at the next point of the grid."""
        request = make_request(f"operator/{caller}", request_id, "release", round_id)
        with self._turn:
            result = self._runner.result(round_id)
            progress = self._runner.progress(round_id) or NOTHING

            def keep(connection: Connection, record: RoundRecord) -> Mapping[str, object]:
                if result is None:
                    holder = self._runner.holder(record.id)
                    raise WrongState(ELSEWHERE.format(holder) if holder else "the round has not been computed yet")
                store_results(connection, record, result)
                release_time = next_grid_point(self._clock(), self._grid)
                return {
                    "release_time": to_microseconds(release_time),
                    "peak_memory_bytes": progress.peak_memory_bytes,
                }

            # A crash before the commit means: RUNNING, reserved, nothing delivered; `recover` computes the
            # same bytes again. After it: every chunk is stored, and nothing is ever computed again.
            record = self._step(request, round_id, Action.RELEASE, keep)
            self._runner.forget(round_id)
        return record

    def abort(self, round_id: str, reason: str, request_id: str, caller: str = "") -> RoundRecord:
        """End a round without answers. `reason` is shown to its analysts; charges are spent once it ran."""
        check_reason(reason)
        request = make_request(f"operator/{caller}", request_id, "abort", round_id, reason)
        with self._turn:
            # A crash after the commit means: aborted, and the worker died with the server.
            record = self._step(request, round_id, Action.ABORT, lambda *_: {"abort_reason": reason})
            self._runner.forget(round_id)
        return record

    def get(self, round_id: str) -> RoundRecord:
        """One round as operators and auditors see it. Raises `NotFound`."""
        with self._store.read() as connection:
            return read_round(connection, round_id)

    def list(self, page_size: int = 0, page_token: str = "") -> RoundPage:
        """The rounds, newest first."""
        limit = page_limit(page_size)
        with self._store.read() as connection:
            check_token(connection, page_token)
            found = round_records(connection, connection.execute(newest_first(page_token, limit + 1)))
        return cut_page(found, limit, lambda record: record.id)

    def progress(self, round_id: str) -> ProgressRecord:
        """How far a run has come. For operators only. Raises `NotFound`."""
        with self._store.read() as connection:
            query = select(rounds.c.peak_memory_bytes).where(rounds.c.id == round_id)
            record, peak = read_round(connection, round_id), connection.execute(query).scalar_one()
        if record.state is RoundState.RELEASED:
            return ProgressRecord("released", 1, 1, 0.0, complete=True, peak_memory_bytes=peak)
        known = self._runner.progress(round_id)
        if known is None and record.state is RoundState.RUNNING and (holder := self._runner.holder(round_id)):
            return replace(NOTHING, phase=ELSEWHERE.format(holder))
        return known or NOTHING

    # The analysts' side of a round

    def submit(self, analyst: str, round_id: str, request_id: str, workload: bytes) -> ReceiptRecord:
        """Accept a workload, or replace the analyst's earlier one, until the round is sealed.

        Raises `NotFound` without a share, `WrongState` when sealed, `InvalidArgument` naming the field of the
        workload, `BudgetExhausted` beyond the share, `AlreadyExists` for another request under the same id.
        """
        return self._submissions.submit(analyst, round_id, request_id, workload)

    def dry_run(self, analyst: str, round_id: str, workload: bytes) -> DryRun:
        """Check a workload as `submit` does, without leaving a trace."""
        return self._submissions.dry_run(analyst, round_id, workload)

    def get_for_analyst(self, analyst: str, round_id: str) -> RoundRecord:
        """A round with the analyst's own share, SEALED until its streams open. Raises `NotFound`."""
        return self._submissions.get(analyst, round_id)

    def list_for_analyst(self, analyst: str, page_size: int = 0, page_token: str = "") -> RoundPage:
        """The rounds in which the analyst has a share, newest first."""
        return self._submissions.page(analyst, page_size, page_token)

    def results(self, analyst: str, round_id: str, after_sequence: int, limit: int) -> Chunks:
        """At most `limit` stored chunks after a sequence number; none at the stream's end.

        Raises `NotFound` without a share or without a submission, `WrongState` before the release time,
        `OutOfRange` beyond the end.
        """
        return self._submissions.results(analyst, round_id, after_sequence, limit)

    # Budgets

    def accounts(self, dataset: str, page_size: int = 0, page_token: str = "") -> AccountPage:
        """The accounts of a dataset in the order of their names. Raises `NotFound`."""
        return self._budgets.accounts(dataset, page_size, page_token)

    def journal(self, page_size: int = 0, page_token: str = "") -> JournalPage:
        """The budget journal from its beginning."""
        return self._budgets.journal(page_size, page_token)

    # The service itself

    def recover(self) -> None:
        """At start: check the journal, and run again what was running. Raises `DataLoss`.

        The same seed, data, workloads and parameters give the same bytes, so nothing is answered twice.
        """
        with self._store.read() as connection:
            journal.verify_stored(connection)
        self.take_over()

    def take_over(self) -> None:
        """Run what is running by the store, and by no server: at start, and whenever another may have died.

        Where this server's own worker failed, the round waits for an operator. Raises `Unavailable`.
        """
        with self._turn:
            with self._store.read() as connection:
                query = select(rounds.c.id).where(rounds.c.state == RoundState.RUNNING.value)
                running = list(connection.execute(query.order_by(rounds.c.position)).scalars())
            self._runner.keep_only(running)
            for round_id in running:
                if self._runner.progress(round_id) is not None:
                    continue
                try:
                    self._start(round_id)
                except EquipoiseError as error:
                    # One round whose table is gone must not keep the others from being served: it stays
                    # RUNNING and charged, and an operator can abort it.
                    self._tell_once(round_id, error.message)

    def close(self) -> None:
        """End the workers. A round that was running stays RUNNING and is run again after the next start."""
        self._runner.close()

    def _step(self, request: Request, round_id: str, action: Action, step: Step) -> RoundRecord:
        with self._store.write() as connection:
            return take_step(connection, request, round_id, action, step, self._clock())

    def _start(self, round_id: str) -> None:
        """Claimed before it is read, so that the server that had it cannot have released it in between."""
        if self._runner.active(round_id) or not self._runner.claim(round_id):
            return
        try:
            with self._store.read() as connection:
                job = read_job(connection, self._datasets, round_id, self._storage_key)
            # None where an old request was answered again and the round has moved on since.
            if job is not None:
                self._runner.start(job)
        finally:
            self._runner.unclaim(round_id)

    def _tell_once(self, round_id: str, problem: str) -> None:
        if self._problems.get(round_id) != problem:
            self._problems[round_id] = problem
            log.error("round_not_recovered", round_id=round_id, problem=problem)
