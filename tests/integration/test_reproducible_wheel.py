"""The wheel: built twice, elsewhere and later, it has the same bytes."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from hashlib import sha256
from pathlib import Path

import pytest

pytestmark = pytest.mark.full

ROOT = Path(__file__).parents[2]
SOURCES = ("client", "server", "pyproject.toml", "README.md", "LICENSE")


def built(sources: Path, out: Path, mask: int) -> Path:
    """The wheel of a copy of the sources, whose files have the time and the modes of the copy."""
    sources.mkdir(parents=True)
    before = os.umask(mask)
    try:
        for name in SOURCES:
            if (ROOT / name).is_dir():
                ignored = shutil.ignore_patterns("__pycache__", "*.egg-info")
                shutil.copytree(ROOT / name, sources / name, ignore=ignored, copy_function=shutil.copyfile)
            else:
                shutil.copyfile(ROOT / name, sources / name)
        command = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(out), str(sources)]
        told = subprocess.run(command, capture_output=True, text=True, check=False)
    finally:
        os.umask(before)
    assert told.returncode == 0, told.stderr
    (wheel,) = out.glob("*.whl")
    return wheel


def test_a_wheel_that_is_built_twice_has_the_same_bytes(tmp_path: Path) -> None:
    first = built(tmp_path / "here", tmp_path / "one", 0o022)
    second = built(tmp_path / "another" / "place", tmp_path / "two", 0o077)
    assert first.name == second.name
    assert sha256(first.read_bytes()).digest() == sha256(second.read_bytes()).digest()
