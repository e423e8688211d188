"""The statements file: read back as written, and refused by name."""

from __future__ import annotations

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from equipoise.errors import InvalidArgument
from equipoise.queries.predicates import AllOf, Among, AnyOf, Interval, Not, Predicate
from equipoise.queries.statements import CappedSum, CountDistinct, Marginal, Quantile, Statement, Sum, Variance
from equipoise.queries.statements_file import statements_from_json, statements_to_json

NAMES = st.text(st.characters(codec="utf-8"), min_size=1, max_size=5)
LISTS = st.lists(NAMES, min_size=1, max_size=3, unique=True).map(tuple)
EDGES = st.floats(allow_nan=False, min_value=-1e9, max_value=1e9)
LOWS, HIGHS = EDGES | st.just(-math.inf), EDGES | st.just(math.inf)
CONDITIONS: st.SearchStrategy[Predicate] = st.recursive(
    st.builds(Among, NAMES, LISTS) | st.builds(Interval, NAMES, LOWS, HIGHS),
    lambda inner: (
        st.builds(AllOf, st.lists(inner, min_size=1, max_size=3).map(tuple))
        | st.builds(AnyOf, st.lists(inner, min_size=1, max_size=3).map(tuple))
        | st.builds(Not, inner)
    ),
    max_leaves=6,
)
ENDS = st.none() | EDGES
OTHERS: st.SearchStrategy[Statement] = (
    st.builds(Marginal, LISTS, st.none() | CONDITIONS)
    | st.builds(Sum, st.just("summed"), st.just(()) | LISTS, st.none() | CONDITIONS, ENDS, ENDS)
    | st.builds(Quantile, NAMES, EDGES, EDGES)
    | st.builds(Variance, NAMES)
    | st.builds(CountDistinct, LISTS)
    | st.builds(CappedSum, NAMES, EDGES)
)


@pytest.mark.slow
@given(st.lists(CONDITIONS | OTHERS, min_size=1, max_size=4))
def test_reads_back_what_was_written(statements: list[Statement]) -> None:
    assert statements_from_json(statements_to_json(statements)) == tuple(statements)


AMONG: dict[str, object] = {"among": {"attribute": "a", "categories": ["x"]}}


@pytest.mark.parametrize(
    ("statement", "field"),
    [
        ({"marginal": []}, "statements[0].marginal"),
        ({"marginal": ["a", 1]}, "statements[0].marginal[1]"),
        ({"marginal": ["a", "a"]}, "statements[0].marginal[1]"),
        ({"count_distinct": ["a", "b", "a"]}, "statements[0].count_distinct[2]"),
        ({"marginal": ["a"], "where": None}, "statements[0].where"),
        ({"marginal": ["a"], "where": {"marginal": ["a"]}}, "statements[0].where.marginal"),
        ({"marginal": ["a"], "where": {"all": []}}, "statements[0].where.all"),
        ({"marginal": ["a"], "when": AMONG}, "statements[0]"),
        ({"where": AMONG}, "statements[0].where"),
        ({**AMONG, "where": AMONG}, "statements[0]"),
        ({"among": {"attribute": "a"}}, "statements[0].among"),
        ({"among": {"attribute": 1, "categories": ["x"]}}, "statements[0].among.attribute"),
        ({"interval": {"attribute": "a", "low": "x", "high": None}}, "statements[0].interval.low"),
        ({"interval": {"attribute": "a", "low": 0, "high": math.nan}}, "statements"),
        ({"interval": {"attribute": "a", "low": True, "high": 1}}, "statements[0].interval.low"),
        ({"interval": {"attribute": "a", "low": 10**400, "high": None}}, "statements[0].interval.low"),
        ({"all": []}, "statements[0].all"),
        ({"any": [AMONG, {"marginal": ["a"]}]}, "statements[0].any[1].marginal"),
        ({"not": [AMONG]}, "statements[0].not"),
        ({"either": [AMONG]}, "statements[0].either"),
        ({**AMONG, "not": AMONG}, "statements[0]"),
        ([], "statements[0]"),
        ({"not": {"variance": {"attribute": "a"}}}, "statements[0].not.variance"),
        ({"quantile": {"attribute": "a", "level": 0.5}}, "statements[0].quantile"),
        ({"quantile": {"attribute": "a", "level": math.nan, "window": 0.1}}, "statements"),
        ({"quantile": {"attribute": "a", "level": 0.5, "window": None}}, "statements[0].quantile.window"),
        ({"variance": {"attribute": 7}}, "statements[0].variance.attribute"),
        ({"count_distinct": []}, "statements[0].count_distinct"),
        ({"capped_sum": {"attribute": "a", "cap": True}}, "statements[0].capped_sum.cap"),
        ({"sum": ["a"]}, "statements[0].sum"),
        ({"sum": "a", "by": []}, "statements[0].by"),
        ({"sum": "a", "by": ["b", "b"]}, "statements[0].by[1]"),
        ({"sum": "a", "by": ["a"]}, "statements[0].by"),
        ({"sum": "a", "low": None}, "statements[0].low"),
        ({"sum": "a", "high": True}, "statements[0].high"),
        ({"sum": "a", "where": {"sum": "a"}}, "statements[0].where.sum"),
        ({"sum": "a", "cap": 3}, "statements[0]"),
    ],
)
def test_a_malformed_statement_is_refused_by_name(statement: object, field: str) -> None:
    with pytest.raises(InvalidArgument) as refused:
        statements_from_json(json.dumps({"version": 1, "statements": [statement]}))
    assert refused.value.field == field


@pytest.mark.parametrize(
    ("text", "field"),
    [
        ("", "statements"),
        ("[" * 100_000, "statements"),
        ("[]", "statements file"),
        ('{"version": 1}', "statements file"),
        ('{"version": 1, "statements": [], "seed": 1}', "statements file"),
        ('{"version": 2, "statements": []}', "version"),
        ('{"version": true, "statements": []}', "version"),
        ('{"version": 1, "statements": []}', "statements"),
        ('{"version": 1, "statements": {}}', "statements"),
    ],
)
def test_a_malformed_file_is_refused_by_name(text: str, field: str) -> None:
    with pytest.raises(InvalidArgument) as refused:
        statements_from_json(text)
    assert refused.value.field == field


def test_nesting_has_an_end() -> None:
    statement: dict[str, object] = AMONG
    for _ in range(70):
        statement = {"not": statement}
    for deep in (statement, {"marginal": ["a"], "where": statement}):
        with pytest.raises(InvalidArgument, match="nested deeper"):
            statements_from_json(json.dumps({"version": 1, "statements": [deep]}))
