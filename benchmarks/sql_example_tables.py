"""The tables that `benchmarks/sql_examples.py` asks: all flights of 2013, and made ones.

Those of the tutorials have their columns, as far as a schema can have them, and rows of our own.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, timedelta
from pathlib import Path

import duckdb

from equipoise.queries.dates import seconds_of
from equipoise.queries.schema import Attribute, Schema
from equipoise.queries.schema_checks import bin_labels
from equipoise_lab.demo.table import SCHEMA as DEMO
from equipoise_lab.demo.table import unpack_table

ROWS = 400_000  # of each made table
MEMBERS_ROWS = 50_000  # of those of members and of the census
PHRASES = ("weather", "train times", "recipes", "news", "maps", "football")


def binned(name: str, edges: Sequence[float], missing: str = "") -> Attribute:
    """An attribute with bins, and with a category for missing values if it is named."""
    bounds = tuple(map(float, edges))
    return Attribute(name, (*bin_labels(bounds), *filter(None, [missing])), bounds, missing=missing)


def dated(name: str, days: Sequence[date]) -> Attribute:
    """An attribute with bins of dates."""
    bounds = tuple(float(seconds_of(name, each.isoformat())) for each in days)
    return Attribute(name, bin_labels(bounds, True), bounds, dates=True)


FLIGHTS = Schema(
    (
        DEMO.attribute("carrier"),
        DEMO.attribute("origin"),
        DEMO.attribute("month"),
        binned("dep_delay", (-60, *range(-15, 181, 5), 1500), missing="not flown"),
        binned("distance", range(0, 5001, 100)),
    )
)
LINEITEM = Schema(
    (
        Attribute("l_returnflag", ("A", "N", "R")),
        Attribute("l_linestatus", ("F", "O")),
        Attribute("l_quantity", tuple(map(str, range(1, 51)))),
        binned("l_extendedprice", range(0, 105_001, 1_000)),
        Attribute("l_discount", tuple(str(each / 100) for each in range(11))),
        dated("l_shipdate", [date(1992 + month // 12, 1 + month % 12, 1) for month in range(85)]),
        binned("revenue", range(0, 10_501, 100)),
    )
)
HITS = Schema(
    (
        Attribute("AdvEngineID", tuple(map(str, range(0, 31)))),
        Attribute("RegionID", tuple(map(str, range(1, 21)))),
        binned("ResolutionWidth", range(0, 2_001, 50)),
        Attribute("MobilePhoneModel", ("none", "nokia", "iphone", "galaxy", "others"), unknown="others"),
        Attribute("SearchEngineID", tuple(map(str, range(0, 5)))),
        Attribute("SearchPhrase", ("none", *PHRASES, "others"), unknown="others"),
        Attribute("IsRefresh", ("0", "1")),
        Attribute("UrlHasGoogle", ("no", "yes")),
        dated("EventDate", [date(2013, 7, 1) + timedelta(days=each) for each in range(32)]),
    )
)
EDUCATION = (
    "up-to-high-school",
    "high-school-diploma",
    "bachelors-associate",
    "masters-degree",
    "doctorate-professional",
)
MEMBERS = Schema(
    (
        Attribute("age", tuple(map(str, range(121)))),
        Attribute("gender", ("female", "male", "nonbinary", "unspecified")),
        Attribute("education_level", EDUCATION),
        binned("books_borrowed", (*range(0, 201, 5), 500, 5_000)),
        Attribute("city", ("Durham", "Raleigh", "Chapel Hill", "Cary", "others"), unknown="others"),
    )
)
TITLES = tuple(f"book {number}" for number in range(1, 41))
CHECKOUTS = Schema((Attribute("title", TITLES), Attribute("month", tuple(map(str, range(1, 13))))))
PUMS = Schema(
    (
        Attribute("age", tuple(map(str, range(101)))),
        Attribute("sex", ("0", "1")),
        Attribute("educ", tuple(map(str, range(1, 17)))),
        Attribute("race", tuple(map(str, range(1, 7)))),
        binned("income", (*range(0, 200_001, 1_000), 500_000)),
        Attribute("married", ("0", "1")),
    )
)
SCHEMAS = {
    "flights": FLIGHTS,
    "lineitem": LINEITEM,
    "hits": HITS,
    "members": MEMBERS,
    "checkouts": CHECKOUTS,
    "pums": PUMS,
}


def connected(directory: Path) -> duckdb.DuckDBPyConnection:
    """DuckDB with all tables.

    Args:
        directory: where the flights are unpacked.
    """
    connection = duckdb.connect()
    connection.execute("SET threads = 1")  # random numbers come in one order
    connection.execute("SELECT setseed(0.5)")
    unpack_table(directory / "flights.csv")
    connection.execute(
        f"CREATE TABLE flights AS SELECT carrier, origin, month, dep_delay, distance "
        f"FROM read_csv('{directory / 'flights.csv'}', nullstr=['NA', ''])"
    )
    connection.execute(
        f"""CREATE TABLE lineitem AS
        SELECT *, l_extendedprice * l_discount AS revenue FROM (
          SELECT CASE WHEN l_shipdate > DATE '1995-06-17' THEN 'N' WHEN random() < 0.5 THEN 'A' ELSE 'R' END
              AS l_returnflag,
            CASE WHEN l_shipdate > DATE '1995-06-17' THEN 'O' ELSE 'F' END AS l_linestatus,
            l_quantity, l_quantity * (900 + 1200 * random()) AS l_extendedprice, l_discount, l_shipdate
          FROM (
            SELECT 1 + floor(50 * random())::INTEGER AS l_quantity,
              floor(11 * random())::INTEGER / 100 AS l_discount,
              DATE '1992-01-02' + floor(2520 * random())::INTEGER AS l_shipdate
            FROM range({ROWS})))"""
    )
    listed = ", ".join(f"'{each}'" for each in PHRASES)
    connection.execute(
        f"""CREATE TABLE hits AS
        SELECT CASE WHEN random() < 0.95 THEN 0 ELSE 1 + floor(30 * random() * random())::INTEGER END
            AS AdvEngineID,
          1 + floor(20 * random() * random())::INTEGER AS RegionID,
          floor(400 + 1599 * random())::INTEGER AS ResolutionWidth,
          ['none', 'none', 'none', 'none', 'nokia', 'iphone', 'galaxy', 'a9'][1 + floor(8 * random())::INTEGER]
            AS MobilePhoneModel,
          floor(5 * random() * random())::INTEGER AS SearchEngineID,
          CASE WHEN random() < 0.7 THEN 'none' WHEN random() < 0.3 THEN 'rare ' || floor(1e6 * random())::INTEGER
            ELSE [{listed}][1 + floor(6 * random() * random())::INTEGER] END AS SearchPhrase,
          (random() < 0.1)::INTEGER AS IsRefresh,
          CASE WHEN random() < 0.02 THEN 'yes' ELSE 'no' END AS UrlHasGoogle,
          DATE '2013-07-01' + floor(31 * random())::INTEGER AS EventDate
        FROM range({ROWS})"""
    )
    _make_tables_of_tutorials(connection)
    return connection


def _make_tables_of_tutorials(connection: duckdb.DuckDBPyConnection) -> None:
    cities, levels = (
        ", ".join(f"'{each}'" for each in some) for some in (MEMBERS.attribute("city").categories, EDUCATION)
    )
    connection.execute(
        f"""CREATE TABLE members AS
        SELECT age, gender, city, [{levels}][CASE WHEN age < 17 THEN 1 WHEN age < 20 THEN least(2, level)
            WHEN age < 25 THEN least(3, level) ELSE level END] AS education_level,
          least(4999, floor(exp(7 * random() * random())))::INTEGER AS books_borrowed
        FROM (
          SELECT 6 + floor(90 * random() * sqrt(random()))::INTEGER AS age,
            ['female', 'female', 'male', 'male', 'nonbinary', 'unspecified'][1 + floor(6 * random())::INTEGER]
              AS gender,
            [{cities}][1 + floor(5 * random() * random())::INTEGER] AS city,
            1 + floor(5 * random())::INTEGER AS level
          FROM range({MEMBERS_ROWS}))"""
    )
    connection.execute(
        f"""CREATE TABLE checkouts AS
        SELECT 'book ' || (1 + floor(40 * random() * random())::INTEGER) AS title,
          1 + floor(12 * random())::INTEGER AS month
        FROM range({ROWS})"""
    )
    connection.execute(
        f"""CREATE TABLE pums AS
        SELECT 18 + floor(76 * random() * sqrt(random()))::INTEGER AS age, (random() < 0.5)::INTEGER AS sex,
          1 + floor(16 * random())::INTEGER AS educ, 1 + floor(6 * random() * random())::INTEGER AS race,
          least(499999, floor(2000 * exp(5 * random())))::INTEGER AS income, (random() < 0.55)::INTEGER AS married
        FROM range({MEMBERS_ROWS})"""
    )
