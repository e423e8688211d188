"""A dataset that is measured once, and rounds that answer from it: charges, records, crashes, refusals, replay."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

import numpy as np
import pytest
from harness.rounds_bench import ANN, COLOUR, SALT, SCHEMA, SIZE, TERMS, Bench
from harness.stores import allow_changes
from sqlalchemy import text

from equipoise.accounting import Cost
from equipoise.errors import BudgetExhausted, DataLoss, InvalidArgument
from equipoise.model.accounts import Budget
from equipoise.model.results import AnswerMethod
from equipoise.model.rounds import RoundState, Terms
from equipoise.queries.predicates import AllOf
from equipoise.queries.statements import Marginal
from equipoise.queries.workload_compiler import compile_workload
from equipoise.wire.results import chunk_from_bytes
from equipoise.wire.workloads import workload_to_bytes
from equipoise_server.replay.replay import Replay
from equipoise_server.replay.stored import StoredRound
from equipoise_server.rounds.store.committed_content import check_all
from equipoise_server.rounds.store.results import read_measured

MEASURE = Terms("shop", (), Budget(8.0, 1e-4), None, mechanism="measurement", options={"family": "pairs"})
STANDING = replace(TERMS, mechanism="standing", options={})


@pytest.fixture
def bench(tmp_path: Path, store_url: str) -> Iterator[Bench]:
    bench = Bench(tmp_path, store_url, distinct_seeds=True)
    yield bench
    bench.stop()


def measured(bench: Bench, terms: Terms = MEASURE) -> str:
    """The id of a released measurement, to which the schedule alone has brought it."""
    round_id = bench.opened(terms)
    for _ in range(2):
        bench.rounds.schedule.keep()
    assert bench.wait(round_id).complete
    bench.rounds.schedule.keep()
    assert bench.state(round_id) is RoundState.RELEASED
    bench.clock.move(60)
    bench.rounds.schedule.keep()
    return round_id


def replayed(bench: Bench, round_id: str) -> list[str]:
    """The checks of a replay that passed, all of them."""
    found = Replay(
        StoredRound(bench.store, round_id),
        lambda commitment: _seed_of(bench, commitment),
        lambda dataset: bench.rounds.datasets.source(dataset.source),
        lambda step, done, total: None,
    ).run()
    assert found.failed == "", found.difference
    return [check.name for check in found.checks]


def _seed_of(bench: Bench, commitment: bytes) -> bytes:
    seeds = [bench.seed, *(sha256(bench.seed + bytes([drawn])).digest() for drawn in range(2, bench.drawn + 1))]
    return next(seed for seed in seeds if _commits(seed, commitment))


def _commits(seed: bytes, commitment: bytes) -> bool:
    from equipoise.records.sealed_seeds import seed_commitment

    return seed_commitment(seed) == commitment
