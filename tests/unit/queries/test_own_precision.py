"""What is known of counts by tables that were paid for: against least squares with matrices, in exact fractions."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from equipoise.queries.meanings import Meaning, meaning_of
from equipoise.queries.own_precision import OwnPrecision
from equipoise.queries.predicates import attribute
from equipoise.queries.schema import Attribute, Schema
from equipoise.queries.statements import Marginal, Statement
from equipoise.queries.workload_compiler import compile_single

SCHEMA = Schema((Attribute("a", ("0", "1", "2")), Attribute("b", ("0", "1")), Attribute("c", ("0", "1"))))
A, B, C = (attribute(name) for name in "abc")
CELLS = 12
PAID: list[tuple[Statement, int]] = [
    (Marginal(("a", "b")), 8),
    (Marginal(("b", "c")), 6),
    (Marginal(("a",)), 14),
    (Marginal(("a", "b")), 2),
]
TOLD: list[Statement] = [
    Marginal(("a", "b")),
    Marginal(("c",)),
    (A == "0") | ((A == "1") & (B == "1")),
    (B == "0") & (C == "1"),
    Marginal(("b",), where=A != "2"),
    Marginal(("a", "b"), where=(A == "0") | (B == "1")),
    ~(A == "1"),
]


def meaning(statement: Statement) -> Meaning:
    return meaning_of(compile_single(statement, SCHEMA), repr(statement).encode())


def rows(statement: Statement) -> np.ndarray:
    """The counts as sums over all possible records: float64[k, 12]."""
    compiled = compile_single(statement, SCHEMA)
    return np.stack([compiled.counts(np.eye(CELLS, dtype=np.int64)[cell]) for cell in range(CELLS)], axis=1)


def test_variances_are_those_of_least_squares() -> None:
    known = OwnPrecision()
    information = np.zeros((CELLS, CELLS))
    for statement, cost in PAID:
        known.learn(meaning(statement), cost)
        information += rows(statement).T @ rows(statement) * cost / 2
    for statement in TOLD:
        told = meaning(statement).told
        assert told is not None
        variances = known.variances(told)
        assert variances is not None
        asked = rows(statement)
        expected = np.einsum("ki,ij,kj->k", asked, np.linalg.pinv(information), asked)
        found = np.array([float(each) for each in variances])[told.squares[2]]
        turned = meaning(statement)
        if turned.told_opposite:  # nobody needs the number of all records for the other side
            others = 1 - asked
            expected = np.einsum("ki,ij,kj->k", others, np.linalg.pinv(information), others)
        assert found == pytest.approx(expected, abs=1e-12)


def test_what_no_table_tells_is_not_known() -> None:
    known = OwnPrecision()
    for statement, cost in PAID:
        known.learn(meaning(statement), cost)
    for statement in (Marginal(("a", "c")), (A == "0") & (C == "0"), Marginal(("a", "b", "c"))):
        assert known.known(meaning(statement)) == 0
    known.learn(meaning((A == "0") & (C == "0")), 7)
    assert known.known(meaning(~((C == "0") & (A == "0")))) == 7
    assert known.copy().known(meaning((A == "0") & (C == "0"))) == 7


def test_a_table_is_known_by_what_was_paid_for_it() -> None:
    known = OwnPrecision()
    known.learn(meaning(Marginal(("b", "a"))), 10)
    assert known.known(meaning(Marginal(("a", "b")))) == 5
    assert known.known(meaning(Marginal(("a",)))) == Fraction(5, 2)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (Marginal(("a", "b")), Marginal(("b", "a"))),
        (A == "0", ~((A == "1") | (A == "2"))),
        (A != "0", A == "0"),
        ((A == "0") & ((B == "0") | (B == "1")), A == "0"),
        (Marginal(("a",), where=(C == "0") | (C == "1")), Marginal(("a",))),
        (B == "0", B == "1"),
    ],
)
def test_spellings_share_a_meaning(one: Statement, other: Statement) -> None:
    assert meaning(one).key == meaning(other).key


def test_other_questions_have_other_meanings() -> None:
    said: list[Statement] = [
        A == "0",
        A == "1",
        B == "0",
        C == "0",
        Marginal(("a",)),
        Marginal(("a",), where=B == "0"),
    ]
    assert len({meaning(each).key for each in [*said, Marginal(("b",)), Marginal(("a", "b"))]}) == len(said) + 2
