"""Whole rounds on orders of customers who have several rows each: every mode, and several records a person.

    python benchmarks/persons.py [--rows 1000000] [--customers 50000]

Makes a Parquet file of orders, whose customers are drawn by Zipf's law. A real server registers it once for each
mode and number of records M, and runs a round on all pairs of attributes for one analyst, by `auto`, with epsilon 1
for whole customers. Prints how much of the table counts, the errors against the true answers about the same
records, and the seconds of registration and of the round from sealing to its results.

`counted`: rows that are among the records, or that the records stand for. `nothing`: records of nothing. Errors are
fractions of the records.
"""

from __future__ import annotations

import argparse
import itertools
import json
import tempfile
import time
from pathlib import Path

import duckdb
import numpy as np

from equipoise.clients.analyst import Client
from equipoise.clients.operator import Operator
from equipoise.model.accounts import Budget, Danger
from equipoise.model.persons import PersonMode, Persons
from equipoise.model.results import Answers
from equipoise.model.rounds import AUTO, Share, Terms
from equipoise.queries.fixed_point import GRID_BITS
from equipoise.queries.padding import padded_schema
from equipoise.queries.schema import Schema
from equipoise.queries.statements import Marginal
from equipoise.queries.workload_compiler import compile_workload
from equipoise_lab.demo.process import free_address, serving
from equipoise_server.admin.new_state import create_state
from equipoise_server.datasets.persons.table import PersonTable
from equipoise_server.datasets.source import source_at

MODES = [
    *(Persons(mode, records) for mode in (PersonMode.EVENTS, PersonMode.AVERAGE) for records in (1, 4, 16)),
    Persons(PersonMode.ONE),
]
EXPONENT = 1.0  # of Zipf's law: the customer of rank r orders in proportion to 1 / r
SCHEMA = Schema.from_json(
    json.dumps(
        {
            "version": 1,
            "attributes": [
                {"name": "product", "categories": [f"product{number}" for number in range(20)]},
                {"name": "amount", "edges": [0, 10, 20, 50, 100, 200, 1000]},
                {"name": "month", "categories": [str(number) for number in range(1, 13)]},
                {"name": "region", "categories": list("abcdef")},
                {"name": "online", "categories": ["true", "false"]},
            ],
        }
    )
)
# What a customer orders goes with who orders: the first attributes follow from the customer's number and chance.
MADE = """
COPY (
    SELECT customer, 'product' || ((customer * 7 + floor(random() * 5)::INT) % 20) AS product,
    least(999, -ln(1 - random()) * (10 + customer % 90)) AS amount,
    CAST(floor(random() * 12) AS INTEGER) + 1 AS month, chr(97 + customer % 6) AS region,
    random() < 0.2 + 0.6 * (customer % 2) AS online
    FROM (SELECT unnest(?::INTEGER[]) AS customer)
) TO '{path}' (FORMAT parquet)
"""


def main() -> None:
    """Print a table with one line for each mode."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--customers", type=int, default=50_000)
    options = parser.parse_args()
    print(f"{options.rows:,} orders of {options.customers:,} customers, all pairs of 5 attributes, epsilon 1")
    print(
        f"{'mode':>8} {'M':>3} {'counted':>8} {'nothing':>8} {'mechanism':>12} {'mean':>9} {'largest':>9} "
        f"{'register s':>10} {'round s':>8}"
    )
    with tempfile.TemporaryDirectory() as scratch:
        state = Path(scratch) / "state"
        create_state(state, listen=free_address(), release_grid_seconds=1)
        table = state / "data" / "orders.parquet"
        duckdb.execute(MADE.format(path=table), [owners(options.rows, options.customers)])
        with (
            serving(state, Path(scratch) / "log"),
            Operator.from_profile(state / "profiles" / "operator") as operator,
        ):
            profile = operator.add_analyst("ann", Path(scratch) / "ann")
            for persons in MODES:
                played(operator, profile, table, persons, options.rows)


def owners(rows: int, customers: int) -> list[int]:
    """Whose each order is: everybody's first, and the others by Zipf's law."""
    random = np.random.default_rng(1)
    weights = np.arange(1, customers + 1) ** -EXPONENT
    drawn = random.choice(customers, rows - customers, p=weights / weights.sum())
    return [*range(customers), *drawn.tolist()]


def played(operator: Operator, profile: Path, table: Path, persons: Persons, rows: int) -> None:
    """Register the table and play a round; print its line."""
    name = f"{persons.mode}-{persons.records}"
    first = persons == MODES[0]
    cap = Budget(100.0, 1e-6)
    begin = time.perf_counter()
    registered = operator.register_dataset(
        name,
        table.name,
        SCHEMA,
        cap if first else None,
        cap if first else None,
        people="new" if first else f"same-as:{MODES[0].mode}-{MODES[0].records}",
        person="customer",
        persons=persons,
        accepted=(Danger.EPSILON,) if first else (),
    )
    registering = time.perf_counter() - begin
    asked = [Marginal(pair) for pair in itertools.combinations(registered.schema.names, 2)]
    compiled = compile_workload(asked, registered.schema)
    terms = Terms(
        dataset=name,
        shares=(Share("ann", len(asked), compiled.query_count, compiled.l1_sensitivity, ways=2),),
        data_budget=Budget(1.0, 1e-9),
        analyst_budget=Budget(1.0, 1e-6),
        unit="query",
        beta=0.05,
        mechanism=AUTO,
    )
    with Client.from_profile(profile) as client:
        opened = operator.open(terms)
        client.submit(opened.round.id, asked)
        begin = time.perf_counter()
        operator.seal(opened.round.id)
        operator.run_to_completion(opened.round.id, lambda _: None)
        operator.release(opened.round.id)
        client.wait(opened.round.id)
        answers = Answers.join(columns.answers for columns in client.stream(opened.round.id))
        running = time.perf_counter() - begin
    schema = padded_schema(SCHEMA) if persons.padded else SCHEMA
    data = PersonTable(source_at(table), "customer", persons).counts(schema)
    errors = np.abs(answers.values / 2.0**GRID_BITS - data.count(compiled) / data.records)
    nothing = 0
    if persons.padded:
        ((_, counts),) = data.marginals([(0,)])
        nothing = int(counts[-1])
    counted = (data.records - nothing) / rows if persons.mode is PersonMode.EVENTS else 1.0
    found = f"{persons.mode:>8} {persons.records:>3} {counted:>8.1%} {nothing / data.records:>8.1%}"
    erred = f"{opened.plan.mechanism:>12} {errors.mean():>9.6f} {errors.max():>9.6f}"
    print(f"{found} {erred} {registering:>10.1f} {running:>8.1f}", flush=True)


if __name__ == "__main__":
    main()
