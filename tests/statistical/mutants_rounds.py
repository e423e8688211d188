"""Faults of streams and of charges, and the checks that catch them. See `test_mutants`."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from unittest.mock import patch

import pytest
from harness.rounds_bench import Bench
from statistical.mutants_game import run
from statistical.mutants_repair import DATA, A, B

from equipoise.model.accounts import Budget
from equipoise.model.rounds import Share
from equipoise_server.computation.round import Job
from equipoise_server.ledger import charges
from equipoise_server.mechanisms.interface import PublicParameters
from equipoise_server.mechanisms.repair import statement_repair
from equipoise_server.randomness.stream import KeyedStream
from equipoise_server.rounds.runner import Runner


def every_stream_is_derived_once(_: Path) -> bool:
    """In a run of either unit no two purposes, and no two analysts, read one stream."""
    derive = KeyedStream.derive
    for unit in ("query", "analyst"):
        seen = list[tuple[str, ...]]()

        def spy(seed: bytes, *labels: str, seen: list[tuple[str, ...]] = seen) -> KeyedStream:
            assert seed == bytes(32)
            seen.append(labels)
            return derive(seed, *labels)

        options = {"rounds": 3, "batch": 1, "density": 1.5, "query_rate": 0.5, "data_rate": 0.5, "threshold": 0}
        setting = PublicParameters(
            4, 3, (Share("a", 2, 2), Share("b", 2, 2)), unit, Budget(4, 0.1), Budget(4, 0.1), 0.1, options
        )
        with patch.object(KeyedStream, "derive", spy):
            run(setting, DATA, {"a": A, "b": B})
        if len(seen) != len(set(seen)) or len(seen) < 6:
            return False
    return True


def reused_stream(patches: pytest.MonkeyPatch) -> None:
    """Repair forgets whose stream it reads."""

    class Forgetful:
        @staticmethod
        def derive(seed: bytes, *labels: str) -> KeyedStream:
            return KeyedStream.derive(seed, labels[0])

    patches.setattr(statement_repair, "KeyedStream", Forgetful)


def charges_come_before_data(place: Path) -> bool:
    """When a worker is started, the budget that it may spend is durably reserved."""
    bench, committed = Bench(place, f"sqlite:///{place / 'equipoise.db'}"), list[float]()

    def start(_: Runner, job: Job) -> None:
        assert job.source.exists()
        committed.append(bench.charged()["data/shop"][1])

    try:
        with patch.object(Runner, "start", start):
            bench.rounds.lifecycle.run(bench.sealed(), "run")
    finally:
        bench.stop()
    return len(committed) == 1 and committed[0] > 0


def charged_after_the_answer(patches: pytest.MonkeyPatch) -> None:
    """What sealing should reserve is reserved when it is spent."""
    reserve, spend, later = charges.reserve, charges.spend, list[Callable[[], None]]()
    patches.setattr(charges, "reserve", lambda *arguments: later.append(partial(reserve, *arguments)))

    def reserve_and_spend(*arguments: object) -> None:
        later.pop()()
        spend(*arguments)  # type: ignore[arg-type]

    patches.setattr(charges, "spend", reserve_and_spend)
