"""The battery of rounds on which the choice of a mechanism is judged: tables, and what analysts ask of them.

Adult (7 attributes) is read from files; everything else is made here, from fixed public seeds. Flights come from
the package that the demo uses.
"""

from __future__ import annotations

import itertools
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from equipoise.queries.predicates import Among, Predicate
from equipoise.queries.schema import Attribute, Schema
from equipoise.queries.statements import Marginal, Statement
from equipoise.queries.workload_compiler import compile_workload
from equipoise_lab.demo.table import AIRLINES, SCHEMA, unpack_table
from equipoise_lab.demo.workloads import workload_of
from equipoise_lab.simulation.demand import draw_demand
from equipoise_lab.simulation.task import Task, deal, seed_bytes
from equipoise_server.datasets.counts import Counts
from equipoise_server.datasets.dense_counts import DenseCounts
from equipoise_server.datasets.source import source_at

TRIPLES = 64  # of a wide table, that one analyst asks for
BINARY_ATTRIBUTES, BINARY_RECORDS = 16, 21_574
SMALL, LARGE = 2_000, 2_000_000


@dataclass(frozen=True)
class Case:
    """One round of the battery; `task` makes it, as some take seconds and memory."""

    name: str
    task: Callable[[], Task]


def battery(table: Path, schema_file: Path) -> Iterator[Case]:
    """Yield all rounds. `table`, `schema_file`: Adult's seven attributes, as CSV and JSON."""
    schema = Schema.from_json(schema_file.read_text(encoding="utf-8"))
    adult = source_at(table).counts(schema)
    for analysts, tables in ((1, 35), (20, 5), (35, 1), (100, 5), (1000, 5)):
        yield Case(f"Adult, tables, {analysts:,} analysts", partial(tables_of, schema, adult, analysts, tables))
    for count in (2_000, 20_000, 1_000_000):
        yield Case(f"Adult, {count:,} predicates", partial(asked_by_ten, schema, adult, count))
    by_order = with_order(schema)
    yield Case("Adult, 5,000 ranges", lambda: dealt(by_order, adult, ranges(schema, 5_000), 10))
    yield Case("Adult, 5,000 conjunctions of 7", lambda: dealt(schema, adult, predicates(schema, 5_000, 7), 10))
    yield Case("binary, all triples, 1 analyst", lambda: binary_triples(1))
    yield Case("binary, all triples, 10 analysts", lambda: binary_triples(10))
    yield Case("flights", flights)
    for records in (SMALL, LARGE):
        again = resampled(adult, schema, records)
        yield Case(f"Adult of {records:,}, tables, 20 analysts", partial(tables_of, schema, again, 20, 5))
        yield Case(
            f"Adult of {records:,}, 2,000 predicates",
            partial(asked_by_ten, schema, again, 2_000),
        )


def wide_battery(table: Path, schema_file: Path) -> Iterator[Case]:
    """Yield the rounds on a table whose possible records cannot be listed: Adult's 13 attributes, one analyst."""
    schema = Schema.from_json(schema_file.read_text(encoding="utf-8"))
    adult = source_at(table).counts(schema)
    width = len(schema.names)
    yield Case(f"Adult of {width}, all pairs", lambda: dealt(schema, adult, all_pairs(schema), 1))
    yield Case(f"Adult of {width}, {TRIPLES} triples", lambda: dealt(schema, adult, some_triples(schema), 1))


def all_pairs(schema: Schema) -> list[Statement]:
    """The tables of all pairs of attributes."""
    return [Marginal(names) for names in itertools.combinations(schema.names, 2)]


def some_triples(schema: Schema) -> list[Statement]:
    """Tables of three attributes, drawn as those who published errors of them drew them."""
    triples = list(itertools.combinations(schema.names, 3))
    drawn = np.random.RandomState(0).choice(len(triples), TRIPLES, replace=False)
    return [Marginal(triples[place]) for place in drawn.tolist()]


def tables_of(schema: Schema, data: Counts, analysts: int, each: int) -> Task:
    """Every analyst asks for `each` three-way tables, popular ones more often; one alone asks for all of them."""
    tables = [Marginal(names) for names in itertools.combinations(schema.names, 3)]
    if analysts * each <= len(tables):
        return dealt(schema, data, tables, analysts)
    drawn = draw_demand(len(tables), analysts, each, seed_bytes(1))
    return _task(schema, data, {f"a{n}": tuple(tables[i] for i in own) for n, own in enumerate(drawn)})


