"""Takes the steps of rounds and sessions, for operators and for the schedule, and starts and ends their workers."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import datetime
from functools import partial

import structlog
from sqlalchemy import Connection, select

from equipoise.accounting import Cost
from equipoise.errors import DataLoss, EquipoiseError, WrongState
from equipoise.model.rounds import RoundState
from equipoise.model.times import to_microseconds
from equipoise_server.clock import next_grid_point
from equipoise_server.ledger.replay import check_accounts
from equipoise_server.rounds.context import Context
from equipoise_server.rounds.grant_ending import return_unspent, sealed_cost
from equipoise_server.rounds.records import RoundRecord
from equipoise_server.rounds.round_job import check_seeds, read_job, read_seed
from equipoise_server.rounds.runner import Runner
from equipoise_server.rounds.session_sealing import collected
from equipoise_server.rounds.state_machine import Action
from equipoise_server.rounds.store.datasets import dataset_of
from equipoise_server.rounds.store.opened_terms import check_opened
from equipoise_server.rounds.store.results import completed, completed_run, discard
from equipoise_server.rounds.store.rounds import read_round
from equipoise_server.rounds.terms.checks import check_reason
from equipoise_server.rounds.transitions import Step, discarded, round_as_moved, take_step
from equipoise_server.storage.crash_points import CrashPoint, reached
from equipoise_server.storage.idempotency import Request, make_request
from equipoise_server.storage.operations import Operations
from equipoise_server.storage.tables.round import rounds

log = structlog.get_logger(__name__)


class Lifecycle:
    """The steps of all rounds of one server. Synchronous and safe to use from several threads.

    In every method `caller` is the operator's name, and a `request_id` belongs to one caller.
    `release_grid_seconds` is the release grid of rounds whose terms name none.
    """

    def __init__(self, operations: Operations, context: Context, runner: Runner, release_grid_seconds: int) -> None:
        self._operations = operations
        self._context = context
        self._runner = runner
        self._grid = release_grid_seconds
        # The lock makes a step and what follows in memory (a worker starts or ends) one unit. Analysts never wait
        # for it.
        self._turn = threading.Lock()
        self._problems: dict[str, str] = {}  # why a round could not be run when that was last tried

    def seal(self, round_id: str, request_id: str, caller: str = "") -> RoundRecord:
        """Fix the workloads and reserve both budgets.

        A round without workloads is sealed, too: a refusal would show the round's analysts that nobody asked.

        Raises:
            NotFound: there is no such round.
            WrongState: the round is not open.
            BudgetExhausted: an account has no room for the round.
        """
        return self.take(make_request(f"operator/{caller}", request_id, "seal", round_id), round_id, Action.SEAL)

    def run(self, round_id: str, request_id: str, caller: str = "") -> RoundRecord:
        """Start the round's worker, or start it again after it died.

        Raises:
            NotFound: there is no such round.
            WrongState: the round has no workloads yet, or a worker runs.
            InvalidArgument: the table is gone, out of reach, lacks columns, or has changed. The round stays sealed.
        """
        return self.take(make_request(f"operator/{caller}", request_id, "run", round_id), round_id, Action.RUN)

    def release(self, round_id: str, request_id: str, caller: str = "") -> RoundRecord:
        """Release the stored results and spend the charges. Streams open at the next point of the release grid."""
        request = make_request(f"operator/{caller}", request_id, "release", round_id)
        return self.take(request, round_id, Action.RELEASE)

    def abort(self, round_id: str, reason: str, request_id: str, caller: str = "") -> RoundRecord:
        """End a round without answers. Its charges are spent if data may have been read, and freed otherwise.

        `reason` is shown to the round's analysts. Raises `InvalidArgument` for a malformed reason, `WrongState`.
        """
        check_reason(reason)
        request = make_request(f"operator/{caller}", request_id, "abort", round_id, reason)
        return self.take(request, round_id, Action.ABORT, reason)

    def take(self, request: Request, round_id: str, action: Action, reason: str = "") -> RoundRecord:
        """Take a step that an operator or the schedule requests; `reason` is that of an abort."""
        match action:
            case Action.SEAL:
                return self._take(request, round_id, action, self._seal)
            case Action.RUN:
                self._check_table(round_id)
                try:
                    return self._take(request, round_id, action, self._check_idle, self._start)
                finally:
                    self._runner.unclaim(round_id)
            case Action.RELEASE:
                release = partial(self._release, self._sealed_cost(round_id))
                return self._take(request, round_id, action, release, self._runner.forget)
            case Action.ABORT:
                return self._take(request, round_id, action, partial(_abort, reason), self._runner.forget)

    def recover(self) -> None:
        """Check journal, accounts and seeds at the server's start, and run the running rounds again.

        The same seed, data, workloads and parameters give the same bytes, so a round never has two answers.

        Raises:
            DataLoss: the journal and the accounts disagree, the guard refuses the store, or a seed does not open.
        """
        with self._context.store.read() as connection:
            check_accounts(connection)
            check_seeds(connection, self._context.storage_key)
        self._operations.remember()
        self.take_over()

    def take_over(self) -> None:
        """Start a worker for each round that the store shows as RUNNING and that no server runs.

        Called at the start, and whenever another server may have died. A round whose worker failed on this server
        waits for an operator. Raises `Unavailable`.
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
                    # One round whose table is gone must not stop the others. That round stays RUNNING and charged,
                    # and an operator can abort it.
                    self._tell_once(round_id, error.message)

    def close(self) -> None:
        """End the workers. A running round stays RUNNING, and the next start runs it again."""
        self._runner.close()

    def _take(
        self, request: Request, round_id: str, action: Action, step: Step, then: Callable[[str], None] | None = None
    ) -> RoundRecord:
        """Take one step, advance the guard, and only then call `then`, which may read data or tell results."""
        with self._turn:
            record = self._operations.carry_out(
                request,
                lambda connection, now: take_step(connection, round_id, action, step, now),
                round_as_moved,
            )
            if then is not None:
                then(round_id)
        return record

    def _check_table(self, round_id: str) -> None:
        """Look at the table before the round counts as one that has read it: an abort still frees its charges."""
        with self._context.store.read() as connection:
            record = read_round(connection, round_id)
            dataset = dataset_of(connection, record)
        # Without a charge the table is never read.
        if record.state is RoundState.SEALED and record.plan.data_cost != Cost():
            self._context.tables.check_unchanged(dataset)

    def _check_idle(self, connection: Connection, record: RoundRecord, _: datetime) -> Mapping[str, object]:
        # Claim the round before it shows as RUNNING: other servers take over RUNNING rounds that are not claimed.
        if (
            completed(connection, record.id) is not None
            or self._runner.active(record.id)
            or not self._runner.claim(record.id)
        ):
            raise WrongState("the round is running, or has run and waits for its release")
        return {}

    def _seal(self, connection: Connection, record: RoundRecord, now: datetime) -> Mapping[str, object]:
        # Both before anything is charged: charges follow the plan, and without its seed no round can be computed.
        check_opened(connection, record)
        read_seed(connection, record, self._context.storage_key)
        return collected(connection, record, now)

    def _sealed_cost(self, round_id: str) -> int | None:
        """Return what a grant that is to be released has spent, counted before the transaction that all await."""
        with self._context.store.read() as connection:
            record = read_round(connection, round_id)
            return None if record.state.ended else sealed_cost(connection, record)

    def _release(
        self, spent: int | None, connection: Connection, record: RoundRecord, now: datetime
    ) -> Mapping[str, object]:
        # The streams open at the clock's next point of the grid. That time never changes afterwards.
        run_id, peak_memory_bytes = completed_run(connection, record.id)
        return_unspent(connection, record, spent, now)
        discard(connection, record.id, but=run_id)
        grid = record.terms.release_grid_seconds or self._grid
        return {
            "run_id": run_id,
            "release_time": to_microseconds(next_grid_point(now, grid)),
            "peak_memory_bytes": peak_memory_bytes,
        }

    def _start(self, round_id: str) -> None:
        """Start the round's worker, if the round needs one.

        The round is claimed before it is read, so the server that had it cannot release it in between.
        """
        if self._runner.active(round_id) or not self._runner.claim(round_id):
            return
        try:
            with self._context.store.read() as connection:
                job = read_job(connection, self._context, round_id)
            # None if the round is complete, or if an old request was repeated and the round has moved on since.
            if job is not None:
                # The server that made the round RUNNING may have died, or failed, before it advanced the guard.
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
    """End a round without answers. The statements of an open session become workloads first, as at sealing."""
    if record.state is RoundState.OPEN:
        # Damaged answers must not keep a session from ending. An analyst's receipts show which answers are missing.
        with suppress(DataLoss):
            collected(connection, record, now)
    return discarded(reason, connection, record)
