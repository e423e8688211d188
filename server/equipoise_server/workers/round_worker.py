"""The program of a round's worker process: it computes the round and sends the results over a pipe."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from multiprocessing.connection import Connection

from equipoise.model.synopsis import Synopsis
from equipoise_server.computation.round import Job, compute_round
from equipoise_server.computation.streams import Digests, StreamDigest, StreamPart, stream_parts
from equipoise_server.mechanisms.interface import OnStep
from equipoise_server.memory import peak_memory_bytes
from equipoise_server.workers.process import Failed

REPORT_SECONDS = 0.2  # between two reports of progress within a phase


@dataclass(frozen=True)
class Advance:
    """A report of progress: `done` of `total` steps of a phase."""

    phase: str
    done: int
    total: int


@dataclass(frozen=True)
class Finished:
    """The last message of a complete run: the synopsis, each stream's digest, and the worker's peak memory.

    `measured`: a measurement's numbers, as in `Outcome`.
    """

    synopsis: Synopsis
    streams: Mapping[str, StreamDigest]
    peak_memory_bytes: int
    measured: bytes


Message = Advance | StreamPart | Finished | Failed


def serve_job(pipe: Connection, job: Job) -> None:
    """Compute a round and send progress, results and digests over `pipe`: the worker process's main function."""
    progress = _throttled(pipe)
    outcome = compute_round(job, progress)
    digests = Digests(job.round_id)
    # A full pipe holds the worker until the server has stored what was sent before.
    for part in stream_parts(job.round_id, outcome, progress):
        digests.take(part)
        pipe.send(part)
    pipe.send(Finished(outcome.synopsis, digests.streams(outcome), peak_memory_bytes(), outcome.measured))


def _throttled(pipe: Connection) -> OnStep:
    """Return a callback that reports every new phase, every last step, and else at most five steps a second."""
    last_phase, last_time = "", 0.0

    def progress(phase: str, done: int, total: int) -> None:
        nonlocal last_phase, last_time
        now = time.monotonic()
        if phase == last_phase and done < total and now - last_time < REPORT_SECONDS:
            return
        last_phase, last_time = phase, now
        pipe.send(Advance(phase, done, total))

    return progress
