"""A statement that is read by its parts means what it means when it is read whole."""

from __future__ import annotations

import random

import pytest
from harness.sql_queries import query
from harness.sql_tables import random_schema

from equipoise.errors import InvalidArgument
from equipoise.queries.predicates import Among
from equipoise.queries.schema import Attribute, Schema
from equipoise.queries.schema_checks import bin_labels
from equipoise.queries.statements import Marginal
from equipoise.questions.sql import StatementReader, questions_from_sql
from equipoise.questions.sql_division import Joined, Part, UndividedError, Where, divided, whole
from equipoise.questions.sql_text import SqlStatement, statements_of
from equipoise.questions.sql_tree import KEYWORDS


def statement(text: str) -> SqlStatement:
    (found,) = statements_of(text, frozenset({"A", "B", "C"}), KEYWORDS)
    return found


def shown(where: Where | None) -> str:
    """A condition with its parts in brackets, each as it is parsed."""
    if isinstance(where, Joined):
        parts = f" {where.word} ".join(map(shown, where.parts))
        return f"[{f'NOT {parts}' if where.word == 'NOT' else parts}]"
    assert isinstance(where, Part)
    return " ".join(where.statement.tokens[slice(*where.span)])


@pytest.mark.parametrize(
    ("condition", "parts"),
    [
        ("a = 1 OR b = 2 AND c = 3", "[a = 1 OR [b = 2 AND c = 3]]"),
        ("a BETWEEN 1 AND 2 AND b = 3", "[a BETWEEN 1 AND 2 AND b = 3]"),
        ("a NOT BETWEEN 1 AND 2 OR b = 3", "[a NOT BETWEEN 1 AND 2 OR b = 3]"),
        ("(a = 1 OR b = 2) AND (c = 3)", "[[a = 1 OR b = 2] AND c = 3]"),
        ("(a = 1) OR (b = 2)", "[a = 1 OR b = 2]"),
        ("(a = 1 OR b = 2) IS TRUE", "( a = 1 OR b = 2 ) IS TRUE"),
        ("NOT (a = 1) AND b = 2", "[[NOT a = 1] AND b = 2]"),
        ("NOT a = 1 AND b = 2", "[NOT a = 1 AND b = 2]"),
        ("(a = 1) = (b = 2)", "( a = 1 ) = ( b = 2 )"),
        ("NOT (a = 1) IS TRUE", "NOT ( a = 1 ) IS TRUE"),
        ("CASE WHEN a = 1 AND b = 2 THEN 1 END = 1", "CASE WHEN a = 1 AND b = 2 THEN 1 END = 1"),
    ],
)
def test_conditions_are_parted_where_sql_parts_them(condition: str, parts: str) -> None:
    assert shown(divided(statement(f"SELECT COUNT(*) FROM t WHERE {condition}")).where) == parts


@pytest.mark.parametrize(
    "text",
    [
        "FROM t SELECT COUNT(*)",
        "SELECT COUNT(*) FROM t UNION SELECT COUNT(*) FROM t",
        "WITH z AS (SELECT 1) SELECT COUNT(*) FROM t",
        "SELECT COUNT(*) FROM t WHERE a = 1 XOR b = 2",
        "SELECT COUNT(*) FROM t GROUP BY a WHERE b = 1",
    ],
)
def test_what_has_clauses_in_another_order_is_not_divided(text: str) -> None:
    with pytest.raises(UndividedError):
        divided(statement(text))


@pytest.mark.parametrize(
    "text", ["SELECT COUNT(*), FROM t", "SELECT a, DISTINCT b FROM t", "SELECT DISTINCT a FROM t"]
)
def test_what_a_part_alone_would_mean_otherwise_is_not_read_by_parts(text: str) -> None:
    with pytest.raises((UndividedError, InvalidArgument)):
        [each.tree for each in divided(statement(text)).items]


@pytest.mark.thin(3)
@pytest.mark.parametrize("seed", range(12))
def test_parts_mean_together_what_the_whole_means(seed: int) -> None:
    draw = random.Random(seed)
    schema = random_schema(draw)
    text = ";".join(query(draw, schema) for _ in range(25))
    reader, read = StatementReader(schema, "flights"), 0
    for each in statements_of(text, frozenset(map(str.upper, schema.names)), KEYWORDS):
        try:
            meant = reader.read(whole(each))
        except InvalidArgument:
            with pytest.raises(InvalidArgument):
                reader.read(divided(each))
            continue
        assert reader.read(divided(each)) == meant
        read += 1
    assert read


def test_what_a_statement_means_does_not_depend_on_those_before() -> None:
    delay = Attribute("delay", bin_labels((0.0, 15.0, 60.0)), (0.0, 15.0, 60.0))
    schema = Schema((Attribute("month", ("1", "2")), delay))
    by_month = "SELECT month, {} AS n FROM t GROUP BY month HAVING n > 5 ORDER BY n"
    texts = [by_month.format(each) for each in ("COUNT(*)", "SUM(delay)", "COUNT_IF(delay < 15)")]
    together = questions_from_sql(";".join(texts), schema)
    assert together == tuple(questions_from_sql(each, schema)[0] for each in texts)
    assert len({each.having for each in together}) == len(texts)
    with pytest.raises(InvalidArgument, match="is in GROUP BY"):
        questions_from_sql("SELECT SUM(delay) FROM t; SELECT SUM(delay) FROM t GROUP BY delay", schema)


def test_words_that_sql_needs_may_name_attributes() -> None:
    schema = Schema((Attribute("first", ("x", "y")), Attribute("month", ("1", "2"))))
    text = (
        "SELECT first, COUNT(*) AS within FROM t WHERE month = 2 GROUP BY first, month ORDER BY month NULLS FIRST"
    )
    (question,) = questions_from_sql(text, schema)
    assert question.statements == (Marginal(("first", "month"), Among("month", ("2",))),)
    assert [each.name for each in question.outputs] == ["first", "within"]


@pytest.mark.parametrize(
    ("text", "same"),
    [
        ("month = +1", "month = 1"),
        ("month BETWEEN +1 AND +2", "month BETWEEN 1 AND 2"),
        ("month NOT BETWEEN 1 AND 2 IS NOT TRUE", "(NOT (month BETWEEN 1 AND 2)) IS NOT TRUE"),
        ("month <> 1", "month != 1"),
    ],
)
def test_what_is_sql_in_another_way_is_no_repair(text: str, same: str) -> None:
    schema = Schema((Attribute("month", ("1", "2", "3")),))
    one, other = (questions_from_sql(f"SELECT COUNT(*) FROM t WHERE {each}", schema)[0] for each in (text, same))
    assert one.statements == other.statements
