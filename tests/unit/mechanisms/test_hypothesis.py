"""The hypothesis that learns: what every tilt gains, also from sums that are rounded down to whole records."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from equipoise.queries.joined_workloads import concatenate
from equipoise.queries.listed_workload import ListedWorkload
from equipoise.queries.predicates import attribute
from equipoise.queries.record_list import RecordList
from equipoise.queries.schema import Attribute, Schema
from equipoise.queries.statements import Marginal, Statement, Sum
from equipoise.queries.workload_compiler import CompiledWorkload, compile_workload
from equipoise_server.mechanisms.hypothesis import Hypothesis, gain_slack, linear_reach
from equipoise_server.mechanisms.repair.private_weights import rounding_error

SCHEMA = Schema(tuple(Attribute(name, tuple("012345"[:size])) for name, size in zip("abc", (6, 3, 2), strict=True)))
SIZE, RECORDS = 36, 997
STATEMENTS: dict[str, Statement] = {
    "a sum": Sum("a"),
    "by cells": Sum("a", ("b", "c")),
    "of some records": Sum("a", where=(attribute("b") == "1") | (attribute("c") == "0")),
    "by cells, of some": Sum("a", ("c",), where=attribute("a").isin(["1", "2", "5"]), low=1, high=4),
    "a table": Marginal(("b", "a")),
}


def table(seed: int) -> NDArray[np.int64]:
    choose = np.random.default_rng(seed)
    return choose.multinomial(RECORDS, choose.dirichlet(np.full(SIZE, 0.3))).astype(np.int64)


SLACK = gain_slack(rounding_error(RECORDS, SIZE))


def started() -> Hypothesis:
    return Hypothesis(np.zeros(SIZE, dtype=np.int64), SLACK)


def held(hypothesis: Hypothesis) -> NDArray[np.float64]:
    """What it holds of every record that can exist: the cells of the whole table."""
    whole = compile_workload([Marginal(("a", "b", "c"))], SCHEMA)
    return hypothesis.answers(whole) / 2.0**40


def divergence(data: NDArray[np.int64], hypothesis: Hypothesis) -> float:
    some, part = data > 0, data / data.sum()
    return float((part[some] * np.log(part[some] / held(hypothesis)[some])).sum())


@pytest.mark.parametrize("name", STATEMENTS)
def test_a_tilt_brings_it_closer_to_the_data_by_what_is_proven(name: str) -> None:
    """By at least twice the square of the largest distance beyond reach, whatever the noise within it."""
    asked, moved = compile_workload([STATEMENTS[name]], SCHEMA), 0
    choose, sums = np.random.default_rng(1), bool(asked.weighted.any())
    for seed in range(5):
        data, hypothesis = table(seed), started()
        noise = choose.uniform(-0.02, 0.02, asked.query_count)
        told, reach = asked.counts(data) / RECORDS + noise, linear_reach(0.02, sums, RECORDS)
        distance = np.abs(told - hypothesis.answers(asked) / 2.0**40).max() - reach
        before = divergence(data, hypothesis)
        hypothesis.measured(asked, 0, told, reach)
        gained = before - divergence(data, hypothesis)
        assert gained >= 2 * max(0.0, distance) ** 2 - SLACK - 1e-9
        moved += distance > 0
    assert moved >= 2


def test_a_hypothesis_that_is_the_table_does_not_move_by_its_own_sums() -> None:
    """They are up to one record below what is linear in the records, and that teaches nothing."""
    below = 0
    for seed in range(4):
        data = table(seed) + 1
        potential = np.rint(np.log(data / data.max()) * 2.0**48).astype(np.int64)
        for statement in STATEMENTS.values():
            asked, hypothesis = compile_workload([statement], SCHEMA), Hypothesis(potential, 0.0)
            sums, start = bool(asked.weighted.any()), held(hypothesis)
            records = int(data.sum())
            told = asked.counts(data) / records
            below += sums and float((asked.expectations(data.astype(float)) / records - told).max() * records) > 0.5
            hypothesis.measured(asked, 0, told, linear_reach(1e-6, sums, records))
            assert (held(hypothesis) == start).all()
    assert below > 4


def test_what_is_learnt_of_a_sum_among_other_statements_is_what_is_learnt_of_it_alone() -> None:
    every = [compile_workload([each], SCHEMA) for each in STATEMENTS.values()]
    joined, data = concatenate(every), table(5)
    for place, alone in enumerate(every):
        told = alone.counts(data) / RECORDS
        one, other = started(), started()
        one.measured(alone, 0, told, 0.01)
        other.measured(joined, place, told, 0.01)
        assert (held(one) == held(other)).all()
        assert (held(one) != held(started())).any()


def test_a_list_of_all_records_learns_as_the_universe_does() -> None:
    codes = np.array(np.unravel_index(np.arange(SIZE), SCHEMA.sizes)).astype(np.uint8)
    data = table(7)

    def learnt(asked: CompiledWorkload, listed: bool) -> NDArray[np.float64]:
        queries = ListedWorkload(asked, RecordList(SCHEMA.sizes, codes)) if listed else asked
        hypothesis = started()
        hypothesis.measured(queries, 0, asked.counts(data) / RECORDS, 0.01)
        return held(hypothesis)

    for statement in STATEMENTS.values():
        asked = compile_workload([statement], SCHEMA)
        assert (learnt(asked, True) == learnt(asked, False)).all()


def test_cells_are_told_apart_where_there_are_more_than_one_digit_s() -> None:
    """A sum by 1,100 cells: the number of a record's cell is read in two digits."""
    wide = Schema((Attribute("a", ("0", "1", "2")), Attribute("b", tuple(map(str, range(1100))))))
    asked, choose = compile_workload([Sum("a", ("b",))], wide), np.random.default_rng(2)
    data = choose.integers(0, 3, 3_300).astype(np.int64)
    hypothesis = Hypothesis(np.zeros(3_300, dtype=np.int64), 0.0)
    told = asked.expectations(data / data.sum())
    before = np.abs(asked.expectations(np.full(3_300, 1 / 3_300)) - told).sum()
    for _ in range(3):
        hypothesis.measured(asked, 0, told, 0.0)
    assert np.abs(hypothesis.answers(asked) / 2.0**40 - told).sum() < before / 4
