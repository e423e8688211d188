"""What SQL cannot ask is refused in one clear line with its place, whatever the text."""

from __future__ import annotations

import pytest

from equipoise import Attribute, Marginal, Schema, attribute
from equipoise.errors import InvalidArgument
from equipoise.queries.schema_checks import bin_labels
from equipoise.questions.sql import questions_from_sql

EDGES = (0.0, 15.0, 60.0)
SCHEMA = Schema(
    (
        Attribute(
            "origin", ("EWR", "JFK", "none", "other"), missing="none", unknown="other", codes=(("11618", "EWR"),)
        ),
        Attribute("month", ("1", "2", "10")),
        Attribute("delay", (*bin_labels(EDGES), "none", "outside"), EDGES, missing="none", unknown="outside"),
    )
)
REFUSED = {
    "SELECT * FROM t": "single records",
    "SELECT origin FROM t": "GROUP BY",
    "SELECT origin FROM t GROUP BY origin": "COUNT",
    "SELECT COUNT(*) FROM t WHERE origin = \u2018JFK\u2019": "write 'text'",
    "SELECT COUNT(*) FROM `t`": 'write "name"',
    "SELECT COUNT(*) FROM t JOIN s ON t.month = s.month": "view",
    "SELECT COUNT(*) FROM t, s": "view",
    "SELECT COUNT(*) OVER () FROM t": "windows",
    "SELECT COUNT(DISTINCT origin) FROM t": "CountDistinct",
    "SELECT COUNT(*) FROM (SELECT * FROM t)": "subquery",
    "SELECT COUNT(*) FROM t WHERE origin IN (SELECT origin FROM t)": "list the values",
    "SELECT COUNT(*) FROM t UNION SELECT COUNT(*) FROM t": "UNION",
    "WITH z AS (SELECT 1) SELECT COUNT(*) FROM t": "WITH",
    "SELECT DISTINCT COUNT(*) FROM t": "DISTINCT",
    "SELECT COUNT(*) FROM t LIMIT 1 OFFSET 1": "OFFSET",
    "SELECT COUNT(*) FROM t TABLESAMPLE 10": "sample",
    "SELECT AVG(delay) FROM t": "leave them out by WHERE",
    "SELECT my_own(delay) FROM t": "function",
    "SELECT COUNT(*) FROM t WHERE delay >= 15": "name both ends",
    "SELECT COUNT(*) FROM t WHERE delay > 15 AND delay < 60": "`>= 15` or `>= 60`",
    "SELECT COUNT(*) FROM t WHERE origin = 'LGA'": "no category",
    "SELECT COUNT(*) FROM t WHERE origin = '11618'": "is a code in the table; write 'EWR'",
    "SELECT COUNT(*) FROM t WHERE origin = 'none'": "IS NULL",
    "SELECT COUNT(*) FROM t WHERE origin = 'other'": "NOT IN",
    "SELECT COUNT(*) FROM t WHERE origin LIKE 'J%'": "list the values",
    "SELECT COUNT(*) FROM t WHERE origin = month": "two columns",
    "SELECT COUNT(*) FROM t WHERE origin = JFK": "single quotes: 'JFK'",
    'SELECT COUNT(*) FROM t WHERE origin = "JFK"': "single quotes: 'JFK'",
    "SELECT origin, COUNT(*) FROM t GROUP BY ALL": "names of attributes",
    "SELECT origin, COUNT(*) FROM t GROUP BY ROLLUP(origin)": "each by itself",
    "SELECT origin, COUNT(*) FROM t GROUP BY CUBE(origin)": "each by itself",
    "SELECT UPPER(origin), COUNT(*) FROM t GROUP BY 1": "CASE WHEN",
    "SELECT COALESCE(origin, 'x'), COUNT(*) FROM t GROUP BY 1": "CASE WHEN",
    "SELECT IF(month = 1, 'a', 'b') AS x, COUNT(*) FROM t GROUP BY x": "CASE WHEN",
    "SELECT EXTRACT(month FROM month), COUNT(*) FROM t GROUP BY 1": "CASE WHEN with dates",
    "SELECT date_trunc('month', month), COUNT(*) FROM t GROUP BY 1": "CASE WHEN with dates",
    "SELECT APPROX_QUANTILE(month, 0.9) FROM t": "QUANTILE_CONT",
    "SELECT corr(month, delay) FROM t": "derived.correlation",
    "SELECT mode(origin) FROM t": "LIMIT 1",
    "SELECT LIST(origin) FROM t": "which takes COUNT, SUM",
    "SELECT COUNT(*) FROM t WHERE EXISTS (SELECT 1 FROM t)": "into WHERE",
    "SELECT COUNT(*) FROM t WHERE month = ANY (1, 2)": "with IN",
    "SELECT COUNT(*) FROM t WHERE origin REGEXP 'J.*'": "LIKE",
    "SELECT origin, COUNT(*) FROM t GROUP BY origin FETCH FIRST 2 ROWS ONLY": "LIMIT",
    "SELECT COUNT() FROM t": "an attribute",
    "SELECT COUNT(*) FROM t WHERE month + 1 = 2": "write CASE",
    "SELECT COUNT(*) FROM t WHERE origin = 5": "quotes",
    "SELECT COUNT(*) FROM t WHERE month = 3": "no category",
    "SELECT COUNT(*) FROM t WHERE delay BETWEEN 'a' AND 'b'": "without quotes",
    "SELECT COUNT(*) FROM t WHERE town = 'x'": "no attribute",
    "SELECT COUNT(*) AS month FROM t ORDER BY month": "another one",
    "SELECT COUNT(*) AS a, COUNT(*) AS A FROM t": "same name",
    "DROP TABLE t": "SELECT",
    "SELECT COUNT(origin, month) FROM t": "this cannot be answered",
    "SELECT COUNT(*) FROM t GROUP BY ALL": "ALL",
    "CALL z()": "begins with SELECT",
    "SELECT COUNT(*) AS 'n' FROM t": "a name is a word",
    "SELECT COUNT(*) AS 5 FROM t": "a name is a word",
    "SELECT COUNT(*) FROM 't'": "a name is a word",
    "SELECT 1 FROM t": "nothing is counted",
    "SELECT month, COUNT(*) FROM t GROUP BY 1.0": "no column",
    "SELECT month, COUNT(*) FROM t GROUP BY ROLLUP (month)": "ROLLUP",
    "SELECT COUNT(*) FROM t WHERE origin ILIKE 'j%'": "IN",
    "SELECT MAX(delay) FROM t": "one person's",
    "SELECT SUM(delay * (1 - month)) FROM t": "register it as a column",
    "SELECT COUNT(*) FROM t; \0": "NUL",
    "SELECT COUNT(*) FROM t WHERE origin = 'JFK": "never closed",
    "SELECT COUNT(*) FROM t /* a /* b */ */": "comment",
    "SELECT COUNT(*) FROM t WHERE origin = E'JFK'": "space is missing",
    "SELECT COUNT(*) FROM t WHERE $1": "nothing outside of quotes",
    "SELECT " + "(" * 1_000 + "1" + ")" * 1_000 + " FROM t": "nested deeper",
    "SELECT " + "(" * 10_000 + "1" + ")" * 10_000 + " FROM t": "words and signs",
    "SELECT COUNT(*) FROM t WHERE " + "NOT " * 3_900 + "month = 1": "nested too deeply",
    "SELECT COUNT(*) FROM t WHERE month = 1 " + "OR month = 1 " * 100_000: "words and signs",
    "SELECT '" + "x" * 1_000_000 + "'": "longer than",
    "SELECT COUNT(*),, COUNT(month) FROM t": "a comma stands between",
    "SELECT , COUNT(*) FROM t": "a comma stands between",
    "SELECT COUNT(*) FROM t WHERE month IN (1, 2,)": "a comma stands between",
    "SELECT COUNT(*) FROM t WHERE month BETWEEN 1 2": "side by side",
    "SELECT SUM(CASE WHEN month = 1 1 ELSE 0 END) FROM t": "side by side",
    "SELECT SUM(CASE origin WHEN 'JFK' 5 END) FROM t": "side by side",
    "SELECT COUNT(*) FROM t WHERE origin IN ('JFK' 'EWR')": "side by side",
    "SELECT COUNT(*) FROM t LIMIT 1 WHERE month = 1": "in this order",
    "SELECT COUNT(*) FROM t HAVING COUNT(*) > 1 WHERE month = 1": "in this order",
    "SELECT MEDIAN(month) AS FROM t": "cannot be read",
    "SELECT COUNT(*) AS, COUNT(month) FROM t": "AS means nothing",
    "SELECT COUNT(*) FROM t WHERE + (month = 1)": "+ means nothing",
    "SELECT COUNT(*) FROM t GROUP GROUP BY month": "in double quotes",
    "SELECT COUNT(*) FROM t TRUE WHERE month = 1": "in double quotes",
    "SELECT COUNT(*) FROM t WHERE origin NOT IS NULL": "write IS NOT",
    "SELECT month month, COUNT(*) FROM t GROUP BY month": "side by side",
    "SELECT COUNT(CASE WHEN origin IS NULL 1 END) FROM t": "maybe THEN is missing",
    "\u017fELECT COUNT(*) FROM t": "stands for nothing",
    "SELECT COUNT(*) FROM t l\u0131m\u0131t 0": "stands for nothing",
    "SELECT\x1cCOUNT(*) FROM t": "stands for nothing",
    "SELECT COUNT(*) FROM t WHERE month = DATE '1'": "has no dates",
    "": "no statement",
    " -- nothing\n;;": "no statement",
}


