"""Measures sessions of `low_sensitivity` from a prior and from candidates, on tables that are made up.

    python benchmarks/statistic_sessions.py [--records 50000] [--statements 300] [--seeds 3]

768 possible records: two ordered attributes of 16 and 8 bins, and two of 3 and 2 categories. Statistics are
quantiles, capped sums, variances, counts of combinations, and conjunctions of three conditions. Five analysts,
epsilon 1 on either side. Candidates are 40 samples of 5,000 records, of one family that has the true distribution
in it where the table is tilted. Errors are of all statements; means over the seeds.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from equipoise.model.accounts import Budget
from equipoise.model.results import AnswerMethod, Answers
from equipoise.model.rounds import Share
from equipoise.queries.fixed_point import ONE
from equipoise.queries.predicates import AllOf, Among
from equipoise.queries.schema import Attribute, Schema
from equipoise.queries.schema_checks import bin_labels
from equipoise.queries.session_workload import SessionWorkload
from equipoise.queries.statements import CappedSum, CountDistinct, Quantile, Statement, Statistic, Variance
from equipoise.queries.workload_compiler import CompiledStatement, compile_single, compile_statistic
from equipoise_server.datasets.dense_counts import DenseCounts
from equipoise_server.mechanisms.interface import PublicParameters
from equipoise_server.mechanisms.low_sensitivity.database_question import database_of, statistic_of
from equipoise_server.mechanisms.low_sensitivity.mechanism import LowSensitivity
from equipoise_server.mechanisms.online.interface import play

X, Y = tuple(float(edge) for edge in range(17)), tuple(float(edge) for edge in range(9))
SCHEMA = Schema(
    (
        Attribute("x", bin_labels(X), X),
        Attribute("y", bin_labels(Y), Y),
        Attribute("c", ("a", "b", "c")),
        Attribute("d", ("no", "yes")),
    )
)
ANALYSTS, CANDIDATES, SAMPLED, WINDOW = 5, 40, 5_000, 0.05
COLUMNS = ("table", "prior", "expected", "mean", "largest", "afresh", "largest half-width", "outside")
AFRESH = (AnswerMethod.GAUSSIAN, AnswerMethod.LAPLACE, AnswerMethod.FITTED)


def main() -> None:
    """Print a table in Markdown, a row as soon as it is known."""
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    arguments.add_argument("--records", type=int, default=50_000)
    arguments.add_argument("--statements", type=int, default=300)
    arguments.add_argument("--seeds", type=int, default=3)
    options = arguments.parse_args()
    print("| " + " | ".join(COLUMNS) + " |\n|" + "---|" * len(COLUMNS), flush=True)
    for name, chances in tables():
        counts = np.random.default_rng(options.records).multinomial(options.records, chances).astype(np.int64)
        for prior in ("own", "none"):
            print(f"| {name} | {prior} | " + " | ".join(measured(counts, prior, options)) + " |", flush=True)


def tables() -> Iterator[tuple[str, NDArray[np.float64]]]:
    """Yield each table's name and the chances of its records, float64[|X|]."""
    yield "tilted, pairs depend", tilted(0.6)
    records = np.indices(SCHEMA.sizes).reshape(len(SCHEMA.sizes), -1)
    odd = tilted(0.6) * np.where((records.sum(axis=0) % 2) == 0, 1.5, 0.5)
    yield "tilted, with a parity of four attributes", odd / odd.sum()
    yield "uniform", np.full(SCHEMA.universe_size, 1 / SCHEMA.universe_size)


def tilted(by: float) -> NDArray[np.float64]:
    """Records are the rarer the larger their bins, and the two ordered attributes go together."""
    x, y, c, d = np.indices(SCHEMA.sizes).reshape(len(SCHEMA.sizes), -1)
    exponents = -by * (x / 4 + y / 2 + c / 2 + d / 2) + by * ((x > 7) & (y > 3))
    weights: NDArray[np.float64] = np.exp(exponents)
    return np.asarray(weights / weights.sum())


