"""How well the expected mean errors of plans predict what is measured, on tables that judge no choice.

    python benchmarks/expectations.py adult13.csv adult13-domain.json [--only TEXT] [--mechanisms NAMES]

The constants of the expectations are of these tables. `regret.py` judges the choices on others: seven attributes of
Adult, 16 binary attributes, and flights. Here are five attributes of Adult that are not among the seven, and tables
that are made up: a mixture of profiles, one in which each attribute depends on one other, one whose attributes are
independent; and of 1,152 possible records, a mixture and one in which no table tells of another. Each is drawn with
replacement at several numbers of records. One seed each; both epsilons 1, five analysts.

Prints what each plan expected, the mean error measured, and their quotient. At the end, for each mechanism and what
was asked: the least, the geometric mean and the largest of the quotients.
"""

from __future__ import annotations

import argparse
import itertools
import math
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
from battery import dealt, predicates, resampled
from numpy.typing import NDArray
from regret import Runs, play, setting_of

from equipoise.errors import BudgetExhausted, InvalidArgument
from equipoise.queries.schema import Attribute, Schema
from equipoise.queries.statements import Marginal
from equipoise_lab.simulation.task import Task
from equipoise_server.datasets.coded_counts import CodedCounts
from equipoise_server.datasets.counts import Counts
from equipoise_server.datasets.dense_counts import DenseCounts
from equipoise_server.datasets.source import source_at
from equipoise_server.mechanisms.registry import MECHANISMS

OTHERS = ("workclass", "relationship", "capital-gain", "capital-loss", "hours-per-week")
RECORDS = (2_000, 50_000, 2_000_000)
SIZES, SMALL_SIZES = (9, 8, 6, 5, 4, 3, 2), (6, 4, 4, 4, 3)
WIDE_SIZES, WIDE_RECORDS = (40, 25, 16, 12, 10, 8, 6, 5, 4, 3, 2, 2, 2), (50_000, 1_000_000)
WIDE_TABLES = ((2, 78), (3, 64), (3, 10))  # attributes of a table, tables that one analyst asks for
PRIORS = {"equilibrium": ("own",), "multiplicative_weights": ("own", "none")}
COLUMNS = ("table", "records", "asked", "mechanism", "expected", "mean", "mean / expected")


def main() -> None:
    """Print a table in Markdown, a row as soon as it is known, and the quotients of all."""
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    arguments.add_argument("table", type=Path)
    arguments.add_argument("schema", type=Path)
    arguments.add_argument("--only", default="", help="rounds whose names hold this text")
    arguments.add_argument("--mechanisms", default="equilibrium,pooled,multiplicative_weights,projection")
    options = arguments.parse_args()
    print("| " + " | ".join(COLUMNS) + " |\n|" + "---|" * len(COLUMNS))
    quotients = defaultdict(list)
    for table, records, asked, task in rounds(options.table, options.schema):
        if options.only not in f"{table}, {records}, {asked}":
            continue
        for name, expected, mean in errors(task, options.mechanisms.split(",")):
            quotients[name, asked].append(mean / expected)
            numbers = f"{expected:.3g} | {mean:.3g} | {mean / expected:.2f}"
            print(f"| {table} | {records:,} | {asked} | {name} | {numbers} |", flush=True)
    for (name, asked), found in sorted(quotients.items()):
        middle = float(np.exp(np.mean(np.log(found))))
        print(f"{name}, {asked}: {min(found):.2f}, {middle:.2f}, {max(found):.2f} of {len(found)}")


def rounds(table: Path, schema_file: Path) -> Iterator[tuple[str, int, str, Task]]:
    """Yield each table's name and records, what is asked of it, and the task."""
    for name, schema, counts in tables(table, schema_file):
        for records in RECORDS:
            data = resampled(counts, schema, records)
            ways = len(schema.sizes)
            for width in (2, 3, ways):
                yield (
                    name,
                    records,
                    f"conjunctions of {width}",
                    dealt(schema, data, predicates(schema, 1_000, width), 5),
                )
            for width in (2, 3):
                asked = [Marginal(names) for names in itertools.combinations(schema.names, width)]
                yield name, records, f"tables of {width}", dealt(schema, data, asked, 5)
    for name, schema, data in wide_tables():
        choose = np.random.default_rng(5)
        for width, count in WIDE_TABLES:
            sets = list(itertools.combinations(schema.names, width))
            drawn = choose.choice(len(sets), count, replace=False) if count < len(sets) else range(len(sets))
            statements = [Marginal(sets[place]) for place in drawn]
            yield name, data.records, f"{count} wide tables of {width}", dealt(schema, data, statements, 1)


