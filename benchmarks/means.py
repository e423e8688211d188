"""Means and medians of the flights' delays by carrier and month: from sums, and from counts, beside the truth.

    python benchmarks/means.py [--epsilon 1.0] [--seeds 5]

Each mechanism answers one analyst's SQL, `AVG` from sums and counts, and then the same mean from the counts of all
delays by carrier and month, each with the whole budget; with bins of 5 minutes, and with few wide ones. The truth
is DuckDB's mean of the clamped delays themselves, not of their bins. `within`: groups whose truth is in its
interval. `error`: the mean error in minutes over groups of at least 100 flights, of noise and bins together; bins
alone err by what the heading says. `half`: the mean half-width there.
"""

from __future__ import annotations

import argparse
import itertools
import tempfile
from dataclasses import dataclass
from pathlib import Path

import duckdb
import numpy as np
from numpy.typing import NDArray

from equipoise.derived import Bounded, mean_of_counts
from equipoise.model.accounts import Budget
from equipoise.model.rounds import Share
from equipoise.queries.numeric_values import numeric_values
from equipoise.queries.schema import Attribute, Schema
from equipoise.queries.schema_checks import bin_labels
from equipoise.queries.statements import Marginal, Statement
from equipoise.queries.workload_compiler import compile_workload
from equipoise.questions.questions import Questions
from equipoise.questions.sql import questions_from_sql
from equipoise.results import Labels, Results
from equipoise_lab.demo.table import RECORDS, SCHEMA, unpack_table
from equipoise_server.datasets.counts import Counts
from equipoise_server.datasets.source import source_at
from equipoise_server.mechanisms.interface import PublicParameters
from equipoise_server.mechanisms.registry import MECHANISMS

WIDE = (-60.0, -15.0, *map(float, range(-10, 30, 5)), 30.0, 45.0, 60.0, 90.0, 120.0, 180.0, 1500.0)
NARROW = (-60.0, *map(float, range(-15, 181, 5)), 1500.0)
CLAMPED = "LEAST(GREATEST(dep_delay, -15), 180)"
MEANS = f"SELECT carrier, month, AVG({CLAMPED}) AS mean FROM flights WHERE dep_delay IS NOT NULL GROUP BY 1, 2"
MEDIANS = "SELECT carrier, MEDIAN(dep_delay) AS middle FROM flights GROUP BY carrier"
BY_DELAY = Marginal(("carrier", "month", "dep_delay"))
MANY = 100  # flights of a group whose error counts
NAMES = ("gaussian", "laplace", "projection", "pooled")


def flights_of(edges: tuple[float, ...]) -> Schema:
    """Three attributes of the flights."""
    delays = Attribute("dep_delay", (*bin_labels(edges), "not flown"), edges, missing="not flown")
    return Schema((SCHEMA.attribute("carrier"), SCHEMA.attribute("month"), delays))


@dataclass(frozen=True)
class Truths:
    """Of each group the number of flights that flew, its mean and the mean of its bins' middles."""

    flights: NDArray[np.float64]
    means: NDArray[np.float64]
    binned: NDArray[np.float64]
    medians: NDArray[np.float64]


def truths_of(path: Path, edges: tuple[float, ...]) -> Truths:
    """Count with DuckDB, from the delays themselves."""
    flights, means, binned = (np.full((16, 12), np.nan) for _ in range(3))
    middles = " ".join(
        f"WHEN dep_delay < {high} THEN {(max(low, -15) + min(high, 180)) / 2 if low >= -15 else -15}"
        for low, high in itertools.pairwise(edges[:-1])
    )
    relation = f"read_csv('{path}', nullstr=['NA', ''])"
    rows = duckdb.execute(
        f"SELECT carrier, month, COUNT(dep_delay), AVG({CLAMPED}), AVG(CASE {middles} ELSE 180 END) "
        f"FROM {relation} WHERE dep_delay IS NOT NULL GROUP BY 1, 2"
    ).fetchall()
    carriers = SCHEMA.attribute("carrier").categories
    for carrier, month, count, mean, middle in rows:
        place = carriers.index(carrier), month - 1
        flights[place], means[place], binned[place] = count, mean, middle
    medians = np.full(16, np.nan)
    for carrier, middle in duckdb.execute(
        f"SELECT carrier, MEDIAN(dep_delay) FROM {relation} GROUP BY 1"
    ).fetchall():
        medians[carriers.index(carrier)] = middle
    return Truths(np.nan_to_num(flights), means, binned, medians)


