"""Seconds an answer of `online`, against a straightforward NumPy mechanism that looks at all of X for each answer.

    python benchmarks/sessions.py [--universe-bits 16] [--statements 10000]

Both answer the same stream of conjunctions and one- to three-way marginals on the same table with the same
threshold, noise scales and number of updates; they draw from the same laws, not the same numbers. The reference
holds the category of every record of the universe in columns, its hypothesis as floats, and moves it by one
multiplicative-weights step an update. Wall-clock seconds of each answer. Quote the ratio of the medians.
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from equipoise.model.accounts import Budget
from equipoise.model.results import AnswerMethod, Answers
from equipoise.model.rounds import Share
from equipoise.queries.fixed_point import ONE
from equipoise.queries.predicates import AllOf, Among
from equipoise.queries.schema import Attribute, Schema
from equipoise.queries.statements import Marginal, Statement
from equipoise.queries.workload_compiler import CompiledStatement, compile_single
from equipoise_server.datasets.dense_counts import DenseCounts
from equipoise_server.mechanisms.answers import answers_within
from equipoise_server.mechanisms.interface import PublicParameters
from equipoise_server.mechanisms.online.interface import HYPOTHESIS
from equipoise_server.mechanisms.online.mechanism import Online
from equipoise_server.mechanisms.online.parameters import OnlineParameters
from equipoise_server.mechanisms.repair.statement_repair import SCORE_BITS, UNCERTIFIED

CATEGORIES = 4
RECORDS = 200_000
MIXTURE = 12  # kinds of records, each with its own habits: attributes depend on one another


def main() -> None:
    """Prints the plan, then for each mechanism the seconds of answers by how they were made."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--universe-bits", type=int, default=16)
    parser.add_argument("--statements", type=int, default=10_000)
    parser.add_argument(
        "--threshold", type=float, help="force it, as a fraction of the records, so that updates last"
    )
    options = parser.parse_args()
    attributes = options.universe_bits // 2
    schema = Schema(tuple(Attribute(f"a{i}", tuple(map(str, range(CATEGORIES)))) for i in range(attributes)))
    statements = stream(schema, options.statements)
    histogram = table(attributes)
    compiled: list[CompiledStatement] = [compile_single(statement, schema) for statement in statements]
    setting = PublicParameters(
        records=RECORDS,
        universe_size=schema.universe_size,
        shares=(Share("analyst", len(compiled), sum(each.query_count for each in compiled)),),
        unit="query",
        data_budget=Budget(1.0, 1 / RECORDS**2),
        analyst_budget=Budget(math.inf, 0.0),
        beta=0.05,
        options={"length": len(compiled)},
    )
    plan = Online().plan(setting)
    parameters = OnlineParameters.from_json(plan.parameters)
    print(f"|X| = {schema.universe_size:,}, {len(compiled):,} statements, {RECORDS:,} records, epsilon 1")
    print(f"{parameters.updates} updates; certified answers are promised to be within {plan.max_half_width:.4f}")
    session = Online().start(setting, plan, DenseCounts(histogram), bytes(32))
    ours = timed(session.answer, compiled)
    report("equipoise", ours)
    naive = Naive(schema, histogram, parameters)
    columns = timed(lambda slot, _: naive.answer(slot, statements[slot]), compiled)
    report("reference", columns)
    quick = [float(np.median([spent for method, spent in each if method != "updated"])) for each in (ours, columns)]
    print(f"ratio of the medians without an update: {quick[1] / quick[0]:.1f}")


def timed(
    answer: Callable[[int, CompiledStatement], Answers], asked: list[CompiledStatement]
) -> list[tuple[str, float]]:
    """How each statement was answered, and in how many seconds."""
    spent = []
    for slot, statement in enumerate(asked):
        start = time.perf_counter()
        answers = answer(slot, statement)
        seconds = time.perf_counter() - start
        method = AnswerMethod(answers.methods[0])
        way = {HYPOTHESIS: "tested", UNCERTIFIED: "uncertified"}.get(method, "updated")
        spent.append((way, seconds))
    return spent


def report(name: str, spent: list[tuple[str, float]]) -> None:
    """A line for each way of answering."""
    for way in ("tested", "updated", "uncertified"):
        milliseconds = [1000 * seconds for each, seconds in spent if each == way]
        if milliseconds:
            median, most = np.quantile(milliseconds, [0.5, 0.99])
            print(f"{name}: {len(milliseconds):,} {way}: median {median:.3f} ms, 99 % {most:.3f} ms")


