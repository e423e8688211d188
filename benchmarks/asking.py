"""Seconds and processor seconds an answer of `online` through a real server on loopback, on an SQLite store.

    python benchmarks/asking.py [--universe-bits 16] [--statements 10000]

One analyst asks the stream of `benchmarks/sessions.py` twice, each time in a session of its own: one statement at a
time, then with 64 on their way. Server, worker and analyst share the machine's cores; the time of an answer is from
one answer to the next, as its analyst sees it. Every certified answer is compared with the truth. Reference: the
truth itself, by one NumPy pass over the universe for each statement, without noise, store or network.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray
from sessions import CATEGORIES, RECORDS, cells_of, stream, table

from equipoise.clients.analyst import Client
from equipoise.clients.operator import Operator
from equipoise.clients.statement_answer import StatementAnswer
from equipoise.model.accounts import Budget, Danger
from equipoise.model.results import AnswerMethod
from equipoise.model.rounds import SessionTerms, Share, Terms
from equipoise.queries.schema import Attribute, Schema
from equipoise.queries.statements import Statement
from equipoise_lab.demo.process import free_address, serving
from equipoise_server.admin.new_state import create_state

WINDOWS = (1, 64)
TICKS = os.sysconf("SC_CLK_TCK")
WAYS = {AnswerMethod.HYPOTHESIS: "hypothesis", AnswerMethod.UNCERTIFIED: "uncertified"}
Result = TypeVar("Result")


def main() -> None:
    """Prints for each way of asking what answers took, and whether those that are certified are right."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--universe-bits", type=int, default=16)
    parser.add_argument("--statements", type=int, default=10_000)
    parser.add_argument("--options", default="", help="of the mechanism, a JSON object; as planned without")
    options = parser.parse_args()
    attributes = options.universe_bits // 2
    schema = Schema(tuple(Attribute(f"a{i}", tuple(map(str, range(CATEGORIES)))) for i in range(attributes)))
    statements, histogram = stream(schema, options.statements), table(attributes)
    columns = dict(zip(schema.names, np.unravel_index(np.arange(histogram.size), schema.sizes), strict=True))
    data = histogram / RECORDS
    truths, reference = timed(lambda: (truth(statement, columns, data) for statement in statements))
    print(f"load average {os.getloadavg()[0]:.2f}; |X| = {schema.universe_size:,}, {RECORDS:,} records, epsilon 1")
    print(f"reference: {spread(reference)}")
    cells = sum(len(each) for each in truths)
    with tempfile.TemporaryDirectory() as scratch:
        state = Path(scratch) / "state"
        create_state(state, listen=free_address(), release_grid_seconds=1)
        write(state / "data" / "table.csv", schema, histogram)
        with serving(state, Path(scratch) / "log"), Operator.from_profile(state / "profiles/operator") as operator:
            operator.register_dataset(
                "table", "table.csv", schema, Budget(10.0, 1e-3), Budget(10.0, 1e-3), accepted=(Danger.DELTA,)
            )
            profile = operator.add_analyst("analyst", Path(scratch) / "analyst")
            terms = Terms(
                dataset="table",
                shares=(Share("analyst", len(statements), cells),),
                data_budget=Budget(1.0, 1e-6),
                analyst_budget=None,
                mechanism="online",
                options=options.options,
                session=SessionTerms(length=len(statements)),
            )
            for window in WINDOWS:
                session = operator.open_session(terms).round
                with Client.from_profile(profile) as client:
                    ask(client, session.id, statements, truths, window, float(np.median(reference)))
                operator.close_session(session.id)


def ask(
    client: Client,
    session_id: str,
    statements: Sequence[Statement],
    truths: Sequence[NDArray[np.float64]],
    window: int,
    reference: float,
) -> None:
    """Asks everything, and prints what it took. The first answer, before which the worker starts, is not timed."""
    asking = client.ask(session_id, statements, window=window, accept_unprotected=True)
    answers = [next(asking)]
    before = spent()
    others, seconds = timed(lambda: asking)
    used = {name: 1000 * (each - before[name]) / len(others) for name, each in spent().items()}
    answers += others
    if len(answers) != len(statements):
        raise SystemExit(f"{len(answers):,} of {len(statements):,} statements were answered")
    load = os.getloadavg()[0]
    print(f"window {window}: {len(others) / sum(seconds):,.0f} answers a second, load average {load:.2f}")
    print("  processor ms an answer: " + ", ".join(f"{name} {each:.2f}" for name, each in used.items()))
    ways = [way(each) for each in others]
    for name, count in Counter(ways).most_common():
        print(
            f"  {count:,} {name}: {spread([each for each, its in zip(seconds, ways, strict=True) if its == name])}"
        )
    print(f"  median over the reference's: {float(np.median(seconds)) / reference:.1f}")
    errors = [abs(each.results.values - its).max() for each, its in zip(answers, truths, strict=True)]
    beyond = sum(each.results.answers.misses(its).any() for each, its in zip(answers, truths, strict=True))
    widths = [(each.results.highs - each.results.lows).max() / 2 for each in answers]
    certified = [each for each in zip(errors, widths, strict=True) if np.isfinite(each[1])]
    largest, widest = np.max(certified, axis=0)
    print(f"  {len(certified):,} certified, {beyond} truths outside; error {largest:.4f}, half-width {widest:.4f}")


def way(answer: StatementAnswer) -> str:
    """How a statement was answered."""
    return WAYS.get(answer.method, "afresh")


def timed(produce: Callable[[], Iterable[Result]]) -> tuple[list[Result], list[float]]:
    """What is produced one after the other, and how many seconds each took."""
    produced, seconds = [], []
    start = time.perf_counter()
    for each in produce():
        end = time.perf_counter()
        produced.append(each)
        seconds.append(end - start)
        start = time.perf_counter()
    return produced, seconds


def spread(seconds: Sequence[float]) -> str:
    """Median and 99th percentile in words."""
    median, most = 1000 * np.quantile(seconds, [0.5, 0.99])
    return f"median {median:.2f} ms, 99 % {most:.2f} ms"


def truth(
    statement: Statement, columns: Mapping[str, NDArray[np.intp]], data: NDArray[np.float64]
) -> NDArray[np.float64]:
    """What each cell of the statement holds, float64[cells]."""
    cells, count = cells_of(statement, columns)
    held: NDArray[np.float64] = np.bincount(cells, weights=data, minlength=count + 1)[1:].astype(np.float64)
    return held


def spent() -> dict[str, float]:
    """Processor seconds so far: of the server, of its worker processes that live, and of this process."""
    (server,) = children(os.getpid())
    workers = sum(processor_seconds(each) for each in children(server))
    return {"server": processor_seconds(server), "worker": workers, "analyst": time.process_time()}


def children(process: int) -> list[int]:
    """The processes that a process has started, as Linux lists them by its threads."""
    return [
        int(child)
        for listed in Path(f"/proc/{process}/task").glob("*/children")
        for child in listed.read_text().split()
    ]


def processor_seconds(process: int) -> float:
    """In user and system mode; the fields after the process's name in parentheses are counted from the third."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def write(path: Path, schema: Schema, histogram: NDArray[np.int64]) -> None:
    """The table as CSV, a line for each record."""
    cells = np.repeat(np.arange(histogram.size), histogram)
    records = np.stack(np.unravel_index(cells, schema.sizes), axis=1)
    np.savetxt(path, records, "%d", ",", header=",".join(schema.names), comments="")


if __name__ == "__main__":
    main()
