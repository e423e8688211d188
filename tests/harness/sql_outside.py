"""Random SQL that DuckDB answers and that cannot be asked here: each query has one part beyond the subset."""

from __future__ import annotations

import random
from collections.abc import Callable

from equipoise.queries.schema import Schema
from harness.sql_queries import condition, query
from harness.sql_tables import NUMBERS

COLUMNS = ("carrier", "month", "delay", "day", "kind")
Draw = random.Random
_AGGREGATES = (
    "MIN(delay)",
    "MAX(carrier)",
    "MODE(kind)",
    "FIRST(delay)",
    "ANY_VALUE(month)",
    "LIST(carrier)",
    "STRING_AGG(kind, ',')",
    "COUNT(DISTINCT carrier)",
    "SUM(DISTINCT month)",
    "APPROX_COUNT_DISTINCT(kind)",
    "BOOL_AND(month = 1)",
    "BIT_XOR(month)",
    "PRODUCT(month)",
    "ARG_MAX(carrier, delay)",
    "HISTOGRAM(month)",
    "ENTROPY(month)",
    "KURTOSIS(delay)",
    "SUM(delay * month)",
    "SUM(CASE WHEN month = 1 THEN 7 ELSE 0 END)",
    "SUM(CASE WHEN month = 1 THEN delay ELSE 0 END)",
    "COUNT(*) OVER ()",
    "SUM(COUNT(*)) OVER (ORDER BY 1)",
    "ABS(COUNT(*))",
    "COUNT(*) % 2",
    "COUNT(*) // 2",
    "COUNT(*) ** 2",
    "COUNT(*)::VARCHAR",
    "CAST(COUNT(*) AS INTEGER)",
    "COALESCE(COUNT(*), 0)",
    "NULLIF(COUNT(*), 0)",
    "COUNT(*) > 3",
    "CASE WHEN COUNT(*) > 3 THEN 1 ELSE 0 END",
    "COUNT(*) || ' flights'",
    "RANDOM() * COUNT(*)",
    "NOW()",
    "CURRENT_DATE",
    "'a text'",
    "NULL",
    "(SELECT COUNT(*) FROM flights)",
    "COUNT(carrier || kind)",
    "COUNT(delay + 1)",
    "COUNT(UPPER(carrier))",
    "COUNT(carrier ORDER BY month)",
    "COUNT(*) FILTER (WHERE month IN (SELECT 1))",
    "{'a': COUNT(*)}",
    "[COUNT(*)]",
)
_CONDITIONS = (
    "carrier = kind",
    "delay = delay",
    "month + 1 = 2",
    "-month = 1",
    "ABS(delay) < 20",
    "UPPER(carrier) = 'AA'",
    "LENGTH(carrier) = 2",
    "carrier || 'x' = 'AAx'",
    "carrier ILIKE 'aa'",
    "carrier NOT ILIKE 'a%'",
    "carrier SIMILAR TO 'A+'",
    "carrier ~ 'A'",
    "REGEXP_MATCHES(carrier, 'A')",
    "carrier GLOB 'A*'",
    "carrier LIKE 'A%' ESCAPE '!'",
    "carrier LIKE kind",
    "STARTS_WITH(carrier, 'A')",
    "CONTAINS(carrier, 'A')",
    "carrier COLLATE NOCASE = 'aa'",
    "carrier IS DISTINCT FROM 'AA'",
    "month IS NOT DISTINCT FROM 1",
    "COALESCE(delay, 0) = 0",
    "IFNULL(kind, 'p') = 'p'",
    "EXTRACT(month FROM day) = 1",
    "YEAR(day) = 2013",
    "DATE_TRUNC('month', day) = DATE '2013-01-01'",
    "day > CURRENT_DATE",
    "day + INTERVAL 1 DAY = DATE '2013-01-01'",
    "CAST(month AS VARCHAR) = '1'",
    "month::DOUBLE = 1",
    "TRY_CAST(carrier AS INTEGER) = 1",
    "month = ANY ([1, 2])",
    "month IN (SELECT 1)",
    "month IN (1, 1 + 1)",
    "EXISTS (SELECT 1)",
    "month = (SELECT 1)",
    "(month, kind) = (1, 'p')",
    "(month, kind) IN ((1, 'p'))",
    "month BETWEEN delay AND 2",
    "RANDOM() < 0.5",
    "delay >= 1.25 AND delay < 2.5",
    "delay <= 7 AND delay >= 0",
    "delay = 3.5",
    "day >= DATE '2013-01-15' AND day < DATE '2013-02-01'",
    "carrier = 'QQ'",
    "month = 5",
    "month IN (1, 12)",
    "CASE WHEN month = 1 THEN TRUE ELSE FALSE END",
    "carrier",
    "month & 1 = 1",
    "delay < 'infinity'::DOUBLE",
    "ROW(month) = ROW(1)",
    "LIST_CONTAINS([1, 2], month)",
    "rowid = 1",
    "month = 1 AND COUNT_ME(month) = 1",
)
_FROM = (
    "FROM flights f, flights g",
    "FROM flights f JOIN flights g ON f.month = g.month",
    "FROM flights f LEFT JOIN flights g USING (month)",
    "FROM flights NATURAL JOIN flights g",
    "FROM flights f CROSS JOIN flights g",
    "FROM flights f ASOF JOIN flights g ON f.delay >= g.delay",
    "FROM (SELECT * FROM flights)",
    "FROM (SELECT * FROM flights WHERE month = 1) f",
    "FROM flights, LATERAL (SELECT 1) z",
    "FROM flights, UNNEST([1, 2]) z",
    "FROM range(3)",
    "FROM main.flights",
    "FROM memory.main.flights",
    "FROM flights f (a, b, c, d, e)",
    "FROM flights TABLESAMPLE 10 PERCENT",
    "FROM (VALUES (1)) z",
    "FROM read_csv('/dev/null')",
    "FROM '/dev/null'",
)
_TAILS = (
    " OFFSET 1",
    " LIMIT 1 OFFSET 1",
    " LIMIT 10 PERCENT",
    " LIMIT (SELECT 1)",
    " LIMIT 1 + 1",
    " USING SAMPLE 3",
    " UNION SELECT 1",
    " UNION ALL SELECT 1",
    " INTERSECT SELECT 1",
    " EXCEPT SELECT 1",
    " ORDER BY ALL",
    " ORDER BY RANDOM()",
    " ORDER BY 1 COLLATE NOCASE",
    " QUALIFY ROW_NUMBER() OVER () = 1",
    " WINDOW w AS (ORDER BY 1)",
)
_GROUPS = (
    "carrier ORDER BY ALL",
    "ALL",
    "ROLLUP (carrier, month)",
    "CUBE (carrier, month)",
    "GROUPING SETS ((carrier), ())",
    "UPPER(carrier)",
    "month + 1",
    "month % 2",
    "YEAR(day)",
    "delay > 0",
    "CAST(month AS VARCHAR)",
    "(carrier, month)",
    "CASE WHEN month = 1 THEN 1 ELSE 'many' END",
    "CASE WHEN month = 1 THEN kind END",
    "CASE WHEN month = 1 THEN 1 + 1 END",
)
_HAVING = (
    "carrier = 'AA'",
    "MAX(delay) > 3",
    "COUNT(DISTINCT kind) > 1",
    "COUNT(*) IN (1, 2)",
    "COUNT(*) > (SELECT 1)",
    "COUNT(*) IS NOT NULL",
    "TRUE",
    "COUNT(*) % 2 = 0",
)
_WHOLE = (
    "SELECT * FROM flights",
    "SELECT carrier FROM flights",
    "SELECT flights.* FROM flights",
    "SELECT COLUMNS(*) FROM flights",
    "SELECT * EXCLUDE (kind) FROM flights",
    "SELECT DISTINCT carrier FROM flights",
    "SELECT DISTINCT ON (carrier) carrier, month FROM flights",
    "SELECT 1",
    "FROM flights",
    "WITH z AS (SELECT * FROM flights) SELECT COUNT(*) FROM z",
    "WITH RECURSIVE z AS (SELECT 1) SELECT COUNT(*) FROM flights",
    "(SELECT COUNT(*) FROM flights)",
    "VALUES (1)",
    "TABLE flights",
    "INSERT INTO flights SELECT * FROM flights",
    "INSERT INTO flights VALUES ('AA', 1, 0, NULL, 'p')",
    "UPDATE flights SET month = 1",
    "DELETE FROM flights",
    "TRUNCATE flights",
    "DROP TABLE flights",
    "CREATE TABLE z AS SELECT COUNT(*) FROM flights",
    "CREATE VIEW z AS SELECT COUNT(*) FROM flights",
    "ALTER TABLE flights ADD COLUMN z INTEGER",
    "COPY flights TO '/dev/null'",
    "COPY (SELECT COUNT(*) FROM flights) TO '/dev/null'",
    "PRAGMA version",
    "SET threads = 1",
    "SHOW TABLES",
    "DESCRIBE flights",
    "SUMMARIZE flights",
    "ATTACH ':memory:' AS z",
    "CALL pragma_version()",
    "BEGIN",
    "PIVOT flights ON month USING COUNT(*)",
    "UNPIVOT flights ON month INTO NAME n VALUE v",
    "SELECT COUNT(*) INTO z FROM flights",
)