def errors(task: Task, names: list[str]) -> Iterator[tuple[str, float, float]]:
    """Yield each mechanism and its prior, and the mean errors that were expected and measured."""
    for name in names:
        for prior in PRIORS.get(name, ("",)):
            setting = setting_of(task)
            if prior:
                setting = replace(setting, options={"prior": prior})
            try:
                run = play(task, setting, Runs(MECHANISMS[name].plan(setting)), 0)
            except (BudgetExhausted, InvalidArgument):
                continue
            yield f"{name} {prior}".strip(), run.plan.expected_error, run.mean


def tables(table: Path, schema_file: Path) -> Iterator[tuple[str, Schema, Counts]]:
    """Yield the tables."""
    whole = Schema.from_json(schema_file.read_text(encoding="utf-8"))
    others = Schema(tuple(each for each in whole.attributes if each.name in OTHERS))
    yield "other five of Adult", others, source_at(table).counts(others)
    made = (("profiles", profiles, SIZES), ("a tree", a_tree, SIZES), ("independent", independent, SIZES))
    small = (("small profiles", profiles, SMALL_SIZES), ("small random cells", random_cells, SMALL_SIZES))
    for name, draw, sizes in (*made, *small):
        schema = schema_of(sizes)
        cells = np.ravel_multi_index(tuple(draw(np.random.default_rng(77), sizes, DRAWN)), sizes)
        counts = np.bincount(cells, minlength=schema.universe_size).astype(np.int64)
        yield name, schema, DenseCounts(counts, schema.sizes)


def wide_tables() -> Iterator[tuple[str, Schema, Counts]]:
    """Yield the tables whose possible records, some 2^36, cannot be listed."""
    schema = schema_of(WIDE_SIZES)
    for name, draw in (("profiles", profiles), ("a tree", a_tree), ("independent", independent)):
        for records in WIDE_RECORDS:
            codes = np.array(draw(np.random.default_rng(77), WIDE_SIZES, records)).astype(np.uint8)
            counts = CodedCounts.of(schema.sizes, codes, np.ones(records, dtype=np.int64))
            yield f"{name}, {len(WIDE_SIZES)} attributes", schema, counts


def schema_of(sizes: tuple[int, ...]) -> Schema:
    """Return attributes of so many categories."""
    return Schema(tuple(Attribute(f"m{i}", tuple(map(str, range(size)))) for i, size in enumerate(sizes)))


DRAWN = 400_000  # records of a made-up table, before it is drawn from again


def profiles(choose: np.random.Generator, sizes: tuple[int, ...], records: int) -> list[NDArray[np.int64]]:
    """Twelve profiles, in each of which the attributes are independent."""
    own = choose.choice(12, records, p=choose.dirichlet(np.full(12, 1.0)))
    return [_drawn(choose, choose.dirichlet(np.full(size, 0.6), 12)[own]) for size in sizes]


def a_tree(choose: np.random.Generator, sizes: tuple[int, ...], records: int) -> list[NDArray[np.int64]]:
    """Each attribute depends on the one before."""
    before = np.zeros(records, dtype=np.int64)
    found = []
    for place, size in enumerate(sizes):
        categories = sizes[place - 1] if place else 1
        before = _drawn(choose, choose.dirichlet(np.full(size, 0.5), categories)[before])
        found.append(before)
    return found


def independent(choose: np.random.Generator, sizes: tuple[int, ...], records: int) -> list[NDArray[np.int64]]:
    """No attribute depends on another."""
    return [choose.choice(size, records, p=choose.dirichlet(np.full(size, 1.0))) for size in sizes]


def random_cells(choose: np.random.Generator, sizes: tuple[int, ...], records: int) -> list[NDArray[np.int64]]:
    """Every possible record has a chance of its own, so that no table tells of another."""
    chances = choose.dirichlet(np.full(math.prod(sizes), 0.3))
    cells = choose.choice(len(chances), records, p=chances)
    return [axis.astype(np.int64) for axis in np.unravel_index(cells, sizes)]


def _drawn(choose: np.random.Generator, chances: NDArray[np.float64]) -> NDArray[np.int64]:
    """Draw a category from each row of chances, float64[records, categories]."""
    return np.asarray((choose.random((len(chances), 1)) > np.cumsum(chances, axis=1)[:, :-1]).sum(axis=1))


if __name__ == "__main__":
    main()
