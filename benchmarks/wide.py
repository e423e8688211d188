"""Rounds on a table whose possible records cannot be listed: errors, seconds and memory, beside the aims.

    python benchmarks/wide.py adult13.csv adult13-domain.json [--repeat 5] [--mechanism auto] [--only TEXT]

One analyst asks for all pairs, or for 64 triples, of Adult's 13 attributes (about 2^39 possible records; epsilon 1,
delta 1/n^2, one record replaced). The best published tools reach a largest error of 0.0049 and a mean of 0.00053 on
the pairs, and 0.0050 and 0.00011 on the triples. Then 1,000 analysts ask for five triples each, popular ones more
often, and all that one of them asks is hidden from the others at epsilon 1; their mean is to be at most 1.3 times
that of one analyst who asks for all these triples.
"""

from __future__ import annotations

import argparse
import itertools
import math
import resource
import time
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
from battery import TRIPLES, all_pairs, dealt, some_triples
from numpy.typing import NDArray
from regret import setting_of

from equipoise.queries.schema import Schema
from equipoise.queries.statements import Marginal
from equipoise.queries.workload_compiler import compile_workload
from equipoise_lab.simulation.demand import draw_demand
from equipoise_lab.simulation.task import Task, seed_bytes
from equipoise_server.datasets.counts import Counts
from equipoise_server.datasets.source import source_at
from equipoise_server.mechanisms.interface import Outcome
from equipoise_server.mechanisms.planner import compare
from equipoise_server.mechanisms.registry import MECHANISMS

COLUMNS = ("round", "mechanism", "planned in s", "run in s", "largest", "aim", "mean", "aim", "intervals that hold")
ANALYSTS, EACH = 1000, 5
AIMS = {"all pairs": (0.0055, 0.00055), "64 triples": (0.0062, 0.00011)}  # largest error, mean error


def main() -> None:
    """Print a table in Markdown, a row for each round, and the largest memory."""
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    arguments.add_argument("table", type=Path)
    arguments.add_argument("schema", type=Path)
    arguments.add_argument("--repeat", type=int, default=5)
    arguments.add_argument("--mechanism", default="auto", choices=["auto", *MECHANISMS])
    arguments.add_argument("--only", default="", help="rounds whose names hold this text")
    options = arguments.parse_args()
    schema = Schema.from_json(options.schema.read_text(encoding="utf-8"))
    begun = time.perf_counter()
    data = source_at(options.table).counts(schema)
    print(f"{data.records:,} records, read in {time.perf_counter() - begun:.1f} s\n")
    print("| " + " | ".join(COLUMNS) + " |\n|" + "---|" * len(COLUMNS))
    for name, task, unit in rounds(schema, data):
        if options.only not in name:
            continue
        setting = replace(setting_of(task), unit=unit)
        begun = time.perf_counter()
        asked = MECHANISMS if options.mechanism == "auto" else {options.mechanism: MECHANISMS[options.mechanism]}
        plan = compare(setting, asked).plan
        planned = time.perf_counter() - begun
        truths = {who: data.count(workload) / data.records for who, workload in task.workloads.items()}
        figures, begun = [], time.perf_counter()
        for seed in range(options.repeat):
            outcome = MECHANISMS[plan.mechanism].run(
                setting, plan, data, task.workloads, seed_bytes(seed), lambda *_: None
            )
            figures.append(measured(outcome, truths))
        took = (time.perf_counter() - begun) / options.repeat
        largest, mean, held = np.mean(figures, axis=0)
        aims = AIMS.get(name, (math.nan, math.nan))
        numbers = (planned, took, largest, aims[0], mean, aims[1], held)
        print("| " + " | ".join((name, plan.mechanism, *(f"{each:.3g}" for each in numbers))) + " |", flush=True)
    print(f"\n{resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MiB at most")


def rounds(schema: Schema, data: Counts) -> Iterator[tuple[str, Task, str]]:
    """Yield the name of each round, who asks for what, and what of an analyst is protected."""
    triples = list(itertools.combinations(schema.names, 3))
    yield "all pairs", dealt(schema, data, all_pairs(schema), 1), "query"
    yield f"{TRIPLES} triples", dealt(schema, data, some_triples(schema), 1), "query"
    demand = list(draw_demand(len(triples), ANALYSTS, EACH, seed_bytes(1)))
    together = sorted(set(itertools.chain.from_iterable(demand)))
    every = dealt(schema, data, [Marginal(triples[place]) for place in together], 1)
    yield f"all {len(together)} triples of {ANALYSTS:,} analysts, by one", every, "query"
    tables = {f"a{who}": [Marginal(triples[place]) for place in own] for who, own in enumerate(demand)}
    workloads = {who: compile_workload(own, schema) for who, own in tables.items()}
    yield f"{ANALYSTS:,} analysts, {EACH} triples each", Task.filling_shares(schema, data, workloads), "analyst"


def measured(outcome: Outcome, truths: Mapping[str, NDArray[np.float64]]) -> tuple[float, float, float]:
    """Return the largest and the mean error of all answers, and the part of the intervals that hold."""
    largest, total, missed, count = 0.0, 0.0, 0, 0
    for who, truth in truths.items():
        answers = outcome.answers[who]
        errors = np.abs(answers.values * 2.0**-40 - truth)
        largest, total = max(largest, float(errors.max())), total + float(errors.sum())
        missed, count = missed + int(answers.misses(truth).sum()), count + len(truth)
    return largest, total / count, 1 - missed / count


if __name__ == "__main__":
    main()
