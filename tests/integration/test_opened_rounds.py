"""What a round is called when it is opened, and which process reads its table."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NoReturn

import pytest
from harness.rounds_bench import SCHEMA, TERMS, Bench

from equipoise_server.datasets.files import tables as files
from equipoise_server.datasets.source import source_at

MIN_ID_HEX = 32  # 128 bits


@pytest.fixture
def benches(tmp_path: Path) -> Iterator[list[Bench]]:
    """Two deployments that are alike: table, accounts, clock and seed."""
    made = []
    for name in ("one", "other"):
        (tmp_path / name).mkdir()
        made.append(Bench(tmp_path / name, f"sqlite:///{tmp_path / name / 'equipoise.db'}"))
    yield made
    for bench in made:
        bench.stop()


def test_the_id_of_a_round_depends_on_nothing_that_anybody_knows(benches: list[Bench]) -> None:
    """Deployments that are alike, asked the same at the same time, call their rounds by unlike names."""
    ids = [bench.rounds.opening.open(TERMS, f"open-{number}").id for bench in benches for number in range(4)]
    assert all(len(bytes.fromhex(each)) * 2 >= MIN_ID_HEX for each in ids)
    # Of random ids no two begin alike: a counter, a time or a hash of what was asked would.
    assert len({each[:12] for each in ids}) == len(ids)
    assert len({each[-12:] for each in ids}) == len(ids)


def test_a_server_that_registered_a_table_leaves_it_to_workers(
    benches: list[Bench], monkeypatch: pytest.MonkeyPatch
) -> None:
    """From the opening of a round to its release no row is counted in the server's process.

    Before a run it looks whether the table is there and has its columns.
    """
    bench = benches[0]

    def read(*_: object) -> NoReturn:
        raise AssertionError("the server reads a table")

    monkeypatch.setattr(files, "count_rows", read)
    with pytest.raises(AssertionError, match="the server reads a table"):  # so nothing reads around what is watched
        source_at(bench.directory / "data" / "shop.csv").counts(SCHEMA)
    record = bench.released()
    assert bench.rounds.analyst_views.results("ann", record.id, 0, 100)
