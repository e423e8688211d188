"""All pairs of attributes of ever wider tables: errors, seconds and memory, and a synthetic table of the widest.

    python benchmarks/widths.py [--widths 7,13,25,50,100] [--records 1000000] [--plan-only]
        [--synthetic 100000] [--written synthetic.parquet]

Tables are made up: ten categories an attribute, each attribute depending on the one before it and on one that is
hidden. One analyst asks for every pair; epsilon 1, delta 1/n^2, one record replaced, one seed. `auto` chooses.
Seconds are those of this process on all processors, which other programs change little. `--synthetic` makes a
synthetic table of each width, too: that of `standing`, from a measurement of every pair with the same budget; it is
written as Parquet, where wanted, and its largest and mean error over all pairs are printed.
"""

from __future__ import annotations

import argparse
import resource
import time
from pathlib import Path

import numpy as np
from battery import all_pairs, dealt
from regret import setting_of
from wide import measured

from equipoise.model.accounts import Budget
from equipoise.model.synopsis import SynopsisPart
from equipoise.queries.schema import Attribute, Schema
from equipoise.synopsis import write_synopsis
from equipoise_lab.simulation.task import Task, seed_bytes
from equipoise_server.datasets.coded_counts import CodedCounts
from equipoise_server.mechanisms.planner import compare
from equipoise_server.mechanisms.registry import MECHANISMS
from equipoise_server.mechanisms.residuals.measurement import measure
from equipoise_server.mechanisms.standing.answering import synthetic_table
from equipoise_server.mechanisms.standing.family import planned_noise

CATEGORIES = 10
COLUMNS = (
    "attributes",
    "cells",
    "mechanism",
    "planned in processor s",
    "expected",
    "run in processor s",
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
    arguments.add_argument("--synthetic", type=int, default=0, help="records of a synthetic table; 0: none")
    arguments.add_argument("--written", type=Path, help="the file of the synthetic table, of the last width")
    options = arguments.parse_args()
    print("| " + " | ".join(COLUMNS) + " |\n|" + "---|" * len(COLUMNS))
    synthetic = []
    for width in map(int, options.widths.split(",")):
        schema = Schema(tuple(Attribute(f"a{axis}", tuple("0123456789")) for axis in range(width)))
        data = made(options.records, schema)
        task = dealt(schema, data, all_pairs(schema), 1)
        setting = setting_of(task)
        begun = time.process_time()
        plan = compare(setting, MECHANISMS).plan
        planned = time.process_time() - begun
        row = [f"{width}", f"{setting.queries:,}", plan.mechanism, f"{planned:.1f}", f"{plan.expected_error:.3g}"]
        if not options.plan_only:
            begun = time.process_time()
            outcome = MECHANISMS[plan.mechanism].run(
                setting, plan, data, task.workloads, seed_bytes(1), lambda *_: None
            )
            took = time.process_time() - begun
            truths = {who: data.count(workload) / data.records for who, workload in task.workloads.items()}
            row += [f"{took:.0f}", *(f"{each:.3g}" for each in measured(outcome, truths))]
        row.append(f"{resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f}")
        print("| " + " | ".join(row) + " |", flush=True)
        if options.synthetic:
            synthetic.append(made_synthetic(schema, data, task, options.synthetic, options.written))
    print("\n" + "\n".join(synthetic))


def made_synthetic(schema: Schema, data: CodedCounts, task: Task, records: int, written: Path | None) -> str:
    """Measure all pairs, fit records to them, and return a line that says how near these are."""
    begun = time.process_time()
    noise = planned_noise({}, schema, Budget(1.0, 1 / data.records**2))
    table = synthetic_table(measure(data, noise, seed_bytes(2), "measurement"), records)
    if written is not None:
        write_synopsis([SynopsisPart(table, records)], schema, written, lambda *_: None)
    took = time.process_time() - begun
    (workload,) = task.workloads.values()
    errors = np.abs(table.counts(workload) / len(table) - data.count(workload) / data.records)
    return (
        f"{len(schema.sizes)} attributes: {len(table):,} synthetic records in {took:.0f} processor seconds; "
        f"of all pairs they err by up to {errors.max():.3g}, in the mean by {errors.mean():.3g}"
    )


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
