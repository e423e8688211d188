"""The demo's table comes out of the package without importing it."""

from __future__ import annotations

import sys
from importlib import metadata
from pathlib import Path

import pytest

from equipoise.errors import InvalidArgument
from equipoise_lab.demo import table
from equipoise_lab.demo.table import RECORDS, SCHEMA, unpack_table
from equipoise_server.datasets.source import source_at


@pytest.mark.slow
def test_every_flight_finds_its_cell(tmp_path: Path) -> None:
    path = tmp_path / "flights.csv"
    unpack_table(path)
    data = source_at(path).counts(SCHEMA)
    assert data.records == RECORDS
    by_delay = data.dense().reshape(SCHEMA.sizes).sum(axis=(0, 1, 2, 4))
    not_flown = SCHEMA.attribute("dep_delay").index("not flown")
    assert by_delay[not_flown] == 8_255
    assert table.PACKAGE not in sys.modules


def test_without_the_package_it_says_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def none(name: str) -> None:
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "files", none)
    with pytest.raises(InvalidArgument, match="pip install"):
        unpack_table(tmp_path / "flights.csv")
