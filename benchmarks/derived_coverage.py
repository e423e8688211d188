"""How often all that SQL computes from noisy answers lies within its intervals at once, on real tables.

    python benchmarks/derived_coverage.py [--seeds 50] [--epsilon 1.0] [--adult ADULT7.csv]

All questions are one workload, answered with Gaussian noise (`Client.local`). The truth is DuckDB's answer to the
same SQL, from the values themselves, not from their bins. A seed fails where any number of any group of any
question lies outside of its interval; at most 5 % may. For each column: groups whose truth is within, and groups
without an interval (a quotient whose divisor may be 0); and how often LIMIT keeps the rows of the truth.
"""

from __future__ import annotations

import argparse
import tempfile
from collections import Counter
from pathlib import Path

import duckdb
import numpy as np

from equipoise import Client
from equipoise.frames import Frame
from equipoise.queries.schema import Attribute, Schema
from equipoise.queries.schema_checks import bin_labels
from equipoise_lab.demo.table import SCHEMA, unpack_table

EDGES = (-60.0, *map(float, range(-15, 181, 5)), 1500.0)
CLAMPED = "LEAST(GREATEST(dep_delay, -15), 180)"
FLIGHTS = (
    f"SELECT carrier, AVG({CLAMPED}) AS mean, SUM({CLAMPED}) AS total FROM t "
    "WHERE dep_delay IS NOT NULL GROUP BY carrier",
    "SELECT carrier, month, COUNT_IF(dep_delay >= 15) / COUNT(*) AS share, "
    "COUNT_IF(dep_delay >= 15) - COUNT_IF(dep_delay < 0) AS difference, "
    "COUNT_IF(dep_delay >= 15) / COUNT_IF(dep_delay >= 180) AS ratio FROM t GROUP BY carrier, month",
    "SELECT carrier, MEDIAN(dep_delay) AS middle, QUANTILE_CONT(dep_delay, 0.9) AS late, "
    "VAR_POP(dep_delay) AS variance FROM t GROUP BY carrier",
    "SELECT carrier, COUNT(*) AS top FROM t GROUP BY carrier ORDER BY top DESC LIMIT 5",
)
ADULT = (
    "SELECT race, sex, AVG(education) AS mean, VAR_POP(education) AS variance FROM t GROUP BY race, sex",
    "SELECT occupation, race, COUNT_IF(income = '1') / COUNT_IF(income = '0') AS ratio, "
    "COUNT_IF(income = '1') / COUNT(*) AS share FROM t GROUP BY occupation, race",
    "SELECT sex, MEDIAN(age) AS middle, QUANTILE_CONT(age, 0.9) AS late FROM t GROUP BY sex",
    "SELECT occupation, COUNT(*) AS top FROM t GROUP BY occupation ORDER BY top DESC LIMIT 5",
)
RENAMED = {"income": "income>50K", "marital_status": "marital-status"}  # to names that SQL need not quote
ADULT_NAMES = {"sex": 2, "income": 2, "race": 5, "marital_status": 7, "occupation": 15, "education": 16, "age": 10}
KEYS = frozenset({"carrier", "month", "race", "sex", "occupation"})
Rows = dict[tuple[str, ...], dict[str, float | None]]


def main() -> None:
    """Print a table for each data set."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seeds", type=int, default=50)
    parser.add_argument("--epsilon", type=float, default=1.0)
    parser.add_argument("--adult", type=Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "flights.csv"
        unpack_table(path)
        delays = Attribute("dep_delay", (*bin_labels(EDGES), "not flown"), EDGES, missing="not flown")
        schema = Schema((SCHEMA.attribute("carrier"), SCHEMA.attribute("month"), delays))
        names = ", ".join(schema.names)
        duckdb.execute(f"CREATE TABLE flights AS SELECT {names} FROM read_csv('{path}', nullstr=['NA', ''])")
        show("flights", schema, FLIGHTS, options.epsilon, options.seeds)
    if options.adult is not None:
        schema = Schema(tuple(Attribute(name, tuple(map(str, range(size)))) for name, size in ADULT_NAMES.items()))
        names = ", ".join(f'"{RENAMED.get(name, name)}" AS {name}' for name in ADULT_NAMES)
        duckdb.execute(f"CREATE TABLE adult AS SELECT {names} FROM read_csv('{options.adult}')")
        show("adult", schema, ADULT, options.epsilon, options.seeds)


def show(table: str, schema: Schema, texts: tuple[str, ...], epsilon: float, seeds: int) -> None:
    """Answer all questions under every seed, and print how often the truths are within."""
    columns = duckdb.execute(f"SELECT {', '.join(schema.names)} FROM {table}").fetchnumpy()
    plain = {
        name: [None if np.ma.is_masked(each) else each.item() if hasattr(each, "item") else each for each in values]
        for name, values in columns.items()
    }
    truths = [rows_of(duckdb.execute(text.replace("FROM t ", f"FROM {table} "))) for text in texts]
    within, without, asked, kept, failed = Counter(), Counter(), Counter(), 0, 0  # type: ignore[var-annotated]
    for seed in range(seeds):
        client = Client.local(plain, schema, epsilon=epsilon, seed=seed)
        questions = client.sql("r", "; ".join(texts))
        frames, missed = client.frames("r", questions), False
        for frame, truth in zip(frames, truths, strict=True):
            for column, inside in judged(frame, truth):
                asked[column] += 1
                without[column] += inside is None
                within[column] += inside is not False
                missed |= inside is False
        top = frame_keys(frames[-1])
        kept += top == [*truths[-1]]
        failed += missed
    print(f"{table}: {failed} of {seeds} seeds fail; LIMIT 5 keeps the true rows in order in {kept}")
    for column, number in asked.items():
        print(
            f"  {column:12}{within[column] / number:>9.2%} within{without[column] / number:>9.2%} without interval"
        )


def rows_of(relation: duckdb.DuckDBPyConnection) -> Rows:
    """DuckDB's answer, by the keys of each row."""
    names = [each[0] for each in relation.description or ()]
    found: Rows = {}
    for row in relation.fetchall():
        values = dict(zip(names, row, strict=True))
        found[tuple(str(values[name]) for name in names if name in KEYS)] = {
            name: None if values[name] is None else float(values[name]) for name in names if name not in KEYS
        }
    return found


def frame_keys(frame: Frame) -> list[tuple[str, ...]]:
    """The keys of each row of an answer."""
    return [tuple(label(row[name]) for name in frame.names if name in KEYS) for row in frame.to_dicts()]


def label(value: object) -> str:
    """A key as DuckDB writes it."""
    return str(int(value)) if isinstance(value, float) else str(value)


def judged(frame: Frame, truth: Rows) -> list[tuple[str, bool | None]]:
    """Of each number that the truth has: whether it is within its interval; None where there is no interval."""
    found: list[tuple[str, bool | None]] = []
    for keys, row in zip(frame_keys(frame), frame.to_dicts(), strict=True):
        for name, exact in truth.get(keys, {}).items():
            low, high = row[f"{name}_low"], row[f"{name}_high"]
            if exact is None or not np.isfinite(exact):
                continue
            known = isinstance(low, float) and isinstance(high, float) and not np.isnan(low) and not np.isnan(high)
            found.append((name, low - 1e-6 <= exact <= high + 1e-6 if known else None))  # type: ignore[operator]
    return found


if __name__ == "__main__":
    main()
