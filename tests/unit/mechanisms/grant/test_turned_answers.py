"""An answer that is known already is given in the order, and from the side, that it is asked for."""

from __future__ import annotations

import numpy as np
import pytest

from equipoise.accounting import RHO_UNIT
from equipoise.model.accounts import Budget
from equipoise.model.grants import ANALYSTS
from equipoise.model.results import Answers
from equipoise.model.rounds import Share
from equipoise.queries.fixed_point import ONE
from equipoise.queries.predicates import attribute
from equipoise.queries.schema import Attribute, Schema
from equipoise.queries.statements import Marginal, Statement
from equipoise.queries.workload_compiler import compile_single
from equipoise_server.datasets.dense_counts import DenseCounts
from equipoise_server.mechanisms.grant.mechanism import GrantMechanism, GrantSession
from equipoise_server.mechanisms.interface import PublicParameters
from equipoise_server.mechanisms.persons import planned_starts

SIZES = (3, 2, 4)
SCHEMA = Schema(
    tuple(Attribute(name, tuple("0123"[:size])) for name, size in zip("abc", SIZES, strict=True)),
)
COUNTS = 50 + 100 * np.arange(24)  # no two cells are alike
RECORDS = int(COUNTS.sum())
GRANT = GrantMechanism()
SETTING = PublicParameters(
    records=RECORDS,
    universe_size=24,
    shares=(Share("ann", 1 << 20, 1 << 30),),
    unit="query",
    data_budget=Budget(1.0, 1e-6),
    analyst_budget=ANALYSTS,
    beta=0.05,
    options={"length": 1 << 20},
    attributes=SIZES,
)
PRICE = RHO_UNIT // 1000
B = attribute("b")


def started() -> GrantSession:
    return GRANT.start(SETTING, planned_starts(GRANT, SETTING)[0].plan, DenseCounts(COUNTS, SIZES), bytes(32))


def asked(session: GrantSession, slot: int, statement: Statement, rho: int = PRICE) -> Answers:
    return session.answer(slot, compile_single(statement, SCHEMA), repr(statement).encode(), rho)


@pytest.mark.parametrize("first", [B == "0", B == "1"])
def test_the_other_half_of_the_records_has_the_other_answer(first: Statement) -> None:
    """By their counts the halves are 42 and 58 percent, so one is not mistaken for the other."""
    session = started()
    for_zero, for_one = COUNTS.reshape(SIZES).sum(axis=(0, 2)) / RECORDS
    second, truths = (B == "1", (for_zero, for_one)) if first == (B == "0") else (B == "0", (for_one, for_zero))
    told, other = asked(session, 0, first), asked(session, 1, second)
    assert told.values[0] + other.values[0] == ONE
    for answers, truth in zip((told, other), truths, strict=True):
        assert not answers.misses(np.array([truth])).any()


@pytest.mark.parametrize("names", ["abc", "acb", "bac", "bca", "cab", "cba"])
def test_a_table_that_is_asked_in_another_order_has_the_same_values_in_that_order(names: str) -> None:
    session = started()
    paid = asked(session, 0, Marginal(("a", "b", "c")))
    turned = asked(session, 1, Marginal(tuple(names)), PRICE // 2)
    axes = tuple("abc".index(name) for name in names)
    assert turned.values.tolist() == paid.values.reshape(SIZES).transpose(axes).reshape(-1).tolist()
    truth = COUNTS.reshape(SIZES).transpose(axes).reshape(-1) / RECORDS
    assert not turned.misses(truth).any()
