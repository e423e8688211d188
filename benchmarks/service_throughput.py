"""Answers streamed and workloads submitted a second, by 32 analysts on one real server on loopback, on each store.

    PYTHONPATH=tests python benchmarks/service_throughput.py

The PostgreSQL is one that the tests start for themselves (`tests/harness/stores.py`), in memory where there is
room, so that its commits wait for no disk; SQLite's do. Without PostgreSQL, SQLite only is measured. Store,
server, worker and analysts share the machine's cores. Streams are read whole and decoded. Submits are timed one
after another for each analyst, all analysts at once: on an idle server, then while a round runs in its worker, in
turns, so that whatever else the machine does falls on both.
"""

from __future__ import annotations

import argparse
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import TypeVar

import numpy as np
from harness.stores import KINDS, cluster
from numpy.typing import NDArray

from equipoise.clients.analyst import Client
from equipoise.clients.operator import Operator
from equipoise.model.accounts import Budget, Danger
from equipoise.model.rounds import Share, Terms
from equipoise.queries.schema import Attribute, Schema
from equipoise.queries.statements import Marginal
from equipoise_lab.demo.process import free_address, serving
from equipoise_server.admin.new_state import create_state

SCHEMA = Schema(tuple(Attribute(f"a{i}", ("0", "1")) for i in range(17)))
TABLE_ATTRIBUTES = 16  # of a wide table: 65,536 cells
RECORDS = 20_000
IDLE_PASSES = 4  # so that the 99th percentile has some 25 submits of each run beyond it
Result = TypeVar("Result")
SUBMITTED = tuple(Marginal((f"a{i}", f"a{i + 1}")) for i in range(10))  # what the timed submits send


def main() -> None:
    """Prints answers and submits a second, and the submits' latencies, idle and beside a run."""
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    arguments.add_argument("--analysts", type=int, default=32)
    arguments.add_argument("--tables", type=int, default=2, help="wide tables that each analyst asks for")
    arguments.add_argument("--processes", type=int, default=2, help="in which the analysts live")
    arguments.add_argument("--runs", type=int, default=5, help="beside which submits are timed")
    arguments.add_argument("--submits", type=int, default=20, help="of each analyst, in a pass")
    options = arguments.parse_args()
    for kind in KINDS:
        print(f"{kind}:")
        with tempfile.TemporaryDirectory() as scratch, store(kind) as url:
            serve_and_measure(Path(scratch), url, options)


@contextmanager
def store(kind: str) -> Iterator[str]:
    """The URL of an empty store while the context lasts."""
    if kind == "sqlite":
        yield "sqlite:///equipoise.db"
        return
    with cluster() as postgresql:
        yield postgresql.create()


def serve_and_measure(scratch: Path, url: str, options: argparse.Namespace) -> None:
    """A new deployment on a store, with its server and its analysts."""
    state = scratch / "state"
    create_state(state, listen=free_address(), store=url, release_grid_seconds=1)
    records = np.random.default_rng(0).integers(0, 2, (RECORDS, len(SCHEMA.attributes)))
    names = ",".join(attribute.name for attribute in SCHEMA.attributes)
    np.savetxt(state / "data" / "bits.csv", records, "%d", ",", header=names, comments="")
    with serving(state, scratch / "log"), Operator.from_profile(state / "profiles" / "operator") as operator:
        analysts = [f"analyst{i}" for i in range(options.analysts)]
        cap = Budget(40.0, 1e-3)
        operator.register_dataset("bits", "bits.csv", SCHEMA, cap, cap, accepted=(Danger.EPSILON,))
        profiles = [operator.add_analyst(name, scratch / name) for name in analysts]
        with ProcessPoolExecutor(options.processes, get_context("spawn")) as processes:
            measure(operator, analysts, profiles, processes, options)


