"""Measures `equilibrium` on predicates about a table whose possible records cannot be listed.

    python benchmarks/wide_predicates.py adult13.csv adult13-domain.json [--repeat 5] [--count 20000] [--ways 6]

Ten analysts ask conjunctions of conditions on some attributes each. Unit = query, both epsilons 1, delta 1/n^2, one
record replaced. Independent Gaussian noise on every answer is computed in the same run.
"""

from __future__ import annotations

import argparse
import resource
from pathlib import Path

from battery import dealt, predicates
from equilibrium_delivered import COLUMNS, OWN, asked

from equipoise.queries.schema import Schema
from equipoise_server.datasets.source import source_at


def main() -> None:
    """Print a table in Markdown, and the largest memory."""
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    arguments.add_argument("table", type=Path)
    arguments.add_argument("schema", type=Path)
    arguments.add_argument("--repeat", type=int, default=5)
    arguments.add_argument("--count", type=int, default=20_000)
    arguments.add_argument("--ways", type=int, default=6)
    options = arguments.parse_args()
    schema = Schema.from_json(options.schema.read_text(encoding="utf-8"))
    data = source_at(options.table).counts(schema)
    print("| " + " | ".join(COLUMNS) + " |\n|" + "---|" * len(COLUMNS))
    for ways in sorted({2, options.ways}):
        task = dealt(schema, data, predicates(schema, options.count, ways), 10)
        name = f"{options.count:,} conjunctions of {ways}"
        print("| " + " | ".join((name, OWN, *asked(task, OWN, options.repeat))) + " |", flush=True)
    print(f"\n{resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MiB at most")


if __name__ == "__main__":
    main()