def dealt(schema: Schema, data: Counts, statements: Sequence[Statement], analysts: int) -> Task:
    """Each statement is asked by one analyst."""
    return _task(schema, data, {who: tuple(own) for who, own in deal(tuple(statements), analysts).items()})


def asked_by_ten(schema: Schema, data: Counts, count: int) -> Task:
    """Ten analysts ask dense predicates on two attributes each."""
    return dealt(schema, data, predicates(schema, count, 2), 10)


def predicates(schema: Schema, count: int, ways: int) -> list[Statement]:
    """Conjunctions of conditions on `ways` attributes, each of about half of the attribute's categories."""
    choose = np.random.default_rng(ways)
    made: list[Statement] = []
    for _ in range(count):
        axes = np.sort(choose.choice(len(schema.attributes), ways, replace=False))
        condition: Predicate | None = None
        for attribute in (schema.attributes[int(axis)] for axis in axes):
            kept = np.sort(choose.permutation(attribute.size)[: (attribute.size + 1) // 2])
            own = Among(attribute.name, tuple(attribute.categories[i] for i in kept.tolist()))
            condition = own if condition is None else condition & own
        if condition is not None:
            made.append(condition)
    return made


def with_order(schema: Schema) -> Schema:
    """Return the schema with the two attributes of the most categories in order, as `ranges` asks for them."""
    longest = sorted(schema.attributes, key=lambda attribute: -attribute.size)[:2]
    return Schema(tuple(replace(each, ordered=True) if each in longest else each for each in schema.attributes))


def ranges(schema: Schema, count: int) -> list[Statement]:
    """Ranges over the two attributes of the most categories."""
    choose = np.random.default_rng(3)
    longest = sorted(schema.attributes, key=lambda attribute: -attribute.size)[:2]
    return [_range(longest[0], choose) & _range(longest[1], choose) for _ in range(count)]


def _range(attribute: Attribute, choose: np.random.Generator) -> Predicate:
    first, last = np.sort(choose.integers(0, attribute.size, 2))
    return Among(attribute.name, attribute.categories[int(first) : int(last) + 1])


def binary_triples(analysts: int) -> Task:
    """All triples of 16 binary attributes of a table with dependence of every order (a mixture of 24 profiles)."""
    schema = Schema(tuple(Attribute(f"d{number}", ("no", "yes")) for number in range(BINARY_ATTRIBUTES)))
    choose = np.random.default_rng(16)
    chances = choose.beta(0.4, 1.2, (24, BINARY_ATTRIBUTES))
    profile = choose.choice(24, BINARY_RECORDS, p=choose.dirichlet(np.full(24, 0.5)))
    records = (choose.random((BINARY_RECORDS, BINARY_ATTRIBUTES)) < chances[profile]).astype(np.int64)
    cells = records @ (1 << np.arange(BINARY_ATTRIBUTES)[::-1])
    data = DenseCounts(np.bincount(cells, minlength=1 << BINARY_ATTRIBUTES).astype(np.int64), schema.sizes)
    return dealt(schema, data, [Marginal(names) for names in itertools.combinations(schema.names, 3)], analysts)


def flights() -> Task:
    """The demo's round: ten airlines with some 2,100 predicates and three tables each."""
    with tempfile.TemporaryDirectory() as directory:
        unpack_table(Path(directory) / "flights.csv")
        data = source_at(Path(directory) / "flights.csv").counts(SCHEMA)
    return _task(SCHEMA, data, {airline: workload_of(airline) for airline in AIRLINES})


def resampled(data: Counts, schema: Schema, records: int) -> Counts:
    """Return `records` records drawn with replacement."""
    ((_, histogram),) = data.marginals([tuple(range(len(schema.sizes)))])
    chances: NDArray[np.float64] = histogram.reshape(-1) / data.records
    drawn = np.random.default_rng(records).multinomial(records, chances)
    return DenseCounts(drawn.astype(np.int64), schema.sizes)


def _task(schema: Schema, data: Counts, statements: dict[str, tuple[Statement, ...]]) -> Task:
    return Task.filling_shares(
        schema, data, {who: compile_workload(own, schema) for who, own in statements.items()}
    )
