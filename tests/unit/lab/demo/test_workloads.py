"""What the airlines ask is what the demo says they ask."""

from __future__ import annotations

import numpy as np
import pytest

from equipoise.queries.statements import Marginal
from equipoise.queries.workload_compiler import compile_workload
from equipoise_lab.demo.table import AIRLINES, SCHEMA
from equipoise_lab.demo.workloads import DENSEST, SPARSEST, query_count, workload_of


@pytest.mark.nightly
@pytest.mark.slow
def test_ten_airlines_ask_more_than_twenty_thousand_queries_each_other_ones() -> None:
    workloads = {airline: workload_of(airline) for airline in AIRLINES}
    assert len(workloads) >= 8
    assert sum(map(query_count, workloads.values())) >= 20_000
    assert len({len(asked) for asked in workloads.values()}) == len(workloads)
    first, second = set(workloads["UA"]), set(workloads["B6"])
    assert len(first & second) < len(first) / 5


@pytest.mark.slow
def test_most_statements_are_dense_and_some_are_marginals() -> None:
    asked = workload_of("AA")
    marginals = [each for each in asked if isinstance(each, Marginal)]
    compiled = compile_workload(asked, SCHEMA)
    assert compiled.query_count == query_count(asked)
    assert 1 <= len(marginals) < len(asked) / 10
    covered = compiled.counts(np.ones(SCHEMA.universe_size, dtype=np.int64)) / SCHEMA.universe_size
    dense = covered[: len(asked) - len(marginals)]
    assert float(SPARSEST) <= dense.min() <= dense.max() <= float(DENSEST)


@pytest.mark.slow
def test_an_airline_always_asks_the_same() -> None:
    assert workload_of("VX") == workload_of("VX")


def test_the_universe_is_large_enough() -> None:
    assert SCHEMA.universe_size == 27_648 >= 2**14
