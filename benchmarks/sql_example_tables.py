"""The tables that `benchmarks/sql_examples.py` asks: all flights of 2013, and made ones of orders and visits."""

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
SCHEMAS = {"flights": FLIGHTS, "lineitem": LINEITEM, "hits": HITS}


def connected(directory: Path) -> duckdb.DuckDBPyConnection:
    """DuckDB with all three tables.

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
    return connection
