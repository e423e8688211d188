"""All that can be done with datasets and rounds, for whoever serves them. Synchronous and thread-safe."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import asdict, replace
from datetime import timedelta
from functools import partial
from pathlib import Path

import structlog
from sqlalchemy import Connection, select

from equipoise.errors import DataLoss, EquipoiseError, WrongState
from equipoise.schema import Schema
from equipoise.times import to_microseconds
from equipoise_server.ledger.caps import checked_cap
from equipoise_server.ledger.guard import Guard
from equipoise_server.ledger.replay import check_accounts
from equipoise_server.mechanisms.interface import Budget, Plan
from equipoise_server.rounds.budgets import Budgets
from equipoise_server.rounds.clock import Clock, next_grid_point, system_clock
from equipoise_server.rounds.collecting import collected
from equipoise_server.rounds.custody import SeedSource, system_seeds
from equipoise_server.rounds.datasets import AT_USUAL_ORDERS, Counting, Datasets, NewDataset
from equipoise_server.rounds.deletion import delete_analyst
from equipoise_server.rounds.evidence import evidence_of, workload_piece
from equipoise_server.rounds.foundation import Foundation
from equipoise_server.rounds.jobs import read_job
from equipoise_server.rounds.life import COMMITTED, Step, discarded, take_step
from equipoise_server.rounds.opening import Opening, open_request
from equipoise_server.rounds.paging import cut_page, page_limit
from equipoise_server.rounds.records import (
    AccountRecord,
    DatasetRecord,
    DryRun,
    JournalEntry,
    ProgressRecord,
    ReceiptRecord,
    RoundRecord,
    Terms,
)
from equipoise_server.rounds.rows import canonical, check_token, newest_first, read_round, round_records
from equipoise_server.rounds.runner import NOTHING, Runner
from equipoise_server.rounds.runs import Runs, completed, completed_run, discard, expire, kept_since_before
from equipoise_server.rounds.schedule import due_steps, take_due_step
from equipoise_server.rounds.seeds import Seeds, erase_older, kept_too_long
from equipoise_server.rounds.states import Action, RoundState
from equipoise_server.rounds.submissions import Submissions
from equipoise_server.rounds.terms import check_reason
from equipoise_server.storage.crash_points import CrashPoint, reached
from equipoise_server.storage.requests import Request, make_request
from equipoise_server.storage.store import Store
from equipoise_server.storage.tables import rounds
from equipoise_server.transparency.sequencing import Sequencer

log = structlog.get_logger(__name__)

ELSEWHERE = "the round is run by another server, {}"

Chunks = list[bytes]
RoundPage = tuple[list[RoundRecord], str]
DatasetPage = tuple[list[DatasetRecord], str]
AccountPage = tuple[list[AccountRecord], str]
JournalPage = tuple[list[JournalEntry], str]


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
        *,
        guard: Guard,
        sequencer: Sequencer,
        deployment: str,
        retention_days: int = 0,
        audit_window_days: int = 0,
    ) -> None:
        self._store = store
        self._clock = clock
        self._grid = release_grid_seconds
        self._datasets = Datasets(store, data_directory, clock)
        self.foundation = Foundation(store, self._datasets, clock, sequencer.signer, deployment, storage_key)
        self._guard = guard
        self._retention_days = retention_days
        self._audit_window = timedelta(days=audit_window_days)
        self._seeds = Seeds(store, clock)
        self._opening = Opening(store, self._datasets, clock, seeds, storage_key, release_grid_seconds)
        self._budgets = Budgets(store)
        self._sequencer = sequencer
        self._deployment = deployment
        self._submissions = Submissions(store, clock, sequencer.signer, deployment)
        self._runner = Runner(Runs(store, clock), store.claims())
        # An operator's step and what follows in memory (a worker started or ended) happen as one. Analysts
        # never wait for it.
        self._turn = threading.Lock()
        self._asked = threading.Event()  # since the guard was advanced last, maybe
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
        counting: Counting = AT_USUAL_ORDERS,
        *,
        new_budgets: bool = False,
    ) -> DatasetRecord:
        """Register a table of the data directory: its number of records is public from now on.

        `counting`: at which orders its accounts count, for good. `new_budgets`: said where another dataset has the
        same table. Raises `InvalidArgument` (also where the schema refuses records), `AlreadyExists`.
        """
        new = NewDataset(name, source, schema, data_cap, analyst_cap, counting, new_budgets)
        record = self._datasets.register(new, new.request(f"operator/{caller}", request_id))
        self._guard.advance(self._store)
        return record

    def retire_dataset(self, name: str, request_id: str, caller: str = "") -> DatasetRecord:
        """Allow no new rounds on a dataset. Raises `NotFound`, `WrongState` where it is retired already."""
        retired = self._datasets.retire(
            name, make_request(f"operator/{caller}", request_id, "retire_dataset", name)
        )
        self._asked.set()
        return retired

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
        record = self._opening.open(terms, open_request(terms, f"operator/{caller}", request_id))
        self._guard.advance(self._store)
        return record

    def seal(self, round_id: str, request_id: str, caller: str = "") -> RoundRecord:
        """Fix the workloads and reserve both budgets. Raises `WrongState`, `BudgetExhausted`.

        Never refused for want of workloads: the round's analysts would see from what follows that nobody asked.
        """
        request = make_request(f"operator/{caller}", request_id, "seal", round_id)
        return self.take(request, round_id, Action.SEAL)

    def run(self, round_id: str, request_id: str, caller: str = "") -> RoundRecord:
        """Start the worker; again, where it has died. Raises `WrongState` while one is at work."""
        request = make_request(f"operator/{caller}", request_id, "run", round_id)
        return self.take(request, round_id, Action.RUN)

    def release(self, round_id: str, request_id: str, caller: str = "") -> RoundRecord:
        """Make the stored results the answers, and spend; streams open at the next point of the round's grid."""
        request = make_request(f"operator/{caller}", request_id, "release", round_id)
        return self.take(request, round_id, Action.RELEASE)

    def abort(self, round_id: str, reason: str, request_id: str, caller: str = "") -> RoundRecord:
        """End a round without answers. `reason` is shown to its analysts; charges are spent once it ran."""
        check_reason(reason)
        request = make_request(f"operator/{caller}", request_id, "abort", round_id, reason)
        return self.take(request, round_id, Action.ABORT, reason)

    def take(self, request: Request, round_id: str, action: Action, reason: str = "") -> RoundRecord:
        """Take a step that was asked for by an operator, or by the time."""
        match action:
            case Action.SEAL:
                return self._advanced(request, round_id, action, collected)
            case Action.RUN:
                try:
                    return self._advanced(request, round_id, action, self._check_idle, self._start)
                finally:
                    self._runner.unclaim(round_id)
            case Action.RELEASE:
                return self._advanced(request, round_id, action, self._released, self._runner.forget)
            case Action.ABORT:
                return self._advanced(request, round_id, action, partial(_aborted, reason), self._runner.forget)

    def get(self, round_id: str) -> RoundRecord:
        """One round as operators and auditors see it. Raises `NotFound`."""
        with self._store.read() as connection:
            return read_round(connection, round_id)

    def list(self, page_size: int = 0, page_token: str = "") -> RoundPage:
        """The rounds, newest first."""
        limit = page_limit(page_size)
        with self._store.read() as connection:
            check_token(connection, page_token)
            found = round_records(connection, newest_first(page_token, limit + 1))
        return cut_page(found, limit, lambda record: record.id)

    def progress(self, round_id: str) -> ProgressRecord:
        """How far a run has come. For operators only. Raises `NotFound`."""
        with self._store.read() as connection:
            query = select(rounds.c.peak_memory_bytes).where(rounds.c.id == round_id)
            record, peak = read_round(connection, round_id), connection.execute(query).scalar_one()
            run = completed(connection, round_id)
        if record.state is RoundState.RELEASED:
            return ProgressRecord("released", 1, 1, 0.0, complete=True, peak_memory_bytes=peak)
        if record.state is RoundState.RUNNING and run is not None:
            return ProgressRecord("complete", 1, 1, 0.0, complete=True, peak_memory_bytes=run[1])
        known = self._runner.progress(round_id)
        if known is None and record.state is RoundState.RUNNING and (holder := self._runner.holder(round_id)):
            return replace(NOTHING, phase=ELSEWHERE.format(holder))
        return known or NOTHING

    # The analysts' side of a round

    def submit(self, analyst: str, round_id: str, request_id: str, workload: bytes, salt: bytes) -> ReceiptRecord:
        """Accept a workload, or replace the analyst's earlier one, until the round is sealed.

        `salt`: 32 random bytes of the analyst's, under which the workload is committed to.
        Raises `NotFound` without a share, `WrongState` when sealed, `InvalidArgument` naming the field of the
        workload, `BudgetExhausted` beyond the share, `AlreadyExists` for another request under the same id.
        """
        receipt = self._submissions.submit(analyst, round_id, request_id, workload, salt)
        self._asked.set()
        return receipt

    def withdraw(self, analyst: str, round_id: str, request_id: str) -> bytes:
        """Take the analyst's workload back; a signed receipt of that.

        Raises `NotFound` without a share or a workload, `WrongState`.
        """
        envelope = self._submissions.withdraw(analyst, round_id, request_id)
        self._asked.set()
        return envelope

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

    # Auditors

    def set_audit_nonce(self, round_id: str, nonce: bytes, request_id: str, caller: str = "") -> None:
        """Add 32 random bytes of an auditor's to an open round's randomness, once for all auditors.

        Raises `NotFound`, `InvalidArgument`, `WrongState` once it is sealed, `AlreadyExists` where it has others.
        """
        request = make_request(f"auditor/{caller}", request_id, "set_audit_nonce", round_id, nonce)
        self._seeds.set_nonce(round_id, nonce, request)
        self._asked.set()

    def sealed_seed(self, round_id: str, caller: str) -> Mapping[str, bytes]:
        """An ended round's seed, sealed to each auditor's key, by the key's id. Raises `NotFound`, `WrongState`.

        That it was read is in the log, and known to the guard, before anything is answered.
        """
        found = self._seeds.read(round_id, caller)
        self._sequencer.sequence(self._clock())
        return found

    def evidence(self, analyst: str, round_id: str, since_size: int) -> bytes | None:
        """What the analyst can verify an ended round with, JSON; None while the log has not come to its end.

        `since_size`: of a checkpoint that the analyst holds, 0 for none. Raises `NotFound` without a share,
        `WrongState` before results can be read or the round was aborted, `OutOfRange` for a size never shown.
        """
        # RELEASED is shown to analysts from the release time on: evidence opens when the streams do.
        if not self._submissions.get(analyst, round_id).state.ended:
            raise WrongState("the round has not ended yet, so there is nothing to verify")
        signer = self._sequencer.signer
        with self._store.read() as connection:
            found = evidence_of(connection, signer, self._deployment, analyst, round_id, since_size)
        return None if found is None else found.to_bytes()

    def submitted(self, analyst: str, round_id: str, first: int, length: int) -> bytes:
        """Some bytes of the analyst's own workload; none beyond its end, and where there is none."""
        with self._store.read() as connection:
            return workload_piece(connection, analyst, round_id, first, length)

    # Analysts

    def delete_analyst(self, name: str, request_id: str, caller: str = "") -> None:
        """Remove an analyst with its workloads and results. Raises `NotFound`, `WrongState` while in a round."""
        request = make_request(f"operator/{caller}", request_id, "delete_analyst", name)
        with self._store.write() as connection:
            delete_analyst(connection, name, request, self._clock())
        reached(CrashPoint.DELETION_COMMITTED)
        self.remember()

    def remember(self) -> None:
        """Let the guard know of all that was done, so that no copy of the store from before it is accepted."""
        self._guard.advance(self._store)

    def remember_answers(self, answered: int) -> None:
        """Let the guard know that the store has so many answers of sessions, before any more of them is told."""
        self._guard.count(answered)

    # Budgets

    def accounts(self, dataset: str, page_size: int = 0, page_token: str = "") -> AccountPage:
        """The accounts of a dataset in the order of their names. Raises `NotFound`."""
        return self._budgets.accounts(dataset, page_size, page_token)

    def journal(self, page_size: int = 0, page_token: str = "") -> JournalPage:
        """The budget journal from its beginning."""
        return self._budgets.journal(page_size, page_token)

    def account_history(self, account: str, page_size: int = 0, page_token: str = "") -> JournalPage:
        """The journal's entries of one account from its opening. Raises `NotFound`."""
        return self._budgets.history(account, page_size, page_token)

    def set_cap(self, account: str, cap: Budget, request_id: str, caller: str = "") -> AccountRecord:
        """Give an account another cap: journaled. Raises `InvalidArgument` below what is committed already.

        `WrongState` where rounds that are open could no longer be sealed: abort some of them first.
        """
        checked = checked_cap("cap", cap.epsilon, cap.delta)
        request = make_request(f"operator/{caller}", request_id, "set_cap", account, canonical(asdict(cap)))
        record = self._budgets.set_cap(account, checked, request, self._clock())
        self._guard.advance(self._store)
        return record

    # The service itself

    def recover(self) -> None:
        """At start: check guard, journal and accounts, and run again what was running. Raises `DataLoss`.

        The same seed, data, workloads and parameters give the same bytes, so nothing is answered twice.
        """
        with self._store.read() as connection:
            check_accounts(connection)
        self._guard.advance(self._store)
        with self._store.write() as connection:
            erase_older(connection)
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
            self._problems = {each: problem for each, problem in self._problems.items() if each in running}
            for round_id in running:
                if self._runner.progress(round_id) is not None:
                    continue
                try:
                    self._start(round_id)
                except EquipoiseError as error:
                    # One round whose table is gone must not keep the others from being served: it stays
                    # RUNNING and charged, and an operator can abort it.
                    self._tell_once(round_id, error.message)

    def keep_schedule(self) -> None:
        """Do what is due now: steps of rounds whose closing time has come, and the removal of old results."""
        now = self._clock()
        with self._store.read() as connection:
            steps = due_steps(connection, now)
            kept = timedelta(days=self._retention_days)
            old = kept_since_before(connection, now - kept) if kept else []
            unneeded = kept_too_long(connection, now, self._audit_window)
        if self._asked.is_set():
            self._asked.clear()
            self._guard.advance(self._store)
        for round_id, step in steps:
            take_due_step(self, round_id, step)
        self._sequencer.sequence(now)
        for round_id in old:
            with self._store.write() as connection:
                expire(connection, round_id)
            log.info("results_expired", round_id=round_id)
        for round_id in unneeded:
            self._seeds.destroy(round_id)
            log.info("seed_destroyed", round_id=round_id)

    def close(self) -> None:
        """End the workers. A round that was running stays RUNNING and is run again after the next start."""
        self._runner.close()

    def _advanced(
        self, request: Request, round_id: str, action: Action, step: Step, then: Callable[[str], None] | None = None
    ) -> RoundRecord:
        """One step, then the guard, and only then what follows: data touched, anything told."""
        with self._turn:
            with self._store.write() as connection:
                record = take_step(connection, request, round_id, action, step, self._clock())
            reached(COMMITTED[action])
            self._guard.advance(self._store)
            if then is not None:
                then(round_id)
        return record

    def _check_idle(self, connection: Connection, record: RoundRecord) -> Mapping[str, object]:
        # Claimed before it shows as RUNNING: other servers look for such rounds that nobody has.
        if (
            completed(connection, record.id) is not None
            or self._runner.active(record.id)
            or not self._runner.claim(record.id)
        ):
            raise WrongState("the round is being run, or has been, and waits for its release")
        return {}

    def _released(self, connection: Connection, record: RoundRecord) -> Mapping[str, object]:
        run_id, peak_memory_bytes = completed_run(connection, record.id)
        discard(connection, record.id, but=run_id)
        release_time = next_grid_point(self._clock(), record.terms.release_grid_seconds or self._grid)
        return {
            "run_id": run_id,
            "release_time": to_microseconds(release_time),
            "peak_memory_bytes": peak_memory_bytes,
        }

    def _start(self, round_id: str) -> None:
        """Claimed before it is read, so that the server that had it cannot have released it in between."""
        if self._runner.active(round_id) or not self._runner.claim(round_id):
            return
        try:
            with self._store.read() as connection:
                job = read_job(connection, self.foundation, round_id)
            # None where an old request was answered again and the round has moved on since, or is complete.
            if job is not None:
                # Whoever made the round RUNNING may have died, or been told of an error, before the guard knew.
                self._guard.advance(self._store)
                self._runner.start(job)
                reached(CrashPoint.RUN_STARTED)
        finally:
            self._runner.unclaim(round_id)

    def _tell_once(self, round_id: str, problem: str) -> None:
        if self._problems.get(round_id) != problem:
            self._problems[round_id] = problem
            log.error("round_not_recovered", round_id=round_id, problem=problem)


def _aborted(reason: str, connection: Connection, record: RoundRecord) -> Mapping[str, object]:
    """A session that was open has answered: what was asked becomes its workloads, as when it is sealed."""
    if record.state is RoundState.OPEN:
        # Whatever is damaged does not keep it from ending; whose answers are missing will show by its receipts.
        with suppress(DataLoss):
            collected(connection, record)
    return discarded(reason, connection, record)
