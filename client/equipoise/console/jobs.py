"""Work that takes longer than a page may: done in a thread, and looked at by a page of its own."""

from __future__ import annotations

import secrets
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from equipoise.errors import EquipoiseError, InternalError, NotFound
from equipoise.wire.printable import printable

MAX_KEPT = 50  # jobs that have ended


@dataclass(frozen=True)
class Finding:
    """One line of what a job found: a numbered check, say. `outcome`: "passed", "failed" or "not checked"."""

    number: str
    title: str
    outcome: str
    detail: str = ""


@dataclass
class Job:
    """One piece of work.

    Attributes:
        title: what it does, for people.
        then: where its user goes on when it has succeeded.
        then_title: what is there.
        id: random.
        phase: what it does just now.
        done: of `total` steps of the phase; `total` is 0 where nobody knows it.
        findings: what it has found so far.
        verdict: one sentence on what came of it.
        well: whether what it found is in order.
        error: what ended it.
        ended: whether it has ended.
    """

    title: str
    then: str
    then_title: str
    id: str = field(default_factory=lambda: secrets.token_hex(16))
    phase: str = "begins"
    done: int = 0
    total: int = 0
    findings: list[Finding] = field(default_factory=list)
    verdict: str = ""
    well: bool = True
    error: EquipoiseError | None = None
    ended: bool = False
    began: float = field(default_factory=time.monotonic)
    seconds: float = 0.0

    def tell(self, phase: str, done: int = 0, total: int = 0) -> None:
        """Says how far it is.

        Args:
            phase: what it does.
            done: how many steps of it.
            total: of how many; 0: nobody knows.
        """
        self.phase, self.done, self.total = printable(phase), done, total

    @property
    def running_seconds(self) -> float:
        """How long it took, or takes."""
        return self.seconds if self.ended else time.monotonic() - self.began


class Jobs:
    """All jobs of a run of the console. Thread-safe."""

    def __init__(self) -> None:
        self._jobs: dict[str, Job] = {}
        self._lock = threading.Lock()

    def start(self, job: Job, work: Callable[[Job], None]) -> Job:
        """Starts a job.

        Args:
            job: what it is.
            work: does it, and tells the job how far it is.
        """
        with self._lock:
            ended = [each for each in self._jobs.values() if each.ended]
            for old in ended[: max(0, len(ended) - MAX_KEPT)]:
                del self._jobs[old.id]
            self._jobs[job.id] = job
        threading.Thread(target=_do, args=(job, work), daemon=True, name=f"job {job.title}").start()
        return job

    def find(self, job_id: str) -> Job:
        """Returns a job. Raises `NotFound`."""
        with self._lock:
            job = self._jobs.get(job_id)
        if job is None:
            raise NotFound("there is no such work; the console was started again since, or it ended long ago")
        return job


def _do(job: Job, work: Callable[[Job], None]) -> None:
    try:
        work(job)
    except EquipoiseError as error:
        job.error, job.well = error, False
    except Exception as error:  # a fault of ours must not leave a page that waits for ever
        job.error, job.well = InternalError(f"the console failed: {type(error).__name__}"), False
        raise
    finally:
        job.seconds = time.monotonic() - job.began
        job.ended = True
