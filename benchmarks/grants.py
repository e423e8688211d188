"""Measures grants: intervals beside a planned round, a wanted relative error, and many answers in one grant.

    python benchmarks/grants.py adult13.csv adult13-domain.json [--answers 100000] [--seeds 20]

The four tables are of the flights, each asked with a quarter of the grant; their round is planned for just these.
"""

from __future__ import annotations

import argparse
import itertools
import statistics
import tempfile
import time
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from equipoise.model.accounts import Budget
from equipoise.model.grants import ANALYSTS
from equipoise.model.rounds import Share
from equipoise.queries.grant_price import AskedTable, GrantPrice
from equipoise.queries.predicates import attribute
from equipoise.queries.schema import Schema
from equipoise.queries.statements import Marginal, Statement
from equipoise.queries.workload_compiler import compile_single, compile_workload
from equipoise_lab.demo.table import SCHEMA, unpack_table
from equipoise_server.datasets.counts import Counts
from equipoise_server.datasets.source import source_at
from equipoise_server.mechanisms.grant.mechanism import GrantMechanism, GrantSession
from equipoise_server.mechanisms.interface import PublicParameters
from equipoise_server.mechanisms.registry import MECHANISMS

GRANTS = GrantMechanism()
FOUR = [Marginal(("carrier", "month")), Marginal(("carrier", "origin")), Marginal(("month", "dep_delay"))]
FOUR += [Marginal(("origin", "distance"))]
TEN = [("education",), ("occupation",), ("age",), ("education", "sex"), ("occupation", "sex"), ("age", "sex")]
TEN += [("marital-status", "sex"), ("education", "income>50K"), ("age", "income>50K"), ("workclass", "sex")]
RELATIVE = 0.05
HUNDRED = Marginal(("month", "dep_delay"))  # 96 cells
BUDGET = Budget(0.5, 1e-6)


def setting_of(data: Counts, schema: Schema, statements: int, queries: int, budget: Budget) -> PublicParameters:
    """One analyst's share of a table."""
    return PublicParameters(
        records=data.records,
        universe_size=data.universe_size,
        shares=(Share("ann", statements, queries),),
        unit="query",
        data_budget=budget,
        analyst_budget=ANALYSTS,
        beta=0.05,
        options={},
        attributes=schema.sizes,
    )


def started(data: Counts, schema: Schema, seed: int, budget: Budget = BUDGET) -> GrantSession:
    """A grant of which nothing is spent."""
    setting = setting_of(data, schema, 1 << 20, 1 << 30, budget)
    setting = PublicParameters(**{**vars(setting), "options": {"length": 1 << 20}})
    return GRANTS.start(setting, GRANTS.plan(setting), data, seed.to_bytes(32))


def asked(
    session: GrantSession, schema: Schema, statement: Statement, rho: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Values and half-widths, as fractions of the records."""
    told = session.answer(0, compile_single(statement, schema), repr(statement).encode(), rho)
    return told.values / 2.0**40, (told.highs - told.lows) / 2.0**41


def four_tables(data: Counts, seeds: int) -> None:
    """Print the intervals of four tables of the flights, asked of a grant and in a round planned for just these."""
    compiled = compile_workload(FOUR, SCHEMA)
    budget, ratios = Budget(0.5, 1e-6), []
    setting = setting_of(data, SCHEMA, len(FOUR), compiled.query_count, budget)
    mechanism = MECHANISMS["gaussian"]
    plan = mechanism.plan(setting)
    for seed in range(seeds):
        outcome = mechanism.run(setting, plan, data, {"ann": compiled}, seed.to_bytes(32), lambda *_: None)
        planned = outcome.answers["ann"]
        wide = np.median((planned.highs - planned.lows) / 2.0**41)
        session = started(data, SCHEMA, seed, budget)
        rho = session._account.filter.total // len(FOUR)
        widths = [np.median(asked(session, SCHEMA, each, rho)[1]) for each in FOUR]
        ratios.append([width / wide for width in widths])
    means = ", ".join(f"{each:.3f}" for each in np.mean(ratios, axis=0))
    print(
        f"four tables, interval beside the planned round: {np.mean(ratios):.3f} in the mean, table by table {means}"
    )


def relative(data: Counts, schema: Schema, seeds: int) -> None:
    """Print how often `--relative 5%` is reached in ten marginals, and what it costs in two orders.

    The fixed split pays for each marginal by itself what it needs.
    """
    for name, order in (
        ("as listed", TEN),
        ("the largest first", sorted(TEN, key=lambda axes: -cells_of(schema, axes))),
    ):
        relative_in(data, schema, seeds, name, order)


def cells_of(schema: Schema, axes: tuple[str, ...]) -> int:
    """The cells of a marginal."""
    return compile_single(Marginal(axes), schema).query_count


def relative_in(data: Counts, schema: Schema, seeds: int, name: str, order: list[tuple[str, ...]]) -> None:
    """Print the figures of one order."""
    reached, fixed, spent = [], 0, []
    for seed in range(seeds):
        session = started(data, schema, seed, Budget(8.0, 1e-6))
        fixed = 0
        for axes in order:
            statement = Marginal(axes)
            compiled = compile_single(statement, schema)
            rho = GrantPrice(relative=RELATIVE).units(statement, AskedTable(schema, data.records))
            fixed += rho
            values, _ = asked(session, schema, statement, rho)
            truth = data.count(compiled) / data.records
            typical = truth >= 1 / compiled.query_count
            reached.append(np.abs(values - truth)[typical] <= RELATIVE * truth[typical])
        spent.append(session._account.filter.spent)
    share = np.mean(np.concatenate(reached))
    print(
        f"--relative 5% on ten marginals, {name}: reached in {share:.1%} of typical cells, "
        f"cost beside a fixed split {statistics.mean(spent) / fixed:.3f}"
    )


def many(data: Counts, answers: int) -> None:
    """Print the time of an answer at the beginning and at the end of a grant with many answers."""
    session, times = started(data, SCHEMA, 0, Budget(8.0, 1e-6)), []
    carriers, months = SCHEMA.attribute("carrier").categories, SCHEMA.attribute("month").categories
    sets = itertools.chain.from_iterable(itertools.combinations(months, count) for count in range(1, 7))
    said = itertools.cycle(itertools.product(list(sets), carriers, ("EWR", "JFK")))
    statements = (
        attribute("month").isin(some) & (attribute("carrier") == who) & (attribute("origin") == where)
        for some, who, where in said
    )
    for number, statement in enumerate(itertools.islice(statements, answers)):
        begin = time.perf_counter()
        session.answer(number, compile_single(statement, SCHEMA), repr(statement).encode(), 1000)
        times.append(time.perf_counter() - begin)
    part = max(1, answers // 20)
    first, last = statistics.median(times[:part]), statistics.median(times[-part:])
    print(
        f"{answers:,} answers in one grant: {first * 1e3:.2f} ms at the beginning, {last * 1e3:.2f} ms at the end"
    )


def main() -> None:
    """Print the figures of docs/grants.md."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("table", type=Path)
    parser.add_argument("schema", type=Path)
    parser.add_argument("--answers", type=int, default=100_000)
    parser.add_argument("--seeds", type=int, default=20)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        unpack_table(Path(place) / "flights.csv")
        flights = source_at(Path(place) / "flights.csv").counts(SCHEMA)
        four_tables(flights, options.seeds)
        schema = Schema.from_json(options.schema.read_text(encoding="utf-8"))
        relative(source_at(options.table).counts(schema), schema, options.seeds)
        many(flights, options.answers)


if __name__ == "__main__":
    main()
