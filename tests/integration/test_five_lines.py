"""The README's five lines, run by somebody who has installed `equipoise[analyst]` from the wheel."""

from __future__ import annotations

import re
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from importlib.metadata import Distribution, PathDistribution, distribution
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def clean_python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment with the built wheel and what it requires, and what that requires, to the last.

    A test downloads nothing: these packages are linked from where they are installed here, file by file.
    """
    place = tmp_path_factory.mktemp("clean")
    build = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(place), str(ROOT)]
    subprocess.run(build, check=True, capture_output=True)
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(place / "env")], check=True)
    (packages,) = (place / "env").glob("lib/python*/site-packages")
    (wheel,) = place.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(packages)
    (ours,) = packages.glob("equipoise-*.dist-info")
    for each in required(PathDistribution(ours), "analyst"):
        link(each, packages)
    return place / "env" / "bin" / "python"


def required(whole: Distribution, extra: str) -> Iterator[Distribution]:
    """What a distribution with an extra requires, each once, without itself."""
    own = canonicalize_name(whole.metadata["Name"])
    seen, waiting = {(own, extra)}, [(whole, extra)]
    found: dict[str, Distribution] = {}
    while waiting:
        one, wanted = waiting.pop()
        for requirement in map(Requirement, one.requires or ()):
            if requirement.marker and not requirement.marker.evaluate({"extra": wanted}):
                continue
            name = canonicalize_name(requirement.name)
            needed = whole if name == own else found.setdefault(name, distribution(name))
            assert name == own or needed.version in requirement.specifier, (requirement, needed.version)
            for further in ("", *requirement.extras):
                if (name, further) not in seen:
                    seen.add((name, further))
                    waiting.append((needed, further))
    yield from found.values()


def link(one: Distribution, packages: Path) -> None:
    """Links every file of a distribution that lies beside its modules."""
    for file in one.files or ():
        target = packages / file
        if ".." not in file.parts and not target.exists():
            target.parent.mkdir(parents=True, exist_ok=True)
            target.symlink_to(Path(str(one.locate_file(file))).resolve())


def test_five_lines_draw_an_answer_in_a_clean_environment(clean_python: Path, tmp_path: Path) -> None:
    page = (ROOT / "README.md").read_text(encoding="utf-8")
    (lines,) = re.findall(r"^```python\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    where = (
        "import equipoise, importlib.util, sys\n"
        "assert equipoise.__file__.startswith(sys.prefix), equipoise.__file__\n"
        "assert not any(map(importlib.util.find_spec, ('pytest', 'scipy', 'duckdb'))), 'not a clean environment'\n"
    )
    ended = subprocess.run(
        [clean_python, "-I", "-c", where + lines], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert (ended.returncode, ended.stderr) == (0, "")
    assert (tmp_path / "flights.png").read_bytes().startswith(b"\x89PNG")
