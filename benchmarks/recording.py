"""What verifiable records cost a round: their share of the work of all its steps, from the table's registration on.

    PYTHONPATH=tests python benchmarks/recording.py

A whole round is lived by the service on an SQLite store, with its worker process. Within the same run every
function that only records need is timed: the digest of the table, commitments, receipts, records, the log and its
checkpoints, sealing the seed. What the worker does for them (the table's digest again, binding the seed, chaining
the streams) is done once more on the same data, and its time added. Times are processors', so that a busy machine
shows the same share. The first case is the worst: noise on many answers is all that its worker computes.
"""

from __future__ import annotations

import itertools
import os
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
from harness.rounds_bench import DEPLOYMENT, KEY, SALT, HandClock, log_of

from equipoise.model.accounts import Budget, Danger
from equipoise.model.rounds import Share, Terms
from equipoise.queries.schema import Attribute, Schema
from equipoise.queries.statements import Marginal
from equipoise.queries.workload_compiler import compile_workload
from equipoise.wire.workloads import workload_to_bytes
from equipoise_server.computation.round import Job
from equipoise_server.computation.seed import bound_seed
from equipoise_server.computation.streams import Digests, StreamPart
from equipoise_server.datasets.digest import data_digest
from equipoise_server.ledger.rollback_guard import Guard
from equipoise_server.rounds import datasets, opening, submissions, transitions
from equipoise_server.rounds.round_job import read_job
from equipoise_server.rounds.services import round_services
from equipoise_server.storage.store import open_store
from equipoise_server.storage.tables.identity import identities
from equipoise_server.transparency import seed_encryption
from equipoise_server.transparency.sequencing import Sequencer

POLL_SECONDS = 0.02

# Everything that a round does for its records and for nothing else; none of these calls another.
RECORDING: Sequence[tuple[object, str]] = (
    (datasets, "data_digest"),
    (datasets, "dataset_registered"),
    (opening, "round_opened"),
    (seed_encryption, "seal_to"),
    (submissions, "workload_commitment"),
    (submissions.Submissions, "_signed"),
    (transitions, "record_step"),
    (Sequencer, "sequence"),
)


@dataclass(frozen=True)
class Case:
    """A round: its table has `sides` as categories of its attributes, and every analyst asks for all pairs."""

    name: str
    mechanism: str
    analysts: int
    sides: tuple[int, ...]
    records: int
    options: dict[str, object]


CASES = (
    Case("noise on a million answers", "gaussian", 20, (140, 130, 120), 100_000, {}),
    Case("noise for two hundred analysts", "gaussian", 200, (4, 4, 4), 100_000, {}),
    Case("measured tables", "pooled", 20, (30, 30, 30), 100_000, {"least": 0, "synopsis": 100_000}),
    Case("the game", "equilibrium", 20, (8, 8, 8), 100_000, {"play": "mixed", "game_share": 0.5}),
)


def main() -> None:
    """Prints a table: the round, its answers, seconds of all its steps, seconds of these for records, the share."""
    print(f"{'round':<30} {'answers':>9} {'seconds':>8} {'records':>8} {'share':>7}")
    for case in CASES:
        with tempfile.TemporaryDirectory() as place, timed() as spent:
            answers, seconds, of_worker = lived(Path(place), case)
            spent[0] += of_worker
        print(
            f"{case.name:<30} {answers:>9} {seconds:>8.2f} {spent[0]:>8.3f} {spent[0] / seconds:>7.2%}", flush=True
        )


@contextmanager
def timed() -> Iterator[list[float]]:
    """The seconds that are spent in `RECORDING` while the block runs."""
    spent = [0.0]

    def watched(function: Any) -> Any:
        def call(*arguments: Any, **named: Any) -> Any:
            begin = time.thread_time()
            try:
                return function(*arguments, **named)
            finally:
                spent[0] += time.thread_time() - begin

        return call

    with ExitStack() as stack:
        for owner, name in RECORDING:
            stack.enter_context(patch.object(owner, name, watched(getattr(owner, name))))
        yield spent


def lived(place: Path, case: Case) -> tuple[int, float, float]:
    """The answers of one round, the seconds of its steps, and those that the worker needs for the records."""
    schema = Schema(tuple(Attribute(f"a{i}", tuple(map(str, range(side)))) for i, side in enumerate(case.sides)))
    write_table(place / "table.csv", schema, case.records)
    asked = [Marginal(pair) for pair in itertools.combinations(schema.names, 2)]
    compiled = compile_workload(asked, schema)
    names = [f"a{i:04d}" for i in range(case.analysts)]
    store, clock, guard = open_store(f"sqlite:///{place / 'equipoise.db'}"), HandClock(), Guard(place / "guard")
    sequencer = log_of(place, store, guard, clock())
    service = round_services(
        store, place, KEY, clock=clock, guard=guard, sequencer=sequencer, deployment=DEPLOYMENT
    )
    service.lifecycle.recover()
    with store.write() as connection:
        rows = [{"name": name, "role": "analyst", "created": 0} for name in names]
        connection.execute(identities.insert(), rows)
    budget = Budget(8.0, 1e-4)
    shares = tuple(Share(name, compiled.statement_count, compiled.query_count) for name in names)
    terms = Terms("t", shares, budget, budget, mechanism=case.mechanism, options=case.options, accepted=(*Danger,))
    workload = workload_to_bytes(asked)
    begin = processor_seconds()
    service.datasets.register(
        "t", "table.csv", schema, Budget(20.0, 1e-3), Budget(20.0, 1e-3), "register", accepted=(*Danger,)
    )
    round_id = service.opening.open(terms, "open").id
    service.schedule.keep()
    for name in names:
        service.submissions.submit(name, round_id, "submit", workload, SALT)
    service.lifecycle.seal(round_id, "seal")
    service.schedule.keep()
    service.lifecycle.run(round_id, "run")
    with store.read() as connection:
        job = read_job(connection, service.context, round_id)
    while not (progress := service.views.progress(round_id)).complete:
        assert not progress.phase.startswith("failed"), progress.phase
        time.sleep(POLL_SECONDS)
    service.lifecycle.release(round_id, "release")
    clock.move(60)
    service.schedule.keep()
    assert job is not None
    service.lifecycle.close()
    seconds = processor_seconds() - begin
    parts = [StreamPart(name, 1, service.analyst_views.results(name, round_id, 0, 1 << 30)) for name in names]
    store.close()
    return compiled.query_count * case.analysts, seconds, seconds_of_worker(job, parts)


def processor_seconds() -> float:
    """What this process has used, and its workers that have ended."""
    return sum(os.times()[:4])


def seconds_of_worker(job: Job, parts: Sequence[StreamPart]) -> float:
    """What the worker does for the records, done again."""
    data = job.source.counts(Schema.from_json(job.schema))
    begin = time.thread_time()
    digest = data_digest(data)
    bound_seed(job.seed, job.audit_nonce, digest, job.setting, job.plan, job.workloads)
    digests = Digests(job.round_id)
    for part in parts:
        digests.take(part)
    return time.thread_time() - begin


def write_table(path: Path, schema: Schema, records: int) -> None:
    """Records drawn evenly."""
    draws = np.random.default_rng(1)
    columns = [draws.integers(0, size, records) for size in schema.sizes]
    lines = [",".join(map(str, row)) for row in zip(*columns, strict=True)]
    path.write_text("\n".join([",".join(schema.names), *lines]) + "\n")


if __name__ == "__main__":
    main()
