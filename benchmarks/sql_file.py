"""Seconds of one SQL file of many statements, each put together in a way of its own, through a real server.

    python benchmarks/sql_file.py [--statements 100000] [--mechanism gaussian] [--translate-only] [--rows 1000000]

No two statements are alike when names and literals are left out. The file is translated, submitted to a round of a
server that is started here, with its limits as they are, answered, and read into one Polars frame a statement.
Of each step it prints the seconds that passed, this process's processor seconds, and the most memory that it and
the server's processes held until then. `--rows` times only how so many answers become a table of Arrow and one of
Polars.
"""

from __future__ import annotations

import argparse
import contextlib
import math
import os
import random
import re
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import numpy as np

from equipoise.clients.analyst import Client
from equipoise.clients.operator import Operator
from equipoise.model.accounts import Budget, Danger
from equipoise.model.results import AnswerMethod, Answers
from equipoise.model.rounds import Share, Terms
from equipoise.queries.schema import Attribute, Schema
from equipoise.queries.schema_checks import bin_labels
from equipoise.queries.statements import Marginal
from equipoise.queries.workload_compiler import compile_workload
from equipoise.questions.questions import Questions
from equipoise.questions.sql_extra import questions_of
from equipoise.results import Labels, Results
from equipoise_lab.demo.process import free_address, serving
from equipoise_server.admin.new_state import create_state

RECORDS = 20_000
LABELS = {
    "carrier": ("AA", "B6", "DL", "EV", "FL", "MQ", "UA", "US", "VX", "WN"),
    "origin": ("EWR", "JFK", "LGA"),
    "month": tuple(map(str, range(1, 13))),
    "weekday": ("mon", "tue", "wed", "thu", "fri", "sat", "sun"),
}
EDGES = {"dep_delay": (-30, 0, 15, 60, 120, 300), "distance": (0, 500, 1000, 2000, 5000)}
SCHEMA = Schema(
    (
        *(Attribute(name, labels) for name, labels in LABELS.items()),
        *(Attribute(name, bin_labels(edges), edges) for name, edges in EDGES.items()),
    )
)
Result = TypeVar("Result")
PEAKS: dict[str, int] = {}  # in KiB, by kind of process


def main() -> None:
    """Prints what each step took."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--statements", type=int, default=100_000)
    parser.add_argument("--mechanism", default="gaussian")
    parser.add_argument("--translate-only", action="store_true")
    parser.add_argument("--rows", type=int, default=0)
    options = parser.parse_args()
    threading.Thread(target=watch_memory, daemon=True).start()
    if options.rows:
        to_frames(options.rows)
        return
    text = file_of(options.statements)
    print(f"{options.statements:,} statements, {len(text) / 2**20:.1f} MiB; load average {os.getloadavg()[0]:.1f}")
    questions = timed("translated", lambda: questions_of(text, SCHEMA, "flights"))
    statements = timed("statements to ask", lambda: questions.statements)
    print(f"  {len(statements):,} statements to ask")
    if not options.translate_only:
        through_a_server(questions, options.mechanism)


def to_frames(rows: int) -> None:
    """Makes tables of so many answers at least, to marginals of all labels and bins."""
    asked = Marginal(SCHEMA.names)
    cells = math.prod(SCHEMA.sizes)
    times = -(-rows // cells)
    values = np.arange(times * cells, dtype=np.int64)
    methods = np.full(len(values), AnswerMethod.GAUSSIAN, np.uint8)
    results = Results("r", Answers(values, methods, values, values, values), Labels(SCHEMA, (asked,) * times))
    print(f"{len(results):,} answers; load average {os.getloadavg()[0]:.1f}")
    timed("to Arrow", results.to_arrow)
    timed("to Polars", results.to_polars)


def through_a_server(questions: Questions, mechanism: str) -> None:
    """Submits, waits for and reads the answers."""
    workload = compile_workload(questions.statements, SCHEMA)
    print(f"  {workload.query_count:,} answers")
    with tempfile.TemporaryDirectory() as scratch:
        state = Path(scratch) / "state"
        create_state(state, listen=free_address(), release_grid_seconds=1)
        (state / "data" / "flights.csv").write_text(table())
        with serving(state, Path(scratch) / "log"), Operator.from_profile(state / "profiles/operator") as operator:
            operator.register_dataset(
                "flights", "flights.csv", SCHEMA, Budget(10.0, 1e-3), Budget(10.0, 1e-3), accepted=(Danger.DELTA,)
            )
            profile = operator.add_analyst("analyst", Path(scratch) / "analyst")
            terms = Terms(
                dataset="flights",
                shares=(
                    Share(
                        "analyst",
                        workload.statement_count,
                        workload.query_count,
                        workload.l1_sensitivity,
                        workload.support,
                    ),
                ),
                data_budget=Budget(1.0, 1e-6),
                analyst_budget=Budget(1.0, 1e-6),
                mechanism=mechanism,
            )
            round_id = operator.open(terms).round.id
            with Client.from_profile(profile) as client:
                timed("submitted", lambda: client.submit(round_id, questions))
                operator.seal(round_id)
                timed("answered", lambda: operator.run_to_completion(round_id, lambda _: None))
                operator.release(round_id)
                timed("waited for", lambda: client.wait(round_id))
                frames = timed("answers read", lambda: client.frames(round_id, questions))
                polars = timed("into Polars", lambda: [each.to_polars() for each in frames])
                print(f"  {len(polars):,} frames with {sum(map(len, polars)):,} rows")


def timed(what: str, work: Callable[[], Result]) -> Result:
    """Does some work, and prints how long it took, and the processor seconds of this process."""
    start, spent = time.perf_counter(), time.process_time()
    result = work()
    took, spent = time.perf_counter() - start, time.process_time() - spent
    peaks = ", ".join(f"{name} {peak / 2**20:.2f}" for name, peak in sorted(PEAKS.items()))
    print(f"  {what}: {took:.1f} s, {spent:.1f} processor seconds; so far at most GiB: {peaks}", flush=True)
    return result


def watch_memory() -> None:
    """Keeps the most KiB that this process, and each kind of process below it, has held."""
    while True:
        below = [os.getpid()]
        for pid in below:
            with contextlib.suppress(OSError):  # it may have ended
                for task in Path(f"/proc/{pid}/task").iterdir():
                    below += map(int, (task / "children").read_text().split())
                name = "client" if pid == os.getpid() else "server" if "serve" in words_of(pid) else "workers"
                peak = re.findall(r"VmHWM:\s+(\d+)", Path(f"/proc/{pid}/status").read_text())
                PEAKS[name] = max(PEAKS.get(name, 0), *map(int, peak), 0)
        time.sleep(1)


def words_of(pid: int) -> list[str]:
    """The words of a process's command line."""
    return Path(f"/proc/{pid}/cmdline").read_text().split("\0")


