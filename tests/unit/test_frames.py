"""Frames go where people want them."""

from __future__ import annotations

from pathlib import Path

import duckdb
import numpy as np
import pytest

from equipoise.errors import InvalidArgument
from equipoise.frames import Frame


@pytest.mark.slow
def test_frames_go_to_files_arrow_notebooks_and_pictures(tmp_path: Path) -> None:
    frame = Frame(
        {
            "origin": ["=JFK", None],
            "n": np.array([2.5, np.nan]),
            "n_low": np.array([1.0, np.nan]),
            "n_high": np.array([3.0, np.nan]),
        }
    )
    assert duckdb.from_arrow(frame.to_arrow()).fetchall() == [("=JFK", 2.5, 1.0, 3.0), (None, None, None, None)]
    for suffix in (".csv", ".json", ".parquet"):
        frame.write(tmp_path / f"answer{suffix}")
    assert (tmp_path / "answer.csv").read_text().splitlines()[1] == "'=JFK,2.5,1.0,3.0"
    assert "&lt;b" in Frame({"a": ["<b>"]})._repr_html_()
    assert frame.plot().get_ylabel() == "n"
    assert str(frame).splitlines()[0].split() == ["origin", "n", "n_low", "n_high"]
    assert str(Frame({"n": list(range(50))})).splitlines()[-1] == "... and 30 more rows"
    assert str(Frame({"n": []})) == "n"
    with pytest.raises(InvalidArgument, match="must end in"):
        frame.write(Path("answer.xls"))
    frame.write(str(tmp_path / "again.csv"))
    assert (tmp_path / "again.csv").read_bytes() == (tmp_path / "answer.csv").read_bytes()
