"""Seconds and peak memory of both plays on a universe of 2^26 records, the largest that is allowed.

    python benchmarks/large_universe.py [--attributes 26] [--categories 2] [--rounds 3]

Each play is one `equipoise-server simulate` in a process of its own, from a CSV file to a report of true errors:
all three-way marginals, 100,000 records, ten analysts. One array of numbers over the universe is 512 MiB.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import typing
from pathlib import Path

import numpy as np

LIMIT = 6 * 2**30
RECORDS = 100_000


def main() -> None:
    """Prints a table: play, universe, queries, seconds of the run, peak resident memory. Fails beyond 6 GiB."""
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    arguments.add_argument("--attributes", type=int, default=26)
    arguments.add_argument("--categories", type=int, default=2)
    arguments.add_argument("--rounds", type=int, default=3)
    options = arguments.parse_args()
    print(f"{'play':<8} {'|X|':>9} {'queries':>8} {'rounds':>6} {'seconds':>8} {'peak GiB':>8}")
    with tempfile.TemporaryDirectory() as directory:
        write_table(Path(directory), options.attributes, options.categories)
        for play in ("mixed", "sampled"):
            report = simulated(Path(directory), play, options.rounds)
            seconds, peak = report["runs"][0]["seconds"], report["peak_memory_bytes"]
            size = f"{report['universe_size']:>9} {report['queries']:>8} {options.rounds:>6}"
            print(f"{play:<8} {size} {seconds:>8.1f} {peak / 2**30:>8.2f}", flush=True)
            if peak > LIMIT:
                sys.exit(f"more than {LIMIT / 2**30:g} GiB")


def write_table(directory: Path, attributes: int, categories: int) -> None:
    """A CSV file whose attributes go together, and its schema."""
    names = [f"a{i}" for i in range(attributes)]
    (directory / "schema.json").write_text(json.dumps(dict.fromkeys(names, categories)))
    choose = np.random.default_rng(1)
    codes = (categories * choose.random((RECORDS, attributes)) * choose.random((RECORDS, 1))).astype(np.int64)
    np.savetxt(directory / "table.csv", codes, fmt="%d", delimiter=",", header=",".join(names), comments="")


def simulated(directory: Path, play: str, rounds: int) -> dict[str, typing.Any]:
    """The report of one simulation."""
    command = (
        *(sys.executable, "-c", "from equipoise_server.cli import main; main()", "simulate", "--json"),
        *("--table", str(directory / "table.csv"), "--schema", str(directory / "schema.json")),
        *("--workload", "marginals:3", "--mechanism", "equilibrium", "--play", play, "--set", f"rounds={rounds}"),
    )
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    if done.returncode:
        sys.exit(done.stderr)
    report: dict[str, typing.Any] = json.loads(done.stdout.splitlines()[-1])
    return report


if __name__ == "__main__":
    main()
