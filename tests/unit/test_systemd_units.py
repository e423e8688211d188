"""The units of `deploy/systemd`: systemd reads them without a word, they expose little, and start what exists."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from harness.stores import in_ci
from typer.main import get_command

from equipoise_server.cli import app

UNITS = Path(__file__).parents[2] / "deploy" / "systemd"
SERVICES = sorted(UNITS.glob("*.service"))
PROGRAM = "/opt/equipoise/bin/equipoise-server"
EXPOSURE = 20  # in tenths of systemd's scale to 10: "OK" below 30
ANALYZE = shutil.which("systemd-analyze")

with_systemd = pytest.mark.skipif(ANALYZE is None and not in_ci(), reason="systemd-analyze is not installed")


def analyzed(*arguments: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [ANALYZE or "systemd-analyze", *map(str, arguments)], capture_output=True, text=True, check=False
    )


@with_systemd
def test_systemd_has_nothing_to_say_about_them(tmp_path: Path) -> None:
    for unit in UNITS.iterdir():
        # Of the programs that they start only those that are there can be checked.
        (tmp_path / unit.name).write_text(unit.read_text(encoding="utf-8").replace(PROGRAM, sys.executable))
    told = analyzed("verify", *sorted(tmp_path.iterdir()))
    assert (told.returncode, told.stdout, told.stderr) == (0, "", "")


@with_systemd
@pytest.mark.parametrize("unit", SERVICES, ids=[unit.stem for unit in SERVICES])
def test_they_expose_little(unit: Path) -> None:
    told = analyzed("security", "--offline=true", f"--threshold={EXPOSURE}", unit)
    assert told.returncode == 0, told.stdout.splitlines()[-1]


def test_they_start_commands_that_exist() -> None:
    started = [
        found
        for unit in SERVICES
        for found in re.findall(rf"^Exec.*{PROGRAM} (\S+)", unit.read_text(encoding="utf-8"), re.MULTILINE)
    ]
    known = get_command(app).list_commands(None)  # type: ignore[attr-defined]
    assert sorted(started) == ["backup", "check", "serve"]
    assert set(started) <= set(known)
