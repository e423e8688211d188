"""The demo's directory: its own or a fresh one, and free again after a demo that failed."""

from __future__ import annotations

from pathlib import Path

import pytest

from equipoise.errors import InvalidArgument
from equipoise_lab import demo
from equipoise_lab.demo import UNFINISHED, run_demo


def test_a_demo_that_failed_does_not_keep_its_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wanted = tmp_path / "demo"
    monkeypatch.setattr(demo, "unpack_table", _fail)
    for _ in range(2):
        with pytest.raises(RuntimeError, match="no table"):
            run_demo(wanted, json_only=True)
        assert (wanted / "state").is_dir()
        assert (wanted / UNFINISHED).is_file()


def test_what_is_not_the_demo_s_stays(tmp_path: Path) -> None:
    for name in ("mine", "unfinished"):
        (tmp_path / name).write_text("kept")
    with pytest.raises(InvalidArgument, match=r"--directory: .* is not empty"):
        run_demo(tmp_path, json_only=True)
    assert (tmp_path / "mine").read_text() == "kept"


def _fail(path: Path) -> None:
    raise RuntimeError(f"no table for {path.name}")
