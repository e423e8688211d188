"""Sessions on a stream of Zipf-distributed marginals, beside noise on each statement alone.

    python benchmarks/zipf.py [adult7.csv adult7-domain.json] [--statements 5000] [--records 50000]

One stream of tables of up to two attributes, popular ones more often; without a table one is made up. `online` is
asked by one analyst, `online_private` by ten, by turns; each from a prior, as planned, and without one.
`low_sensitivity` answers statistics, not marginals: it has no row. All spend epsilon 1 at delta 1/n^2. Prints a
table in Markdown: means of the runs, but the largest half-width of any.
"""

from __future__ import annotations

import argparse
import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from equipoise.errors import EquipoiseError
from equipoise.queries.schema import Schema
from equipoise.queries.statements import Marginal, Statement
from equipoise_lab.simulation.demand import WEIGHT_BITS, Urn
from equipoise_lab.simulation.measure import Errors, mean_errors
from equipoise_lab.simulation.request import Request
from equipoise_lab.simulation.session_simulate import AFRESH, CERTIFIED, UNCERTIFIED, alone, simulate_session
from equipoise_lab.simulation.session_task import SessionTask, compiled
from equipoise_lab.simulation.task import seed_bytes
from equipoise_server.datasets.counts import Counts
from equipoise_server.datasets.dense_counts import DenseCounts
from equipoise_server.datasets.source import source_at
from equipoise_server.randomness.stream import KeyedStream

SIZES = {"a": 16, "b": 8, "c": 8, "d": 8, "e": 4, "f": 2}
WITHOUT = ("prior=none",)
COLUMNS = (
    *("answered by", "analysts", "largest error", "99th percentile", "mean", "largest half-width"),
    *("certified", "afresh", "uncertified", "outside their interval", "epsilon", "ms a statement"),
)


def main() -> None:
    """Prints a row as soon as it is known."""
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    arguments.add_argument("table", type=Path, nargs="?")
    arguments.add_argument("schema", type=Path, nargs="?")
    arguments.add_argument("--statements", type=int, default=5000)
    arguments.add_argument("--analysts", type=int, default=10)
    arguments.add_argument("--runs", type=int, default=5)
    arguments.add_argument("--records", type=int, default=50_000, help="of the table that is made up")
    options = arguments.parse_args()
    if options.table is None:
        schema = Schema.from_json(str(SIZES).replace("'", '"'))
        data: Counts = DenseCounts(made_histogram(schema, options.records), schema.sizes)
    else:
        schema = Schema.from_json(options.schema.read_text(encoding="utf-8"))
        data = source_at(options.table).counts(schema)
    stream = zipf_stream(schema, options.statements, seed_bytes(1))
    different, records = len(set(stream)), data.records
    print(f"{len(stream):,} statements, {different:,} of them different, about {records:,} records")
    print("| " + " | ".join(COLUMNS) + " |")
    print("|" + "---|" * len(COLUMNS))
    for row in rows(SessionTask(schema, data, {"analyst-1": compiled(stream, schema)}), options, stream):
        print("| " + " | ".join(row) + " |", flush=True)


def rows(task: SessionTask, options: argparse.Namespace, stream: Sequence[Statement]) -> Iterator[list[str]]:
    """Noise on each alone first, asked again or not; then the mechanisms."""
    request = Request(mechanism="online")
    setting = replace(request.setting(task), options={})
    once = replace(task, statements={"analyst-1": compiled(tuple(dict.fromkeys(stream)), task.schema)})
    for what, asked in (("each alone", task), ("each different one once", once)):
        for name, errors in alone(asked, setting).items():
            yield [f"{name} noise on {what}", "1", *shown(errors), "", "", "100 %", "", "", "1", ""]
    for name, analysts, forced in (
        ("online", 1, ()),
        ("online", 1, WITHOUT),
        ("online_private", options.analysts, ()),
        ("online_private", options.analysts, WITHOUT),
    ):
        dealt = {
            f"analyst-{place + 1}": compiled(stream[place::analysts], task.schema) for place in range(analysts)
        }
        try:
            wanted = replace(request, mechanism=name, forced=list(forced), repeat=options.runs)
            report = simulate_session(replace(task, statements=dealt), wanted, lambda _: lambda *_: None)
        except EquipoiseError as error:
            yield [name, str(analysts), error.message, *[""] * (len(COLUMNS) - 3)]
            continue
        runs, count = report.runs, len(stream) * len(report.runs)
        parts = [
            f"{100 * sum(run.statements[way] for run in runs) / count:.1f} %"
            for way in (CERTIFIED, AFRESH, UNCERTIFIED)
        ]
        yield [
            ", ".join((name, *forced)),
            str(analysts),
            *shown(mean_errors([run.delivered for run in runs])),
            f"{max(run.largest_half_width for run in runs):.4f}",
            *parts,
            str(sum(run.outside_interval for run in runs)),
            f"{report.data_cost.epsilon:.3g}",
            f"{1000 * sum(run.seconds for run in runs) / count:.2f}",
        ]


def zipf_stream(schema: Schema, count: int, seed: bytes) -> tuple[Statement, ...]:
    """Tables of one and of two attributes, each drawn in proportion to 1/rank of a random ranking."""
    chosen = itertools.chain.from_iterable(itertools.combinations(schema.names, ways) for ways in (1, 2))
    tables = [Marginal(names) for names in chosen]
    ranking = KeyedStream.derive(seed, "benchmark/ranking").permutation(len(tables)).tolist()
    urn = Urn([(1 << WEIGHT_BITS) // rank for rank in range(1, len(tables) + 1)])
    drawn = KeyedStream.derive(seed, "benchmark/stream")
    return tuple(tables[ranking[urn.draw(drawn)]] for _ in range(count))


def made_histogram(schema: Schema, records: int) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Records of correlated attributes: what is made up, but has something to learn."""
    choose = np.random.default_rng(1)
    hidden = choose.integers(0, 4, records)
    columns = [np.minimum(size - 1, choose.poisson(1 + hidden * size / 8)) for size in schema.sizes]
    cells = np.ravel_multi_index(tuple(columns), schema.sizes)
    return np.bincount(cells, minlength=math.prod(schema.sizes)).astype(np.int64)


def shown(errors: Errors | None) -> list[str]:
    """Three columns."""
    return ["none"] * 3 if errors is None else [f"{errors.max:.4f}", f"{errors.p99:.4f}", f"{errors.mean:.5f}"]


if __name__ == "__main__":
    main()