def table() -> str:
    """A random table as CSV."""
    draw = random.Random(1)
    rows = [",".join(SCHEMA.names)]
    for _ in range(RECORDS):
        labels = [draw.choice(each) for each in LABELS.values()]
        numbers = [str(draw.randrange(each[0], each[-1])) for each in EDGES.values()]
        rows.append(",".join(labels + numbers))
    return "\n".join(rows) + "\n"


def file_of(count: int) -> str:
    """SQL of so many statements, no two of which are alike without their names and literals."""
    draw = random.Random(7)
    seen: set[str] = set()
    kept: list[str] = []
    while len(kept) < count:
        statement = select(draw)
        shape = re.sub(r"'[^']*'|[0-9.]+|\b(?:" + "|".join(SCHEMA.names) + r")\b", "?", statement)
        if shape not in seen:
            seen.add(shape)
            kept.append(statement)
    return ";\n".join(kept)


def select(draw: random.Random) -> str:
    """One question as analysts put them."""
    keys = draw.sample([*LABELS], draw.choice((0, 1, 1, 2)))
    numbers = [f"{number(draw)} AS n{place}" for place in range(draw.choice((1, 1, 2, 3)))]
    text = f"SELECT {', '.join(keys + numbers)} FROM flights"
    if draw.random() < 0.9:
        text += " WHERE " + " AND ".join(condition(draw) for _ in range(draw.randint(1, 5)))
    if keys:
        text += f" GROUP BY {', '.join(keys)}"
        text += draw.choice(("", "", f" HAVING COUNT(*) {draw.choice(('>', '>='))} 100"))
        text += draw.choice(("", " ORDER BY n0", f" ORDER BY n0 DESC LIMIT {draw.randint(1, 9)}"))
    return text


def number(draw: random.Random) -> str:
    """Something that is counted or added up."""
    return draw.choice(
        (
            "COUNT(*)",
            "COUNT(*)",
            "SUM(dep_delay)",
            "AVG(distance)",
            f"COUNT(*) FILTER (WHERE {comparison(draw)})",
            f"SUM(CASE WHEN {comparison(draw)} THEN 1 ELSE 0 END)",
            f"AVG(CASE WHEN {comparison(draw)} THEN 1 ELSE 0 END)",
            f"ROUND(100.0 * COUNT_IF({comparison(draw)}) / COUNT(*), 1)",
        )
    )


def condition(draw: random.Random) -> str:
    """A comparison, or some that OR joins, or one that is negated."""
    match draw.randrange(6):
        case 0:
            return "(" + " OR ".join(comparison(draw) for _ in range(draw.randint(2, 3))) + ")"
        case 1:
            return f"NOT ({comparison(draw)})"
        case _:
            return comparison(draw)


def comparison(draw: random.Random) -> str:
    """A condition on one attribute."""
    name = draw.choice(SCHEMA.names)
    if name in EDGES:
        low, high = sorted(draw.sample(EDGES[name], 2))
        return draw.choice(
            (f"{name} >= {low}", f"{name} < {high}", f"{name} >= {low} AND {name} < {high}", f"{low} <= {name}")
        )
    some = draw.sample(LABELS[name], draw.randint(1, min(3, len(LABELS[name]))))
    listed = ", ".join(f"'{each}'" for each in some)
    return draw.choice(
        (f"{name} = '{some[0]}'", f"{name} <> '{some[0]}'", f"{name} {draw.choice(('', 'NOT '))}IN ({listed})")
    )


if __name__ == "__main__":
    main()
