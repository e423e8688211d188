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


def test_columns_have_their_types_without_any_row() -> None:
    frame = Frame({"month": [], "origin": [], "n": np.zeros(0)}, {"month": "integer"})
    assert list(map(str, frame.to_arrow().schema.types)) == ["int64", "string", "double"]


@pytest.mark.slow
def test_rows_in_order_are_drawn_as_a_line_and_all_labels_have_room() -> None:
    month = Frame({"month": [1, 2, 4], "n": np.array([2.0, 5.0, 3.0]), "n_low": np.zeros(3), "n_high": np.ones(3)})
    drawn = {}
    for kind in ("integer", "text"):
        axes = Frame(month.columns, {"month": kind}).plot()
        drawn[kind] = len(axes.lines), len(axes.patches)
    assert drawn == {"integer": (2, 0), "text": (0, 3)}
    delays = Frame({"delay": ["[0, 9)", "[9, 20)", None], "n": np.array([4.0, 2.0, 1.0])}, {"delay": "range"})
    line, missing = delays.plot("n").lines
    assert (list(line.get_xdata()), list(missing.get_xdata())) == ([0.0, 1.0], [2.0])
    long = Frame({"town": [f"a town with a long name {each}" for each in range(9)], "n": np.ones(9)}).plot("n")
    long.figure.canvas.draw()
    assert all(each.get_window_extent().y0 >= 0 for each in long.get_xticklabels())
