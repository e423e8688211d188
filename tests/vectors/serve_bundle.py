"""Holds a round with the real service and writes one analyst's bundle, and the key, into a directory.

The files that are here were made by the program that wrote version 1 as `docs/formats.md` has it. From the first
release on they are evidence that version 1 is still read: never make them again, but for a new version beside them.
"""

from __future__ import annotations

import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from equipoise.records.bundle import Bundle
from equipoise.records.evidence import Evidence
from equipoise_server.rounds.store.results import read_synopsis

sys.path.insert(0, str(Path(__file__).parents[1]))

from harness.rounds_bench import Bench


def main(target: Path) -> None:
    """Writes bundle.json, and log.vkey, the key that signs it."""
    with TemporaryDirectory() as directory:
        bench = Bench(Path(directory), f"sqlite:///{directory}/store.db")
        round_id = bench.released().id
        bench.rounds.schedule.keep()
        told = bench.rounds.analyst_views.evidence("ann", round_id, 0)
        assert told is not None
        evidence = Evidence.from_bytes(told)
        workload = bench.rounds.analyst_views.submitted("ann", round_id, 0, 1 << 20)
        stream = bench.rounds.analyst_views.results("ann", round_id, 0, 100)
        with bench.store.read() as connection:
            synopsis = read_synopsis(connection, round_id)
        bench.stop()
    (target / "bundle.json").write_bytes(Bundle(evidence, workload, tuple(stream), synopsis).to_bytes())
    (target / "log.vkey").write_text("".join(f"{key}\n" for key in evidence.keys))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
