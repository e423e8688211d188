"""The three tutorials, typed as they stand, one after the other, with a real server and all flights."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from equipoise_lab.demo.process import free_address

pytestmark = pytest.mark.full

TUTORIALS = Path(__file__).parents[2] / "docs" / "tutorials"
BLOCK = re.compile(r"^```(sh|python)\n(.*?)^```", re.MULTILINE | re.DOTALL)
INIT = "equipoise-server init --state state"
SECONDS = 600


def typed(text: str) -> str:
    """What a reader types of a part of a page."""
    lines = []
    for language, block in BLOCK.findall(text):
        if language == "python":
            lines += ["python - <<'END'", "import os", "ROUND = os.environ['ROUND']", block, "END"]
        else:
            # Both are installed already, and the tests reach no registry.
            lines += [line for line in block.splitlines() if not line.startswith("pip install")]
    return "\n".join(lines) + "\n"


def parts(name: str, after: str) -> tuple[str, str]:
    """A tutorial until a place, and from it on."""
    before, found, behind = (TUTORIALS / f"{name}.md").read_text(encoding="utf-8").partition(after)
    assert found
    return typed(before), typed(found + behind)


def test_a_reader_who_types_all_of_them_gets_through(tmp_path: Path) -> None:
    opening, ending = parts("operator", "is what they do now")
    asking, reading = parts("analyst", "## Read")
    auditing = typed((TUTORIALS / "auditor.md").read_text(encoding="utf-8"))
    assert opening.count(INIT) == 1
    # A port that is free here, and results without a minute's wait.
    settings = "sed -i 's/^release_grid_seconds = .*/release_grid_seconds = 1/' state/equipoise.toml"
    opening = opening.replace(INIT, f"{INIT} --listen {free_address()}\n{settings}")
    as_operator = "export ROUND EQUIPOISE_PROFILE=state/profiles/operator\n"
    until_served = "for _ in $(seq 300); do grep -q serving served.log && break; sleep 0.2; done"
    opening = opening.replace("state &", f"state > served.log 2>&1 & {until_served}")
    script = f"""
set -euo pipefail
trap 'kill $(jobs -p) 2>/dev/null || true; wait' EXIT
{opening}
{as_operator}{asking}{as_operator}{ending}export EQUIPOISE_PROFILE=ann\n{reading}{auditing}
"""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    told = subprocess.run(
        ["bash", "-c", script],
        cwd=tmp_path,
        env={**os.environ, "PATH": path},
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert told.returncode == 0, told.stdout[-3000:] + told.stderr[-3000:]
    for shown in ("expected mean error", "understood as", "A1", "A12"):
        assert shown in told.stdout, told.stdout[-3000:]
    assert (tmp_path / "report.md").stat().st_size > 0
    assert (tmp_path / "results.csv").read_text().count("\n") > 70