def measure(
    operator: Operator,
    analysts: Sequence[str],
    profiles: Sequence[Path],
    processes: ProcessPoolExecutor,
    options: argparse.Namespace,
) -> None:
    """A round that takes submits before and while others run, one after the other; the last of them is read."""
    parts = [profiles[i :: options.processes] for i in range(options.processes)]

    def everybody(act: Callable[[Path], list[float]]) -> list[float]:
        return [second for found in processes.map(partial(at_once, act), parts) for second in found]

    small = operator.open(terms(analysts, len(SUBMITTED), 4 * len(SUBMITTED))).round.id
    often = partial(submit_often, small, options.submits)
    all_idle, all_beside = [], []
    for _ in range(options.runs):
        big = operator.open(terms(analysts, options.tables, options.tables << TABLE_ATTRIBUTES)).round.id
        everybody(partial(submit_wide, big, options.tables))
        operator.seal(big)
        idle, seconds = timed(lambda: [second for _ in range(IDLE_PASSES) for second in everybody(often)])
        print(f"submits, idle:          {len(idle) / seconds:9,.0f} a second; {latencies(idle)}")
        runner = threading.Thread(target=operator.run_to_completion, args=(big, lambda detail: None))
        runner.start()
        beside: list[float] = []
        while runner.is_alive():
            beside += everybody(often)
        runner.join()
        print(f"submits, beside a run:             {latencies(beside)}")
        all_idle.append(idle)
        all_beside.append(beside)
    each = np.sort([high(beside) / high(idle) for idle, beside in zip(all_idle, all_beside, strict=True)])
    whole = high(np.concatenate(all_beside)) / high(np.concatenate(all_idle))
    print(f"ratio of 99th percentiles: {whole:6.2f} of all submits; {each[0]:.2f} to {each[-1]:.2f} by run")

    operator.release(big)
    with Client.from_profile(profiles[0]) as client:
        client.wait(big)
    answers, seconds = timed(lambda: everybody(partial(read, big)))
    print(f"answers, streamed:      {sum(answers) / seconds:9,.0f} a second, {sum(answers):,.0f} in all")


def terms(analysts: Sequence[str], statements: int, queries: int) -> Terms:
    """Of a round in which every analyst has the same share."""
    return Terms(
        dataset="bits",
        shares=tuple(Share(name, statements, queries) for name in analysts),
        data_budget=Budget(8.0, 1e-6),
        analyst_budget=Budget(8.0, 1e-6),
        unit="query",
        beta=0.05,
        mechanism="equilibrium",
        accepted=(Danger.NOISE, Danger.PROMISE),
    )


def at_once(act: Callable[[Path], list[float]], profiles: Sequence[Path]) -> list[float]:
    """What all these analysts measure, each in a thread of its own."""
    with ThreadPoolExecutor(len(profiles)) as threads:
        return [second for found in threads.map(act, profiles) for second in found]


def submit_wide(round_id: str, tables: int, profile: Path) -> list[float]:
    """Submits the wide tables once."""
    chosen = [Marginal(tuple(f"a{i + table}" for i in range(TABLE_ATTRIBUTES))) for table in range(tables)]
    with Client.from_profile(profile) as client:
        client.submit(round_id, chosen)
    return []


def submit_often(round_id: str, times: int, profile: Path) -> list[float]:
    """Submits the same small workload again and again; the seconds of each."""
    with Client.from_profile(profile) as client:
        client.identity()  # the handshake is not part of a submit
        return [timed(lambda: client.submit(round_id, SUBMITTED))[1] for _ in range(times)]


def read(round_id: str, profile: Path) -> list[float]:
    """How many answers the analyst's stream holds."""
    with Client.from_profile(profile) as client:
        return [float(sum(len(columns.answers) for columns in client.stream(round_id)))]


def latencies(seconds: Sequence[float]) -> str:
    """Median and 99th percentile."""
    median = float(np.median(seconds))
    return f"{len(seconds):,} submits, median {median * 1e3:.1f} ms, 99th percentile {high(seconds) * 1e3:.1f} ms"


def high(seconds: Sequence[float] | NDArray[np.float64]) -> float:
    """The 99th percentile."""
    return float(np.quantile(seconds, 0.99))


def timed(act: Callable[[], Result]) -> tuple[Result, float]:
    """What `act` gives, and the seconds it took."""
    start = time.perf_counter()
    result = act()
    return result, time.perf_counter() - start


if __name__ == "__main__":
    main()
