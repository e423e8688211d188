"""What runs in a round's own process: it computes the round, and tells the server over a pipe."""

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

REPORT_SECONDS = 0.2  # progress is told at most this often within a phase


@dataclass(frozen=True)
class Advance:
    """Told while the worker computes: `done` of `total` steps of a phase."""

    phase: str
    done: int
    total: int


@dataclass(frozen=True)
class Finished:
    """Told last: the synopsis, what commits to each stream, and the worker's peak memory."""

    synopsis: Synopsis
    streams: Mapping[str, StreamDigest]
    peak_memory_bytes: int


Message = Advance | StreamPart | Finished | Failed


def serve_job(pipe: Connection, job: Job) -> None:
    """The worker process's main function: compute, and tell the server all of it over `pipe`."""
    progress = _throttled(pipe)
    outcome = compute_round(job, progress)
    digests = Digests(job.round_id)
    # A full pipe holds the worker until the server has stored what was sent before.
    for part in stream_parts(job.round_id, outcome, progress):
        digests.take(part)
        pipe.send(part)
    pipe.send(Finished(outcome.synopsis, digests.streams(outcome), peak_memory_bytes()))


def _throttled(pipe: Connection) -> OnStep:
    """Progress that tells every change of phase and the last step, and else at most five a second."""
    last_phase, last_time = "", 0.0

    def progress(phase: str, done: int, total: int) -> None:
        nonlocal last_phase, last_time
        now = time.monotonic()
        if phase == last_phase and done < total and now - last_time < REPORT_SECONDS:
            return
        last_phase, last_time = phase, now
        pipe.send(Advance(phase, done, total))

    return progress
