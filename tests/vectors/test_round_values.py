"""Rounds and sessions from fixed seeds come to the values that are on file, to the last bit.

`round_values.json` was written by `tools/round_values.py --out` on the code as it stood before modules, names and
formats were chosen anew. Where a part of it has to change, its commit says why.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

KNOWN: dict[str, Any] = json.loads(Path(__file__).with_name("round_values.json").read_text(encoding="utf-8"))
SCRIPT = Path(__file__).parents[2] / "tools" / "round_values.py"


@pytest.mark.full
def test_every_value_is_the_one_on_file(tmp_path: Path) -> None:
    """What the script finds now; in a process of its own, as it changes where workers take their seeds."""
    subprocess.run([sys.executable, str(SCRIPT), "--out", str(tmp_path / "values.json")], check=True, timeout=600)
    now = json.loads((tmp_path / "values.json").read_text(encoding="utf-8"))
    assert now.keys() == KNOWN.keys()
    for part, before in KNOWN.items():
        assert lines_of(now[part]) == lines_of(before), part


def lines_of(values: object) -> list[str]:
    return json.dumps(values, indent=1, sort_keys=True).splitlines()
