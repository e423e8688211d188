"""What the analysts' privacy costs in accuracy: the synopsis's error for several epsilons of the analysts.

    python benchmarks/price_of_analyst_privacy.py adult7.csv adult7-domain.json [--many 1000000]

The game as printed, from the uniform distribution. Three workloads on one table: all three-way marginals, dense
predicates, and many more of them. The whole data budget (epsilon 1, delta 1/n^2) goes to the game. The uniform
guess stands beside it, and independent Gaussian noise on every query: an expectation, which protects analysts from
one another, too, where their shares are fixed.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from equipoise.errors import BudgetExhausted
from equipoise.queries.predicates import Among
from equipoise.queries.schema import Schema
from equipoise.queries.statements import Statement
from equipoise.queries.workload_compiler import compile_workload
from equipoise_lab.options import Guarantees
from equipoise_lab.simulation.measure import mean_errors
from equipoise_lab.simulation.request import Request
from equipoise_lab.simulation.simulate import Report, simulate
from equipoise_lab.simulation.task import Task, deal, read_statements
from equipoise_server.datasets.source import source_at

EPSILONS = (math.inf, 8.0, 4.0, 2.0, 1.0)
ANALYSTS = 10
COLUMNS = (
    *("workload", "eps_A", "synopsis max", "mean", "uniform max", "mean", "Gaussian max", "mean"),
    *("play", "s", "seconds"),
)


def main() -> None:
    """Prints a table in Markdown, a row as soon as it is known."""
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    arguments.add_argument("table", type=Path)
    arguments.add_argument("schema", type=Path)
    arguments.add_argument("--predicates", type=int, default=20_000)
    arguments.add_argument("--many", type=int, default=1_000_000)
    arguments.add_argument("--repeat", type=int, default=2)
    options = arguments.parse_args()
    schema = Schema.from_json(options.schema.read_text(encoding="utf-8"))
    data = source_at(options.table).counts(schema)
    print("| " + " | ".join(COLUMNS) + " |")
    print("|" + "---|" * len(COLUMNS))
    for name, statements in workloads(schema, options.predicates, options.many):
        dealt = deal(statements, ANALYSTS)
        task = Task.filling_shares(schema, data, {who: compile_workload(own, schema) for who, own in dealt.items()})
        for epsilon in EPSILONS:
            print("| " + " | ".join(row(name, epsilon, task, options.repeat)) + " |", flush=True)


def workloads(schema: Schema, predicates: int, many: int) -> Iterator[tuple[str, tuple[Statement, ...]]]:
    """Names and statements, made one after another."""
    yield "3-way marginals", read_statements("marginals:3", schema)
    yield f"{predicates:,} predicates", dense_predicates(schema, predicates)
    yield f"{many:,} predicates", dense_predicates(schema, many)


def dense_predicates(schema: Schema, count: int) -> tuple[Statement, ...]:
    """Conjunctions of conditions on two attributes, about half of either attribute's categories each."""
    choose = np.random.default_rng(1)
    made: list[Statement] = []
    for _ in range(count):
        first, second = choose.choice(len(schema.attributes), 2, replace=False)
        conditions = []
        for attribute in (schema.attributes[int(first)], schema.attributes[int(second)]):
            kept = choose.permutation(attribute.size)[: (attribute.size + 1) // 2]
            conditions.append(Among(attribute.name, tuple(attribute.categories[i] for i in sorted(kept.tolist()))))
        made.append(conditions[0] & conditions[1])
    return tuple(made)


def row(name: str, epsilon: float, task: Task, repeat: int) -> list[str]:
    """One row of the table."""
    request = Request(
        mechanism="equilibrium",
        guarantees=Guarantees(eps_analyst=epsilon),
        repeat=repeat,
        budget_split="game=1",
        prior="none",
    )
    try:
        return [
            name,
            f"{epsilon:g}",
            *figures(simulate(task, request, lambda run: lambda phase, done, total: None)),
        ]
    except BudgetExhausted as error:
        return [name, f"{epsilon:g}", error.message, *[""] * (len(COLUMNS) - 3)]


def figures(report: Report) -> list[str]:
    """The numbers of a row."""
    synopsis = mean_errors([run.synopsis for run in report.runs])
    game = report.game
    if synopsis is None or game is None or report.gaussian is None:
        return ["none", *[""] * (len(COLUMNS) - 3)]
    play = "sampled" if '"play":"sampled"' in report.plan.parameters else "mixed"
    seconds = sum(run.seconds for run in report.runs) / len(report.runs)
    return [
        *(f"{synopsis.max:.4f}", f"{synopsis.mean:.5f}"),
        *(f"{report.uniform.max:.4f}", f"{report.uniform.mean:.5f}"),
        *(f"{report.gaussian.max:.4f}", f"{report.gaussian.mean:.5f}"),
        *(play, f"{game.mishandled:g}", f"{seconds:.1f}"),
    ]


if __name__ == "__main__":
    main()