def measured(counts: NDArray[np.int64], prior: str, options: argparse.Namespace) -> list[str]:
    """Return the numbers of sessions from a prior, or from candidates."""
    asked, setting = statements(options.statements), setting_of(counts, prior, options.statements)
    mechanism, data = LowSensitivity(), DenseCounts(counts, SCHEMA.sizes)
    plan = mechanism.plan(setting)
    database = database_of(SCHEMA.sizes, data)
    truths = np.array([statistic_of(each).values(database)[0] / ONE for each in asked])
    workloads = {
        share.analyst: SessionWorkload(
            np.arange(share.statements, dtype=np.int64) * ANALYSTS + place, tuple(asked[place::ANALYSTS])
        )
        for place, share in enumerate(setting.shares)
    }
    rows = []
    for seed in range(options.seeds):
        told = play(mechanism, setting, plan, data, workloads, seed.to_bytes(32), lambda *_: None)
        answers = Answers.join(told.answers[share.analyst] for share in setting.shares)
        truth = np.concatenate([truths[place::ANALYSTS] for place in range(ANALYSTS)])
        errors = np.abs(answers.values / ONE - truth)
        widths = (answers.highs - answers.lows)[answers.certified] / ONE / 2
        afresh = np.isin(answers.methods, AFRESH).sum()
        rows.append((errors.mean(), errors.max(), afresh, widths.max(initial=0), answers.misses(truth).sum()))
    mean, largest, afresh, widest, outside = np.mean(rows, axis=0)
    return [
        f"{plan.expected_error:.4f}",
        f"{mean:.5f}",
        f"{largest:.3f}",
        f"{afresh:.1f}",
        f"{widest:.2f}",
        f"{outside:.1f}",
    ]


def setting_of(counts: NDArray[np.int64], prior: str, length: int) -> PublicParameters:
    """Return the public parameters of a session."""
    records, each = int(counts.sum()), length // ANALYSTS
    options: dict[str, object] = {"length": each, "sensitivity": f"{20}/{records}", "prior": prior}
    if prior == "none":
        options["candidates"] = [
            sampled(tilted(by), number) for number, by in enumerate(np.linspace(0, 1.2, CANDIDATES))
        ]
    return PublicParameters(
        records=records,
        universe_size=SCHEMA.universe_size,
        shares=tuple(Share(f"a{place}", each, each) for place in range(ANALYSTS)),
        unit="query",
        data_budget=Budget(1.0, 1 / records**2),
        analyst_budget=Budget(1.0, 1e-6),
        beta=0.05,
        options=options,
        attributes=SCHEMA.sizes,
        ordered=SCHEMA.ordered,
    )


def sampled(chances: NDArray[np.float64], number: int) -> dict[str, list[int]]:
    """Return a candidate as options hold it."""
    drawn = np.random.default_rng(number).multinomial(SAMPLED, chances)
    cells = np.flatnonzero(drawn)
    return {"cells": cells.tolist(), "counts": drawn[cells].tolist()}


def statements(count: int) -> list[CompiledStatement]:
    """Statistics of every kind, drawn with a fixed seed."""
    choose = np.random.default_rng(5)

    def some(attribute: Attribute) -> Among:
        kept = np.sort(choose.permutation(attribute.size)[: (attribute.size + 1) // 2])
        return Among(attribute.name, tuple(attribute.categories[place] for place in kept.tolist()))

    def drawn(kind: int) -> Statement:
        name, edges = (("x", X), ("y", Y))[int(choose.integers(2))]
        if kind == 0:
            return Quantile(name, round(float(choose.uniform(0.1, 0.9)), 2), WINDOW)
        if kind == 1:
            return CappedSum(name, float(choose.integers(2, len(edges))))
        if kind == 2:
            return Variance(name)
        if kind == 3:
            return CountDistinct((name, "c"))
        return AllOf(tuple(some(SCHEMA.attributes[place]) for place in choose.choice(4, 3, replace=False)))

    return [
        compile_statistic(each, SCHEMA, "statement")
        if isinstance(each, Statistic)
        else compile_single(each, SCHEMA)
        for each in (drawn(number % 5) for number in range(count))
    ]


if __name__ == "__main__":
    main()
