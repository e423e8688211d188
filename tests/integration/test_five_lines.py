"""The README's five lines, run by somebody who has installed the wheel and nothing else of ours."""

from __future__ import annotations

import re
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def clean_python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment with the built wheel. Other packages are those that are here: a test downloads nothing."""
    place = tmp_path_factory.mktemp("clean")
    build = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(place), str(ROOT)]
    subprocess.run(build, check=True, capture_output=True)
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(place / "env")], check=True)
    (packages,) = (place / "env").glob("lib/python*/site-packages")
    (wheel,) = place.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(packages)
    # Read after the environment's own packages, and without what editable installations put into them.
    (packages / "others.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return place / "env" / "bin" / "python"


def test_five_lines_draw_an_answer_in_a_clean_environment(clean_python: Path, tmp_path: Path) -> None:
    page = (ROOT / "README.md").read_text(encoding="utf-8")
    (lines,) = re.findall(r"^```python\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    where = "import equipoise, sys; assert equipoise.__file__.startswith(sys.prefix), equipoise.__file__\n"
    ended = subprocess.run(
        [clean_python, "-I", "-c", where + lines], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert (ended.returncode, ended.stderr) == (0, "")
    assert (tmp_path / "flights.png").read_bytes().startswith(b"\x89PNG")
