"""Runs one worker process for each run, follows its progress, and stores its results as they arrive.

After a crash of the server, incomplete results are useless, and `Lifecycle.recover` starts the run again. So does
`Lifecycle.take_over` after a worker was killed because it did not work, up to twice.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Collection
from dataclasses import dataclass, replace

import structlog
from sqlalchemy.exc import SQLAlchemyError

from equipoise.errors import EquipoiseError
from equipoise.model.rounds import Progress
from equipoise_server.computation.round import Job
from equipoise_server.computation.streams import StreamPart
from equipoise_server.rounds.store.results import RunDiscarded, Runs
from equipoise_server.storage.claims import Claims
from equipoise_server.workers.process import BEHIND_CALLS, Failed, WorkerProcess, start
from equipoise_server.workers.round_worker import Advance, Finished, Message, serve_job

log = structlog.get_logger(__name__)

MAX_STALLS = 3  # of one round's workers on this server; then an operator decides
NOTHING = Progress("", 0, 0, 0.0, complete=False, peak_memory_bytes=0)


@dataclass
class _Run:
    """One run: its process and its progress. The runner's lock guards it."""

    process: WorkerProcess
    progress: Progress
    phase_start: float
    kind: str = ""  # the failure's type, for the log
    problem: str = ""  # the failure in words, for operators
    discarded: bool = False  # its round was aborted or released meanwhile, which is no failure
    ended: bool = False


class Runner:
    """The workers of the rounds that this server has claimed. Safe to use from several threads."""

    def __init__(self, runs: Runs, claims: Claims, worker_idle_seconds: float) -> None:
        self._results = runs
        self._claims = claims
        self._lock = threading.Lock()
        self._runs: dict[str, _Run] = {}
        self._worker_idle_seconds = worker_idle_seconds
        self._stalls: Counter[str] = Counter()  # by round
        self._closed = False
        self._failed = 0

    @property
    def failed(self) -> int:
        """The number of this server's workers that ended without answers, for operators' monitoring."""
        with self._lock:
            return self._failed

    def claim(self, round_id: str) -> bool:
        """Claim the round, and return whether it is this server's now. Raises `Unavailable`."""
        return self._claims.take(round_id)

    def unclaim(self, round_id: str) -> None:
        """Give the claim back, unless this server has a worker for the round, or had one that failed."""
        with self._lock:
            known = round_id in self._runs
        if not known:
            self._claims.give_back(round_id)

    def holder(self, round_id: str) -> str:
        """Return the other server that has claimed the round, in words for operators; empty if there is none."""
        return self._claims.holder(round_id)

    def start(self, job: Job) -> None:
        """Start a worker for a claimed round, unless one is at work or has finished."""
        with self._lock:
            if self._closed or self._active(job.round_id):
                return
            run_id = self._results.begin(job.round_id)
            idle_seconds = self._worker_idle_seconds
            process = start(serve_job, job, f"round-{job.round_id}", BEHIND_CALLS, idle_seconds)
            run = _Run(process, replace(NOTHING, phase="start"), time.monotonic())
            self._runs[job.round_id] = run
        name = f"listen-{job.round_id}"
        threading.Thread(target=self._listen, args=(job.round_id, run_id, run), name=name, daemon=True).start()

    def active(self, round_id: str) -> bool:
        """Return whether a worker is at work on the round or has finished it."""
        with self._lock:
            return self._active(round_id)

    def progress(self, round_id: str) -> Progress | None:
        """Return the run's progress; None without a run.

        The seconds left are estimated from the time that the current phase has taken so far.
        """
        with self._lock:
            run = self._runs.get(round_id)
            if run is None:
                return None
            progress, elapsed = run.progress, time.monotonic() - run.phase_start
        if run.ended or not 0 < progress.done < progress.total:
            return progress
        left = elapsed * (progress.total - progress.done) / progress.done
        return replace(progress, seconds_left=left)

    def process_id(self, round_id: str) -> int | None:
        """Return the process id of the round's worker; None unless it is alive."""
        with self._lock:
            run = self._runs.get(round_id)
            return run.process.pid if run is not None and run.process.is_alive() else None

    def forget(self, round_id: str) -> None:
        """End the round's worker, forget its progress, and give the claim back."""
        with self._lock:
            run = self._runs.pop(round_id, None)
            self._stalls.pop(round_id, None)
        if run is not None:
            run.process.end()
        self._claims.give_back(round_id)

    def keep_only(self, running: Collection[str]) -> None:
        """Forget rounds that are not running any more, and those that another server has taken over."""
        lost = self._claims.lost()
        with self._lock:
            ended = [round_id for round_id in self._runs if round_id not in running or round_id in lost]
        for round_id in ended:
            self.forget(round_id)

    def close(self) -> None:
        """End every worker. Their rounds stay as they are in the store."""
        with self._lock:
            self._closed = True
            runs = list(self._runs.values())
            self._runs.clear()
        for run in runs:
            run.process.end()
        self._claims.close()

    def _active(self, round_id: str) -> bool:
        run = self._runs.get(round_id)
        return run is not None and (not run.ended or run.progress.complete)

    def _listen(self, round_id: str, run_id: str, run: _Run) -> None:
        receive: Callable[[], Message] = run.process.receive
        try:
            while True:
                message = receive()
                # Store first: a run that shows as complete must have all of its results in the store.
                self._keep(run_id, message)
                with self._lock:
                    _take(run, message)
        except (EOFError, OSError):
            pass  # the worker has ended, in whatever way
        except RunDiscarded:
            run.discarded = True
            run.process.kill()
        except (EquipoiseError, SQLAlchemyError) as error:
            run.kind = type(error).__name__
            run.problem = f"the results could not be stored: {getattr(error, 'message', run.kind)}"
            run.process.kill()
        finally:
            run.process.pipe.close()
        exit_code = run.process.join()
        with self._lock:
            run.ended = True
            if not run.progress.complete:
                # Show the failure only after the process has ended, so that the round can be run again at once.
                problem = run.problem or f"the worker ended with exit code {exit_code}"
                if run.process.stalled:
                    problem = f"the worker used no processor time for {self._worker_idle_seconds:g} seconds"
                run.progress = replace(NOTHING, phase=f"failed: {problem}")
                if self._runs.get(round_id) is run and not run.discarded:
                    self._failed += 1
                    event = "worker_stalled" if run.process.stalled else "worker_failed"
                    log.error(event, run_id=run_id, kind=run.kind, exit_code=exit_code)
                    self._stalls[round_id] += run.process.stalled
                    if run.process.stalled and self._stalls[round_id] < MAX_STALLS:
                        del self._runs[round_id]  # so `Lifecycle.take_over` begins it again

    def _keep(self, run_id: str, message: Message) -> None:
        match message:
            case StreamPart(analyst, first_sequence, chunks):
                self._results.keep(run_id, analyst, first_sequence, chunks)
            case Finished(synopsis, streams, peak, measured):
                self._results.complete(run_id, synopsis, streams, peak, measured)
            case _:
                pass


def _take(run: _Run, message: Message) -> None:
    match message:
        case Advance(phase, done, total):
            if phase != run.progress.phase:
                run.phase_start = time.monotonic()
            run.progress = replace(run.progress, phase=phase, done=done, total=total)
        case StreamPart():
            pass
        case Finished(peak_memory_bytes=peak):
            run.progress = Progress("complete", 1, 1, 0.0, complete=True, peak_memory_bytes=peak)
        case Failed(kind, problem):
            run.kind, run.problem = kind, problem
