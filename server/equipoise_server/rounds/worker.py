"""What runs in a round's own process: from the table and the workloads to the exact bytes of every stream.

A round is a function of (seed, data, workloads, parameters). So nothing is checkpointed: a worker that dies
is started again and computes the same bytes.
"""

from __future__ import annotations

import itertools
import multiprocessing
import os
import resource
import sys
import threading
import time
import traceback
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from multiprocessing.connection import Connection
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from equipoise.errors import DataLoss, EquipoiseError
from equipoise.queries.schema import Schema
from equipoise.queries.workload_compiler import compile_workload
from equipoise.records.record import stream_start, stream_step
from equipoise.wire.results import results_to_chunks
from equipoise.wire.session_workload import compile_asked
from equipoise.wire.workloads import workload_from_bytes
from equipoise_server.datasets.counts import Counts
from equipoise_server.datasets.digest import data_digest
from equipoise_server.datasets.source import load_counts
from equipoise_server.mechanisms.interface import Outcome, Plan, Progress, PublicParameters
from equipoise_server.mechanisms.online.interface import play
from equipoise_server.mechanisms.registry import SESSION_MECHANISMS, mechanism, session_mechanism
from equipoise_server.rounds.records import StreamDigest
from equipoise_server.rounds.seeds import bound_seed
from equipoise_server.rounds.session_sealing import AnswerChain, check_live_answers

REPORT_SECONDS = 0.2  # progress is told at most this often within a phase
CHUNKS_IN_PART = 64  # about 1.1 MB: the store's writer is not held for long, and memory stays constant


@dataclass(frozen=True)
class Job:
    """Everything a run depends on. `schema` is JSON, `workloads` the submitted bytes in order of the shares.

    `seed`: as it was committed to; the mechanism gets it bound to the rest. `audit_nonce`: the auditor's, if any.
    `data_digest`: of the table as it was registered. `told`: of a session, what binds the answers that were given
    while it was open.
    """

    round_id: str
    table: Path
    schema: str
    setting: PublicParameters
    plan: Plan
    workloads: Mapping[str, bytes]
    seed: bytes = field(repr=False)
    data_digest: bytes
    audit_nonce: bytes | None = None
    told: Mapping[str, AnswerChain] = field(default_factory=dict)


@dataclass(frozen=True)
class Advance:
    """Told while the worker computes: `done` of `total` steps of a phase."""

    phase: str
    done: int
    total: int


@dataclass(frozen=True)
class StreamPart:
    """The next messages of one analyst's stream; `first_sequence` is the first one's sequence number."""

    analyst: str
    first_sequence: int
    chunks: list[bytes]


@dataclass(frozen=True)
class Finished:
    """Told last: the synopsis, what commits to each stream, and the worker's peak memory."""

    synopsis: NDArray[np.int64]
    streams: Mapping[str, StreamDigest]
    peak_memory_bytes: int


@dataclass(frozen=True)
class Failed:
    """Told instead of `Finished`. `problem`, which may count records, is for operators; `kind` for the log."""

    kind: str
    problem: str


Message = Advance | StreamPart | Finished | Failed


def compute_round(job: Job, progress: Progress) -> Outcome:
    """Compute a round's answers and synopsis: a pure function of the job and of the table it names.

    Raises as `load_data` does, and `DataLoss` for a session in which other answers were given.
    """
    progress("load", 0, 1)
    schema = Schema.from_json(job.schema)
    data = load_data(job.table, schema, job.setting.records, job.data_digest)
    progress("load", 1, 1)
    seed = bound_seed(job.seed, job.audit_nonce, data.digest, job.setting, job.plan)
    if job.plan.mechanism in SESSION_MECHANISMS:
        return _session(job, schema, data.counts, seed, progress)
    workloads = {}
    for done, (analyst, workload) in enumerate(job.workloads.items()):
        progress("compile", done, len(job.workloads))
        workloads[analyst] = compile_workload(workload_from_bytes(workload), schema)
    progress("compile", len(workloads), len(workloads))
    if not workloads:
        # The round's analysts must not see that nobody has asked: there is a synopsis, of a game without questions.
        workloads[job.setting.shares[0].analyst] = compile_workload((), schema)
    run = mechanism(job.plan.mechanism).run
    outcome = run(job.setting, job.plan, data.counts, workloads, seed, progress)
    return replace(outcome, answers={analyst: outcome.answers[analyst] for analyst in job.workloads})


