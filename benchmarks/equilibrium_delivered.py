"""Measures the errors of `equilibrium` with a prior, and compares them with the printed game and independent noise.

    python benchmarks/equilibrium_delivered.py adult7.csv adult7-domain.json [--repeat 5] [--only TEXT] [--printed]

Ten analysts, unit = query, both epsilons 1, delta 1/n^2. Tables of two attributes determine the answers of some
workloads: conjunctions of two attributes. They do not determine those of the others: conjunctions, half-spaces and
parities over all attributes. Statements cannot express half-spaces and parities. These are computed from the
synopsis, as any analyst can do.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from battery import dealt, predicates
from numpy.typing import NDArray

from equipoise.errors import BudgetExhausted
from equipoise.model.results import Answers
from equipoise.queries.fixed_point import ONE
from equipoise.queries.schema import Schema
from equipoise_lab.options import Guarantees
from equipoise_lab.simulation.baselines import gaussian_deviation, gaussian_errors
from equipoise_lab.simulation.task import Task, seed_bytes
from equipoise_server.datasets.counts import Counts
from equipoise_server.datasets.source import source_at
from equipoise_server.mechanisms.equilibrium.mechanism import Equilibrium
from equipoise_server.mechanisms.interface import PublicParameters

COLUMNS = (
    *("workload", "prior", "largest", "mean", "expected", "with interval", "widest half-width"),
    *("noise: largest", "mean", "seconds"),
)
BEYOND = 500  # half-spaces, and parities
OWN = "own"


def main() -> None:
    """Print a table in Markdown, a row as soon as it is known."""
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    arguments.add_argument("table", type=Path)
    arguments.add_argument("schema", type=Path)
    arguments.add_argument("--repeat", type=int, default=5)
    arguments.add_argument("--many", type=int, default=1_000_000)
    arguments.add_argument("--only", default="", help="workloads whose names hold this text")
    arguments.add_argument("--printed", action="store_true", help="the game as printed, too")
    options = arguments.parse_args()
    schema = Schema.from_json(options.schema.read_text(encoding="utf-8"))
    data = source_at(options.table).counts(schema)
    print("| " + " | ".join(COLUMNS) + " |\n|" + "---|" * len(COLUMNS))
    attributes = len(schema.sizes)
    for count, ways in ((20_000, 2), (20_000, attributes), (options.many, 2)):
        name = f"{count:,} conjunctions of {ways}"
        if options.only not in name:
            continue
        task = dealt(schema, data, predicates(schema, count, ways), 10)
        for prior in (OWN, "none") if options.printed else (OWN,):
            print("| " + " | ".join((name, prior, *asked(task, prior, options.repeat))) + " |", flush=True)
    unstated = {"half-spaces": half_spaces, "parities": parities}
    asked_about = {name: queries for name, queries in unstated.items() if options.only in name}
    if asked_about:
        task = dealt(schema, data, predicates(schema, 1_000, 2), 10)
        held = [synopsis_of(task, seed) for seed in range(options.repeat)]
    for name, queries in asked_about.items():
        numbers = unasked(queries(schema), histogram_of(data, schema), held)
        print(f"| {BEYOND} {name} | {OWN} | " + " | ".join((*numbers, *[""] * 6)) + " |", flush=True)


def asked(task: Task, prior: str, repeat: int) -> list[str]:
    """The numbers of a workload of statements: means over the runs."""
    setting = setting_of(task, prior)
    try:
        plan = Equilibrium().plan(setting)
    except BudgetExhausted as error:
        return [error.message, *[""] * 7]
    truth = {who: task.data.count(own) / task.records for who, own in task.workloads.items()}
    rows, begun = [], time.perf_counter()
    for seed in range(repeat):
        outcome = Equilibrium().run(setting, plan, task.data, task.workloads, seed_bytes(seed), lambda *_: None)
        answers = Answers.join(outcome.answers[who] for who in truth)
        errors = np.abs(answers.values / ONE - np.concatenate(list(truth.values())))
        widths = (answers.highs - answers.lows)[answers.certified] / ONE / 2
        rows.append((errors.max(), errors.mean(), answers.certified.mean(), widths.max(initial=0)))
    took = (time.perf_counter() - begun) / repeat
    largest, mean, certified, widest = np.mean(rows, axis=0)
    sensitivity = sum(share.l1_sensitivity for share in setting.shares)
    noise = gaussian_errors(gaussian_deviation(sensitivity, setting.records, setting.data_budget), setting.queries)
    return [
        *(f"{largest:.4f}", f"{mean:.5f}", f"{plan.expected_error:.5f}", f"{certified:.1%}", f"{widest:.4f}"),
        *(f"{noise.max:.4f}", f"{noise.mean:.5f}", f"{took:.1f}"),
    ]


def unasked(
    queries: Iterator[NDArray[np.bool_]], truth: NDArray[np.float64], held: list[NDArray[np.float64]]
) -> list[str]:
    """The largest and the mean error of synopses, float64[|X|] each, on queries that are no statements."""
    errors = np.array([[abs((own - truth)[query].sum()) for own in held] for query in queries])
    return [f"{errors.max(axis=0).mean():.4f}", f"{errors.mean():.5f}"]


def setting_of(task: Task, prior: str) -> PublicParameters:
    """Return the round's public parameters."""
    return Guarantees().parameters(
        task.records, task.schema.universe_size, task.schema.sizes, task.shares, "query", {"prior": prior}
    )


def synopsis_of(task: Task, seed: int) -> NDArray[np.float64]:
    """Return one round's synopsis as a distribution, float64[|X|]."""
    setting = setting_of(task, OWN)
    plan = Equilibrium().plan(setting)
    run = Equilibrium().run(setting, plan, task.data, task.workloads, seed_bytes(seed), lambda *_: None)
    return np.bincount(run.synopsis.cells, minlength=setting.universe_size) / len(run.synopsis)


def histogram_of(data: Counts, schema: Schema) -> NDArray[np.float64]:
    """Return the table as a distribution, float64[|X|]."""
    ((_, table),) = data.marginals([tuple(range(len(schema.sizes)))])
    return np.asarray(table.reshape(-1) / data.records)


def half_spaces(schema: Schema) -> Iterator[NDArray[np.bool_]]:
    """Yield half-spaces: sums of a random weight for each category, cut between the 20th and the 80th percent."""
    choose = np.random.default_rng(11)
    for _ in range(BEYOND):
        sums = _summed(schema, [choose.normal(size=size) for size in schema.sizes])
        yield sums > np.quantile(sums, choose.uniform(0.2, 0.8))


def parities(schema: Schema) -> Iterator[NDArray[np.bool_]]:
    """Yield parities over all attributes, each cut into two random halves."""
    choose = np.random.default_rng(12)
    for _ in range(BEYOND):
        halves = [(choose.permutation(size) < size // 2).astype(np.float64) for size in schema.sizes]
        yield _summed(schema, halves) % 2 == 1


def _summed(schema: Schema, weights: list[NDArray[np.float64]]) -> NDArray[np.float64]:
    sums = np.zeros(())
    for own in weights:
        sums = np.add.outer(sums, own)
    return sums.reshape(schema.universe_size)


if __name__ == "__main__":
    main()
