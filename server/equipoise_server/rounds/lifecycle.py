"""The steps of rounds and sessions, taken by operators or by the schedule, and the workers that they start."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import datetime
from functools import partial

import structlog
from sqlalchemy import Connection, select

from equipoise.errors import DataLoss, EquipoiseError, WrongState
from equipoise.model.rounds import RoundState
from equipoise.model.times import to_microseconds
from equipoise_server.clock import next_grid_point
from equipoise_server.ledger.replay import check_accounts
from equipoise_server.rounds.context import Context
from equipoise_server.rounds.records import RoundRecord
from equipoise_server.rounds.round_job import check_seeds, read_job, read_seed
from equipoise_server.rounds.runner import Runner
from equipoise_server.rounds.session_sealing import collected
from equipoise_server.rounds.state_machine import Action
from equipoise_server.rounds.store.results import completed, completed_run, discard
from equipoise_server.rounds.terms.checks import check_reason
from equipoise_server.rounds.transitions import Step, discarded, round_as_moved, take_step
from equipoise_server.storage.crash_points import CrashPoint, reached
from equipoise_server.storage.idempotency import Request, make_request
from equipoise_server.storage.operations import Operations
from equipoise_server.storage.tables.round import rounds

log = structlog.get_logger(__name__)


class Lifecycle:
    """Takes rounds from one state to the next. Synchronous and safe to use from several threads.

    `caller` is the operator's name: a `request_id` belongs to one caller. `release_grid_seconds`: of rounds whose
    terms say none.
    """

    def __init__(self, operations: Operations, context: Context, runner: Runner, release_grid_seconds: int) -> None:
        self._operations = operations
        self._context = context
        self._runner = runner
        self._grid = release_grid_seconds
        # An operator's step and what follows in memory (a worker started or ended) happen as one. Analysts
        # never wait for it.
        self._turn = threading.Lock()
        self._problems: dict[str, str] = {}  # why a round could not be run when that was last tried

    def seal(self, round_id: str, request_id: str, caller: str = "") -> RoundRecord:
        """Fix the workloads and reserve both budgets. Raises `WrongState`, `BudgetExhausted`.

        Never refused for want of workloads: the round's analysts would see from what follows that nobody asked.
        """
        return self.take(make_request(f"operator/{caller}", request_id, "seal", round_id), round_id, Action.SEAL)

    def run(self, round_id: str, request_id: str, caller: str = "") -> RoundRecord:
        """Start the worker; again, where it has died. Raises `WrongState` while one is at work."""
        return self.take(make_request(f"operator/{caller}", request_id, "run", round_id), round_id, Action.RUN)

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
                return self._take(request, round_id, action, self._seal)
            case Action.RUN:
                try:
                    return self._take(request, round_id, action, self._check_idle, self._start)
                finally:
                    self._runner.unclaim(round_id)
            case Action.RELEASE:
                return self._take(request, round_id, action, self._release, self._runner.forget)
            case Action.ABORT:
                return self._take(request, round_id, action, partial(_abort, reason), self._runner.forget)

    def recover(self) -> None:
        """At start: check guard, journal and accounts, and run again what was running. Raises `DataLoss`.

        The same seed, data, workloads and parameters give the same bytes, so nothing is answered twice.
        """
        with self._context.store.read() as connection:
            check_accounts(connection)
            check_seeds(connection, self._context.storage_key)
        self._operations.remember()
        self.take_over()

    def take_over(self) -> None:
        """Run what is running by the store, and by no server: at start, and whenever another may have died.

        Where this server's own worker failed, the round waits for an operator. Raises `Unavailable`.
        """
        with self._turn:
            with self._context.store.read() as connection:
                query = select(rounds.c.id).where(rounds.c.state == RoundState.RUNNING.value)
                running = list(connection.execute(query.order_by(rounds.c.position)).scalars())
            self._runner.keep_only(running)
            self._problems = {
                running_id: problem for running_id, problem in self._problems.items() if running_id in running
            }
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

    def _take(
        self, request: Request, round_id: str, action: Action, step: Step, then: Callable[[str], None] | None = None
    ) -> RoundRecord:
        """One step, then the guard, and only then what follows: data touched, anything told."""
        with self._turn:
            record = self._operations.carry_out(
                request,
                lambda connection, now: take_step(connection, round_id, action, step, now),
                round_as_moved,
            )
            if then is not None:
                then(round_id)
        return record

    def _check_idle(self, connection: Connection, record: RoundRecord, _: datetime) -> Mapping[str, object]:
        # Claimed before it shows as RUNNING: other servers look for such rounds that nobody has.
        if (
            completed(connection, record.id) is not None
            or self._runner.active(record.id)
            or not self._runner.claim(record.id)
        ):
            raise WrongState("the round is running, or has run and waits for its release")
        return {}

    def _seal(self, connection: Connection, record: RoundRecord, now: datetime) -> Mapping[str, object]:
        # Before anything is charged: a round whose seed does not open can never be computed.
        read_seed(connection, record, self._context.storage_key)
        return collected(connection, record, now)

    def _release(self, connection: Connection, record: RoundRecord, now: datetime) -> Mapping[str, object]:
        # When its streams open is the clock's next point of the grid, and stays so.
        self._context.watch.check(connection)
        run_id, peak_memory_bytes = completed_run(connection, record.id)
        discard(connection, record.id, but=run_id)
        grid = record.terms.release_grid_seconds or self._grid
        return {
            "run_id": run_id,
            "release_time": to_microseconds(next_grid_point(now, grid)),
            "peak_memory_bytes": peak_memory_bytes,
        }

    def _start(self, round_id: str) -> None:
        """Claimed before it is read, so that the server that had it cannot have released it in between."""
        if self._runner.active(round_id) or not self._runner.claim(round_id):
            return
        try:
            with self._context.store.read() as connection:
                job = read_job(connection, self._context, round_id)
            # None where an old request was answered again and the round has moved on since, or is complete.
            if job is not None:
                # Whoever made the round RUNNING may have died, or been told of an error, before the guard knew.
                self._operations.remember()
                self._runner.start(job)
                reached(CrashPoint.RUN_STARTED)
        finally:
            self._runner.unclaim(round_id)

    def _tell_once(self, round_id: str, problem: str) -> None:
        if self._problems.get(round_id) != problem:
            self._problems[round_id] = problem
            log.error("round_not_recovered", round_id=round_id, problem=problem)


def _abort(reason: str, connection: Connection, record: RoundRecord, now: datetime) -> Mapping[str, object]:
    """A session that was open has answered: what was asked becomes its workloads, as when it is sealed."""
    if record.state is RoundState.OPEN:
        # Whatever is damaged does not keep it from ending; whose answers are missing will show by its receipts.
        with suppress(DataLoss):
            collected(connection, record, now)
    return discarded(reason, connection, record)