def _session(job: Job, schema: Schema, data: Counts, seed: bytes, progress: Progress) -> Outcome:
    asked = {analyst: compile_asked(workload, schema) for analyst, workload in job.workloads.items()}
    played = session_mechanism(job.plan.mechanism)
    outcome = play(played, job.setting, job.plan, data, asked, seed, progress)
    for analyst, told in job.told.items():
        if analyst not in asked:
            raise DataLoss("what was asked in the session is not in the store")
        check_live_answers(told, job.workloads[analyst], asked[analyst], outcome.answers[analyst])
    return outcome


@dataclass(frozen=True)
class LoadedData:
    """A table that is the registered one, and its digest."""

    counts: Counts
    digest: bytes


def load_data(table: Path, schema: Schema, records: int, registered: bytes) -> LoadedData:
    """Read the table, if it is the one that was registered, with its number of records and its digest.

    Raises `InvalidArgument` for a table that its schema refuses, `DataLoss` for another one.
    """
    counts = load_counts(table, schema)
    if counts.records != records:
        raise DataLoss(f"the table has {counts.records} records, but {records} when it was registered")
    digest = data_digest(counts)
    if digest != registered:
        raise DataLoss("the table's records are not those that it had when it was registered")
    return LoadedData(counts, digest)


def stream_parts(job: Job, outcome: Outcome, progress: Progress) -> Iterator[StreamPart]:
    """Every analyst's stream, some messages at a time, so that never more than these are held."""
    for done, (analyst, answers) in enumerate(outcome.answers.items()):
        progress("store", done, len(outcome.answers))
        chunks = results_to_chunks(job.round_id, answers.values, answers.methods, answers.bounds)
        first_sequence = 1
        while part := list(itertools.islice(chunks, CHUNKS_IN_PART)):
            yield StreamPart(analyst, first_sequence, part)
            first_sequence += len(part)


class Digests:
    """What commits to every stream, chained while its messages are made."""

    def __init__(self, round_id: str) -> None:
        self._start = stream_start(round_id)
        self._chained: dict[str, tuple[bytes, int]] = {}

    def take(self, part: StreamPart) -> None:
        """Chain on the next messages of a stream."""
        digest, messages = self._chained.get(part.analyst, (self._start, 0))
        for chunk in part.chunks:
            digest = stream_step(digest, chunk)
        self._chained[part.analyst] = digest, messages + len(part.chunks)

    def streams(self, outcome: Outcome) -> dict[str, StreamDigest]:
        """By analyst, once all messages of the outcome have been taken."""
        return {
            analyst: StreamDigest(digest, messages, len(outcome.answers[analyst].values))
            for analyst, (digest, messages) in self._chained.items()
        }


def serve_job(pipe: Connection, job: Job) -> None:
    """The worker process's main function: compute, and tell the server over `pipe`."""
    threading.Thread(target=end_with_parent, daemon=True).start()
    # Where the server has died nobody listens; a traceback on its standard error would be no use to anybody.
    with pipe, suppress(BrokenPipeError):
        pipe.send(_computed(pipe, job))


def _computed(pipe: Connection, job: Job) -> Finished | Failed:
    """Sends everything that is computed; gives the last word on it."""
    try:
        progress = _throttled(pipe)
        outcome = compute_round(job, progress)
        digests = Digests(job.round_id)
        # A full pipe holds the worker until the server has stored what was sent before.
        for part in stream_parts(job, outcome, progress):
            digests.take(part)
            pipe.send(part)
        return Finished(outcome.synopsis, digests.streams(outcome), peak_memory_bytes())
    except Exception as error:
        return failure(error)


def failure(error: Exception) -> Failed:
    """What may be told of an error in a worker."""
    if isinstance(error, EquipoiseError):
        return Failed(type(error).__name__, error.message)
    if isinstance(error, MemoryError):
        return Failed("MemoryError", "out of memory")
    # Its own text may hold what was asked or what the table holds: only the place may be told.
    place = traceback.extract_tb(error.__traceback__)[-1]
    kind = f"{type(error).__name__} at {Path(place.filename).name}:{place.lineno}"
    return Failed(kind, f"something unexpected happened: {kind}")


def peak_memory_bytes() -> int:
    """The largest resident size this process has had.

    Where there is /proc it is read from there: `getrusage` also counts what the starting process held before
    the worker's own program was loaded.
    """
    try:
        status = Path("/proc/self/status").read_text()
    except OSError:
        kibibytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return kibibytes if sys.platform == "darwin" else kibibytes * 1024
    lines = dict(line.partition(":")[::2] for line in status.splitlines())
    return int(lines["VmHWM"].split()[0]) * 1024


def _throttled(pipe: Connection) -> Progress:
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


def end_with_parent() -> None:
    """A killed server must leave no worker behind that goes on using memory and processors."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)
