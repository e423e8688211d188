"""Rounds on a table whose possible records cannot be listed: errors, seconds and memory, beside the aims.

    python benchmarks/wide.py adult13.csv adult13-domain.json [--repeat 5] [--mechanism auto]

One analyst asks for all pairs, or for 64 triples, of Adult's 13 attributes (about 2^39 possible records; epsilon 1,
delta 1/n^2, one record replaced). The aims are those of issue 19; the best published tools reach a largest error of
0.0049 and a mean of 0.00053 on the pairs, and 0.0050 and 0.00011 on the triples.
"""

from __future__ import annotations

import argparse
import itertools
import resource
import time
from pathlib import Path

import numpy as np
from battery import dealt
from regret import setting_of

from equipoise.queries.schema import Schema
from equipoise.queries.statements import Marginal
from equipoise_lab.simulation.task import seed_bytes
from equipoise_server.datasets.source import source_at
from equipoise_server.mechanisms.planner import compare
from equipoise_server.mechanisms.registry import MECHANISMS

COLUMNS = ("round", "mechanism", "planned in s", "run in s", "largest", "aim", "mean", "aim", "intervals that hold")
TRIPLES = 64
AIMS = {"all pairs": (0.0055, 0.00055), "64 triples": (0.0062, 0.00011)}  # largest error, mean error


def main() -> None:
    """Print a table in Markdown, a row for each round, and the largest memory."""
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    arguments.add_argument("table", type=Path)
    arguments.add_argument("schema", type=Path)
    arguments.add_argument("--repeat", type=int, default=5)
    arguments.add_argument("--mechanism", default="auto", choices=["auto", *MECHANISMS])
    options = arguments.parse_args()
    schema = Schema.from_json(options.schema.read_text(encoding="utf-8"))
    begun = time.perf_counter()
    data = source_at(options.table).counts(schema)
    print(f"{data.records:,} records, read in {time.perf_counter() - begun:.1f} s\n")
    print("| " + " | ".join(COLUMNS) + " |\n|" + "---|" * len(COLUMNS))
    triples = list(itertools.combinations(schema.names, 3))
    drawn = np.random.RandomState(0).choice(len(triples), TRIPLES, replace=False)
    rounds = {
        "all pairs": list(itertools.combinations(schema.names, 2)),
        "64 triples": [triples[place] for place in drawn.tolist()],
    }
    for name, tables in rounds.items():
        task = dealt(schema, data, [Marginal(names) for names in tables], 1)
        setting = setting_of(task)
        begun = time.perf_counter()
        asked = MECHANISMS if options.mechanism == "auto" else {options.mechanism: MECHANISMS[options.mechanism]}
        plan = compare(setting, asked).plan
        planned = time.perf_counter() - begun
        ((who, workload),) = task.workloads.items()
        truth = data.count(workload) / data.records
        largest, means, held, begun = [], [], [], time.perf_counter()
        for seed in range(options.repeat):
            run = MECHANISMS[plan.mechanism].run
            answers = run(setting, plan, data, task.workloads, seed_bytes(seed), lambda *_: None).answers[who]
            errors = np.abs(answers.values * 2.0**-40 - truth)
            largest.append(float(errors.max()))
            means.append(float(errors.mean()))
            held.append(1 - float(answers.misses(truth).mean()))
        took = (time.perf_counter() - begun) / options.repeat
        aims = AIMS[name]
        numbers = (planned, took, np.mean(largest), aims[0], np.mean(means), aims[1], np.mean(held))
        print("| " + " | ".join((name, plan.mechanism, *(f"{each:.3g}" for each in numbers))) + " |", flush=True)
    print(f"\n{resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MiB at most")


if __name__ == "__main__":
    main()