@pytest.mark.parametrize(("text", "said"), REFUSED.items(), ids=[text[:60] or "empty" for text in REFUSED])
def test_refused_with_the_place_and_with_what_to_do_instead(text: str, said: str) -> None:
    with pytest.raises(InvalidArgument) as refusal:
        questions_from_sql(text, SCHEMA)
    assert refusal.value.field.startswith("sql")
    assert said in refusal.value.problem
    assert "9000000" not in refusal.value.problem


PLACES = {
    "SELECT origin, COUNT(*), STRING_AGG(origin, 'x') FROM t GROUP BY origin": "origin, 'x'",
    "SELECT origin, COUNT(*), NULL FROM t GROUP BY origin": "NULL",
    "SELECT COUNT(*) FROM t ORDER BY ALL": "ALL",
    "SELECT COUNT(*) FROM t LIMIT 10 PERCENT": "PERCENT",
    "SELECT COUNT(*) FROM t UNION SELECT 1": "UNION",
    "SELECT COUNT(*) FROM t WHERE origin = 'JFK' AND delay >= 1.5 AND delay < 15": "delay",
    "SELECT origin, COUNT(*) FROM t GROUP BY origin HAVING TRUE": "TRUE",
    "SELECT origin, COUNT(*) FROM t WHERE month > CURRENT_DATE GROUP BY origin": "CURRENT_DATE",
}