def stream(schema: Schema, count: int) -> list[Statement]:
    """Two of three a conjunction over two attributes, the others marginals of up to three."""
    choose = np.random.default_rng(1)
    statements: list[Statement] = []
    for place in range(count):
        if place % 3 == 0:
            some = choose.choice(len(schema.names), choose.integers(1, 4), replace=False)
            statements.append(Marginal(tuple(schema.names[axis] for axis in some)))
        else:
            parts = []
            for axis in choose.choice(len(schema.names), 2, replace=False):
                inside = choose.choice(CATEGORIES, 2, replace=False)
                parts.append(Among(schema.names[axis], tuple(str(value) for value in inside)))
            statements.append(AllOf(tuple(parts)))
    return statements


def table(attributes: int) -> NDArray[np.int64]:
    """Records of a mixture, int64[|X|]."""
    choose = np.random.default_rng(2)
    kinds = choose.choice(MIXTURE, RECORDS, p=choose.dirichlet(np.ones(MIXTURE)))
    habits = choose.dirichlet(np.ones(CATEGORIES), (MIXTURE, attributes))
    columns = [
        (choose.random(RECORDS)[:, None] > habits[kinds, axis].cumsum(axis=1)[:, :-1]).sum(axis=1)
        for axis in range(attributes)
    ]
    cells = np.ravel_multi_index(columns, (CATEGORIES,) * attributes)
    return np.bincount(cells, minlength=CATEGORIES**attributes).astype(np.int64, copy=False)


class Naive:
    """The reference: plain NumPy floats, no intervals and no proofs."""

    def __init__(self, schema: Schema, histogram: NDArray[np.int64], parameters: OnlineParameters) -> None:
        self._columns = dict(
            zip(schema.names, np.unravel_index(np.arange(histogram.size), schema.sizes), strict=True)
        )
        self._data = histogram / RECORDS
        self._weights = np.full(histogram.size, 1 / histogram.size)
        self._left, self._choose = parameters.updates, np.random.default_rng(3)
        self._threshold = parameters.threshold / (RECORDS << SCORE_BITS)
        self._scale = 1 / (float(parameters.test_epsilon) * RECORDS)
        self._deviation = parameters.noise.law(1).quantile(0.16) / RECORDS
        self._noisy = self._fresh()

    def answer(self, slot: int, statement: Statement) -> Answers:
        """One statement, looked up at every record of the universe."""
        del slot
        cells, count = cells_of(statement, self._columns)
        held = np.bincount(cells, weights=self._weights, minlength=count + 1)[1:]
        if not self._left:
            return answered(held, UNCERTIFIED)
        truth = np.bincount(cells, weights=self._data, minlength=count + 1)[1:]
        if np.abs(truth - held).max() + self._choose.laplace(0, 4 * self._scale) < self._noisy:
            return answered(held, HYPOTHESIS)
        noisy = truth + self._choose.normal(0, self._deviation * math.sqrt(1 + (count > 1)), count)
        moves = np.concatenate([[0.0], (noisy - held) / 2])
        self._weights *= np.exp(moves[cells])
        self._weights /= self._weights.sum()
        self._left, self._noisy = self._left - 1, self._fresh()
        return answered(noisy, 3)

    def _fresh(self) -> float:
        return self._threshold + float(self._choose.laplace(0, 2 * self._scale))


def cells_of(statement: Statement, columns: Mapping[str, NDArray[np.intp]]) -> tuple[NDArray[np.int64], int]:
    """Which cell of the statement each record is in, from 1 on, and how many there are; 0: none.

    `columns`: the category of every record, by attribute.
    """
    cells = np.ones(len(next(iter(columns.values()))), dtype=np.int64)
    if isinstance(statement, Marginal):
        inside = np.zeros(len(cells), dtype=np.int64)
        for name in statement.attributes:
            inside = inside * CATEGORIES + columns[name]
        return inside + 1, CATEGORIES ** len(statement.attributes)
    assert isinstance(statement, AllOf)
    for part in statement.conditions:
        assert isinstance(part, Among)
        cells &= np.isin(columns[part.attribute], [int(value) for value in part.categories])
    return cells, 1


def answered(fractions: NDArray[Any], method: int) -> Answers:
    """Rounded to the grid, without intervals that say anything."""
    values = np.rint(fractions * 2.0**40).astype(np.int64)
    return answers_within(values, AnswerMethod(method), ONE)


if __name__ == "__main__":
    main()
