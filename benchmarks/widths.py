"""All pairs of attributes of ever wider tables: errors, seconds and memory, and a synthetic table of the widest.

    python benchmarks/widths.py [--widths 7,13,25,50,100] [--records 1000000] [--synthetic 100000]

Tables are made up: ten categories an attribute, each attribute depending on the one before it and on one that is
hidden. One analyst asks for every pair; epsilon 1, delta 1/n^2, one record replaced, one seed. `auto` chooses. The
synthetic table is that of `standing`, whose measurement answers every pair, too; it is written as Parquet.
"""

from __future__ import annotations

import argparse
import itertools
import resource
import time

import numpy as np
from battery import dealt
from regret import setting_of
from wide import measured

from equipoise.queries.schema import Attribute, Schema
from equipoise.queries.statements import Marginal
from equipoise_lab.simulation.task import seed_bytes
from equipoise_server.datasets.coded_counts import CodedCounts
from equipoise_server.mechanisms.planner import compare
from equipoise_server.mechanisms.registry import MECHANISMS

CATEGORIES = 10
COLUMNS = (
    "attributes",
    "cells",
    "mechanism",
    "planned in s",
    "expected",
    "run in s",
    "largest",
    "mean",
    "hold",
    "MiB",
)


def main() -> None:
    """Print a table in Markdown, a row as soon as it is known."""
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    arguments.add_argument("--widths", default="7,13,25,50,100")
    arguments.add_argument("--records", type=int, default=1_000_000)
    arguments.add_argument("--plan-only", action="store_true", help="plan, and run nothing")
    options = arguments.parse_args()
    print("| " + " | ".join(COLUMNS) + " |\n|" + "---|" * len(COLUMNS))
    for width in map(int, options.widths.split(",")):
        schema = Schema(tuple(Attribute(f"a{axis}", tuple("0123456789")) for axis in range(width)))
        data = made(options.records, schema)
        pairs = [Marginal(names) for names in itertools.combinations(schema.names, 2)]
        task = dealt(schema, data, pairs, 1)
        setting = setting_of(task)
        begun = time.perf_counter()
        plan = compare(setting, MECHANISMS).plan
        planned = time.perf_counter() - begun
        row = [f"{width}", f"{setting.queries:,}", plan.mechanism, f"{planned:.1f}", f"{plan.expected_error:.3g}"]
        if not options.plan_only:
            begun = time.perf_counter()
            outcome = MECHANISMS[plan.mechanism].run(
                setting, plan, data, task.workloads, seed_bytes(1), lambda *_: None
            )
            took = time.perf_counter() - begun
            truths = {who: data.count(workload) / data.records for who, workload in task.workloads.items()}
            row += [f"{took:.0f}", *(f"{each:.3g}" for each in measured(outcome, truths))]
        row.append(f"{resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f}")
        print("| " + " | ".join(row) + " |", flush=True)


def made(records: int, schema: Schema) -> CodedCounts:
    """Make a table: each attribute is near the one before it, near a hidden one, or anything."""
    choose = np.random.default_rng(len(schema.sizes))
    hidden = choose.integers(0, CATEGORIES, records)
    codes = np.empty((len(schema.sizes), records), dtype=np.uint8)
    before = hidden
    for axis in range(len(schema.sizes)):
        kind = choose.integers(0, 4, records)
        near = np.select([kind == 0, kind == 1], [before, hidden], choose.integers(0, CATEGORIES, records))
        before = np.minimum(near + choose.geometric(0.6, records) - 1, CATEGORIES - 1)
        codes[axis] = before
    return CodedCounts.of(schema.sizes, codes, np.ones(records, dtype=np.int64))


if __name__ == "__main__":
    main()