@pytest.mark.parametrize(("text", "at"), PLACES.items())
def test_the_place_is_that_of_what_is_refused(text: str, at: str) -> None:
    with pytest.raises(InvalidArgument) as refusal:
        questions_from_sql(text, SCHEMA)
    assert refusal.value.field == f"sql, line 1, column {text.index(at) + 1}"


def test_missing_values_are_in_neither_a_condition_nor_its_negation() -> None:
    (one,) = questions_from_sql("SELECT COUNT(*) FROM t WHERE NOT (origin = 'JFK')", SCHEMA)
    assert one.statements == (attribute("origin").isin(["EWR", "other"]),)


def test_a_number_may_have_the_name_of_an_attribute_where_nothing_could_mean_either() -> None:
    (question,) = questions_from_sql("SELECT origin, AVG(month) AS month FROM t GROUP BY origin", SCHEMA)
    assert [each.name for each in question.outputs] == ["origin", "month"]


def test_comments_and_case_change_nothing() -> None:
    text = "select ORIGIN, count ( * ) /* ; ' */ from T -- it's\n group by Origin"
    (question,) = questions_from_sql(text, SCHEMA)
    assert question.statements == (Marginal(("origin",)),)


def test_a_comment_ends_with_its_line_however_that_ends() -> None:
    for end in ("\n", "\r", "\r\n"):
        (question,) = questions_from_sql(f"SELECT COUNT(*) FROM t -- all{end}WHERE origin = 'JFK'", SCHEMA)
        assert question.statements == (attribute("origin") == "JFK",)