def outside(draw: Draw, schema: Schema) -> str:
    """A query with something that cannot be asked."""
    makers: tuple[Callable[[Draw], str], ...] = (
        _selected,
        _selected,
        _where,
        _where,
        _from,
        _tail,
        _group,
        _having,
    )
    if draw.random() < 0.1:
        return draw.choice(_WHOLE)
    if draw.random() < 0.1:  # a comma and whatever follows, after one that could be asked
        return f"{query(draw, schema)}; {draw.choice(_WHOLE)}"
    return draw.choice(makers)(draw)


def _inside(draw: Draw) -> str:
    return draw.choice((condition(draw), "kind = 'p'", f"month IN ({', '.join(NUMBERS)})", "delay IS NULL"))


def _selected(draw: Draw) -> str:
    """A number that is none of the subset, between some that are."""
    numbers = [draw.choice(_AGGREGATES), *draw.sample(("COUNT(*)", "COUNT(month)", "2 * COUNT(*)"), 2)]
    draw.shuffle(numbers)
    return f"SELECT {', '.join(numbers)} FROM flights" + draw.choice(("", f" WHERE {_inside(draw)}"))


def _where(draw: Draw) -> str:
    """A condition that is none of the subset, within others."""
    text = f"({draw.choice(_CONDITIONS)})"
    for _ in range(draw.randint(0, 3)):
        join = draw.choice((" AND ", " OR "))
        text = draw.choice((f"NOT {text}", f"({text}{join}{_inside(draw)})", f"({_inside(draw)}{join}{text})"))
    return draw.choice(
        (
            f"SELECT COUNT(*) FROM flights WHERE {text}",
            f"SELECT COUNT(*) FILTER (WHERE {text}) FROM flights",
            f"SELECT COUNT_IF({text}) FROM flights WHERE {_inside(draw)}",
            f"SELECT SUM(CASE WHEN {text} THEN 1 ELSE 0 END) FROM flights",
            f"SELECT CASE WHEN {text} THEN 'a' END, COUNT(*) FROM flights GROUP BY 1",
        )
    )


def _from(draw: Draw) -> str:
    return f"SELECT COUNT(*) AS n {draw.choice(_FROM)}"


def _tail(draw: Draw) -> str:
    return f"SELECT COUNT(*) FROM flights{draw.choice(_TAILS)}"


def _group(draw: Draw) -> str:
    return f"SELECT COUNT(*) AS n FROM flights WHERE {_inside(draw)} GROUP BY {draw.choice(_GROUPS)}"


def _having(draw: Draw) -> str:
    return f"SELECT carrier, COUNT(*) FROM flights GROUP BY carrier HAVING {draw.choice(_HAVING)}"
