"""What residuals tell of three attributes in any order, and of queries of several boxes: their reach and slack."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from equipoise.queries.predicates import attribute
from equipoise.queries.schema import Schema
from equipoise.queries.statements import Marginal, Statement
from equipoise.queries.workload_compiler import compile_workload
from equipoise.residuals.family import ResidualFamily
from equipoise.residuals.noise import ResidualNoise
from equipoise_server.datasets.dense_counts import DenseCounts
from equipoise_server.mechanisms.residuals import direct
from equipoise_server.mechanisms.residuals.direct import DirectAnswers, UniformReach, direct_answers
from equipoise_server.mechanisms.residuals.estimates import estimates_of
from equipoise_server.mechanisms.residuals.measurement import Measured, measure

SCHEMA = Schema.from_json('{"a": 3, "b": 4, "c": 2}')
TABLE = np.arange(24, dtype=np.int64) * 100
FAMILY = ResidualFamily.closed(SCHEMA.sizes, [(0, 1, 2)])
a, b = attribute("a"), attribute("b")
ONE, OTHER = (a == "0") & (b == "1"), (a == "1") & (b == "2")


def measured(parameter: int) -> Measured:
    """Every residual with noise of one parameter; 1 is a variance of 2^-10, which draws 0."""
    noise = ResidualNoise.of(FAMILY, [parameter] * len(FAMILY.residuals))
    return measure(DenseCounts(TABLE, SCHEMA.sizes), noise, bytes(32), "test")


def told(*statements: Statement) -> DirectAnswers:
    reach = UniformReach(FAMILY, Fraction(1, 20))
    return direct_answers(measured(1 << 14), reach, compile_workload(list(statements), SCHEMA))


def test_counts_of_three_attributes_are_in_the_order_in_which_they_are_asked() -> None:
    for names in (("c", "a", "b"), ("b", "c", "a")):
        workload = compile_workload([Marginal(names)], SCHEMA)
        assert estimates_of(workload, measured(1)).counts == pytest.approx(workload.counts(TABLE))


def test_a_query_of_two_boxes_may_err_by_what_both_do() -> None:
    one, other, both = (told(each).reach[0] for each in (ONE, OTHER, ONE | OTHER))
    assert both >= (one + other) * (1 - 1e-9)


def test_a_box_that_is_taken_off_adds_to_what_a_query_may_err_by() -> None:
    alone, others = told(ONE).reach[0], told(~ONE).reach[0]
    assert others >= alone * (1 - 1e-9)


def test_every_box_is_in_some_block_of_boxes(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = Marginal(("a", "b")), ONE | OTHER, ~ONE, Marginal(("c",), where=ONE | OTHER)
    together = told(*asked).reach
    monkeypatch.setattr(direct, "BLOCK", 2)
    assert told(*asked).reach == pytest.approx(together)


def test_all_but_a_box_err_by_no_more_than_the_slack() -> None:
    """Nothing was measured but the records, 2^30: each of the 24,576 cells has as many, and ends in a third."""
    schema = Schema.from_json('{"a": 3, "b": 64, "c": 128}')
    family = ResidualFamily.closed(schema.sizes, [(0, 1, 2)])
    noise = ResidualNoise.of(family, [1] * len(family.residuals))
    zeros = {axes: np.zeros([schema.sizes[axis] for axis in axes], dtype=np.int64) for axes in family.sets}
    box = (a != "2") & (b != "0") & (attribute("c") != "0")
    found = estimates_of(compile_workload([~box], schema), Measured(noise, 1 << 30, zeros))
    truth = (1 << 30) * (1 - Fraction(2 * 63 * 127, 3 * 64 * 128))
    assert abs(Fraction(found.counts[0]) - truth) <= Fraction(found.slack[0])
