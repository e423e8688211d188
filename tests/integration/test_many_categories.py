"""Rounds on attributes of several hundred categories: airports by their names, and every day of two years."""

from __future__ import annotations

import csv
import json
import time
from collections.abc import Iterator
from dataclasses import replace
from datetime import date, timedelta
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from harness.answers import flat_chunks
from harness.dangers import LARGE_CAPS
from harness.rounds_bench import CAP, SALT, TERMS, Bench
from harness.stores import Cluster
from sqlalchemy import create_engine, text
from sqlalchemy.pool import NullPool

from equipoise.model.accounts import Danger
from equipoise.model.results import Answers
from equipoise.model.rounds import Share
from equipoise.queries.predicates import attribute
from equipoise.queries.schema import Schema
from equipoise.queries.schema_file import read_schema_file
from equipoise.queries.statements import Marginal
from equipoise.queries.workload_compiler import compile_workload
from equipoise.wire.results import chunk_from_bytes
from equipoise.wire.workloads import workload_to_bytes
from equipoise_server.datasets.digest import data_digest
from equipoise_server.datasets.source import source_in

pytestmark = pytest.mark.both_stores

AIRPORTS, FIRST, DAYS, ROWS = 400, date(2013, 1, 1), 730, 3000
ACCEPTED = (*LARGE_CAPS, Danger.DELTA)
ASKED = (
    Marginal(("origin",)),
    Marginal(("departure",)),
    attribute("departure").between("2013-07-01", "2013-10-01") & (attribute("origin") == "airport 7"),
)


@pytest.fixture
def bench(on_sqlite: Bench, postgresql: Cluster, tmp_path: Path) -> Iterator[Bench]:
    """A bench whose data directory has the same flights as CSV, as Parquet and in a database."""
    data = on_sqlite.directory / "data"
    random = np.random.default_rng(5)
    origins = [f"A{number:03}" for number in (random.zipf(1.3, ROWS) % AIRPORTS).tolist()]
    days = [FIRST + timedelta(days=number) for number in random.integers(0, DAYS, ROWS).tolist()]
    rows = list(zip(origins, days, strict=True))
    with (data / "flights.csv").open("w", newline="") as file:
        csv.writer(file).writerows([("origin", "departure"), *rows])
    pq.write_table(pa.table({"origin": origins, "departure": days}), data / "flights.parquet")
    with postgresql.database(tmp_path) as url:
        (data / "flights.database.toml").write_text(f'url = "{url}"\ntable = "flights"\n')
        with create_engine(url, poolclass=NullPool).begin() as connection:
            connection.execute(text("CREATE TABLE flights (origin text, departure date)"))
            added = [{"origin": origin, "day": day} for origin, day in rows]
            connection.execute(text("INSERT INTO flights VALUES (:origin, :day)"), added)
        yield on_sqlite


@pytest.fixture
def schema(tmp_path: Path) -> Schema:
    with (tmp_path / "airports.csv").open("w", newline="") as file:
        named = ((f"A{number:03}", f"airport {number}") for number in range(AIRPORTS))
        csv.writer(file).writerows([("iata", "name"), *named])
    attributes = [
        {"name": "origin", "categories": {"file": "airports.csv", "column": "iata", "label": "name"}},
        {"name": "departure", "edges": {"from": "2013-01-01", "to": "2015-01-01", "by": "day"}},
    ]
    (tmp_path / "schema.json").write_text(json.dumps({"version": 1, "attributes": attributes}))
    return read_schema_file(tmp_path / "schema.json")


@pytest.mark.nightly
def test_hundreds_of_categories_are_counted_alike_everywhere_and_answered(bench: Bench, schema: Schema) -> None:
    assert schema.sizes == (AIRPORTS, DAYS)
    names = ("flights.csv", "flights.parquet", "flights.database.toml")
    tables = [source_in(bench.directory / "data", name).counts(schema) for name in names]
    assert len({data_digest(table) for table in tables}) == 1
    compiled = compile_workload(ASKED, schema)
    truth = tables[0].count(compiled) / ROWS
    assert truth[-1] > 0
    shares = (Share("ann", len(ASKED), compiled.query_count),)
    told = []
    for place, name in enumerate(names):
        people = "same-as:flights0" if place else "new"
        cap = None if place else CAP
        dataset = f"flights{place}"
        bench.rounds.datasets.register(dataset, name, schema, cap, cap, dataset, people=people, accepted=ACCEPTED)
        terms = replace(TERMS, dataset=dataset, shares=shares, mechanism="gaussian", options={})
        round_id = bench.opened(terms)
        submitted = workload_to_bytes(ASKED)
        bench.rounds.submissions.submit("ann", round_id, f"ann-{time.monotonic_ns()}", submitted, SALT)
        bench.rounds.lifecycle.seal(round_id, f"seal-{round_id}")
        bench.rounds.lifecycle.run(round_id, f"run-{round_id}")
        assert bench.wait(round_id).complete
        bench.rounds.lifecycle.release(round_id, f"release-{round_id}")
        bench.clock.move(60)
        chunks = [chunk_from_bytes(each) for each in bench.rounds.analyst_views.results("ann", round_id, 0, 100)]
        assert not Answers.join(each.answers for each in chunks).misses(truth).any()
        told.append(flat_chunks(chunks))
    assert told[0] == told[1] == told[2]