@dataclass(frozen=True)
class Flights:
    """The table by a schema's bins."""

    schema: Schema
    counts: Counts


def answered(name: str, statements: tuple[Statement, ...], data: Flights, epsilon: float, seed: int) -> Results:
    """One round of a single analyst."""
    workload = compile_workload(statements, data.schema)
    setting = PublicParameters(
        records=RECORDS,
        universe_size=data.schema.universe_size,
        shares=(Share("a", workload.statement_count, workload.query_count, workload.l1_sensitivity),),
        unit="query",
        data_budget=Budget(epsilon, 1e-11),
        analyst_budget=Budget(1.0, 1e-6),
        beta=0.05,
        options={},
        attributes=data.schema.sizes,
        ordered=data.schema.ordered,
    )
    plan = MECHANISMS[name].plan(setting)
    outcome = MECHANISMS[name].run(setting, plan, data.counts, {"a": workload}, seed.to_bytes(32), lambda *_: None)
    return Results("r", outcome.answers["a"], Labels(data.schema, statements))


def from_sql(text: str, column: str, name: str, data: Flights, epsilon: float, seed: int) -> Bounded:
    """A column of an answer, with its interval."""
    questions = Questions(questions_from_sql(text, data.schema))
    (frame,) = questions.answers(answered(name, questions.statements, data, epsilon, seed), RECORDS)
    return Bounded(*(np.asarray(frame[f"{column}{end}"]) for end in ("", "_low", "_high")))


def from_counts(name: str, data: Flights, epsilon: float, seed: int) -> Bounded:
    """The same means, from the counts of all delays."""
    results = answered(name, (BY_DELAY,), data, epsilon, seed)
    columns = (each.reshape(data.schema.sizes) * RECORDS for each in (results.values, results.lows, results.highs))
    found = mean_of_counts(Bounded(*columns), numeric_values(data.schema.attribute("dep_delay"), -15, 180))
    return Bounded(*(each.reshape(-1) for each in (found.values, found.lows, found.highs)))


def line(
    what: str,
    found: list[Bounded],
    truth: NDArray[np.float64],
    chosen: NDArray[np.bool_],
    known: NDArray[np.bool_],
) -> str:
    """How many truths are within their intervals, and what the groups that are chosen err by."""
    within = np.mean([(each.lows[known] <= truth[known]) & (truth[known] <= each.highs[known]) for each in found])
    error = np.mean([np.abs(each.values - truth)[chosen] for each in found])
    half = np.mean([(each.highs - each.lows)[chosen] / 2 for each in found])
    return f"{what:30}{within:>9.1%}{error:>9.2f}{half:>9.2f}"


def main() -> None:
    """Print a line for each mechanism and way."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--epsilon", type=float, default=1.0)
    parser.add_argument("--seeds", type=int, default=5)
    options = parser.parse_args()
    for edges in (NARROW, WIDE):
        show(edges, options.epsilon, range(options.seeds))


def show(edges: tuple[float, ...], epsilon: float, seeds: range) -> None:
    """Print the lines of one schema."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "flights.csv"
        unpack_table(path)
        schema = flights_of(edges)
        truths, data = truths_of(path, edges), Flights(schema, source_at(path).counts(schema))
    truth, known = truths.means.reshape(-1), truths.flights.reshape(-1) > 0
    many = truths.flights.reshape(-1) >= MANY
    bins = float(np.mean(np.abs(truths.binned - truths.means)[truths.flights >= MANY]))
    print(f"{len(edges) - 1} bins; means of {known.sum()} groups, {many.sum()} of {MANY} flights and more")
    print(f"bins alone err by {bins:.2f}")
    print(f"{'':30}{'within':>9}{'error':>9}{'half':>9}")
    for name in NAMES:
        sums = [from_sql(MEANS, "mean", name, data, epsilon, seed) for seed in seeds]
        print(line(f"{name}, sums", sums, truth, many, known))
        counts = [from_counts(name, data, epsilon, seed) for seed in seeds]
        print(line(f"{name}, counts", counts, truth, many, known))
    every = ~np.isnan(truths.medians)
    for name in NAMES:
        found = [from_sql(MEDIANS, "middle", name, data, epsilon, seed) for seed in seeds]
        print(line(f"{name}, medians by carrier", found, truths.medians, every, every))


if __name__ == "__main__":
    main()
