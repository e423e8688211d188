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

pytestmark = pytest.mark.full

KNOWN: dict[str, Any] = json.loads(Path(__file__).with_name("round_values.json").read_text(encoding="utf-8"))
SCRIPT = Path(__file__).parents[2] / "tools" / "round_values.py"


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What the script finds now; in a process of its own, as it changes where workers take their seeds."""
    out = tmp_path_factory.mktemp("values") / "values.json"
    subprocess.run([sys.executable, str(SCRIPT), "--out", str(out)], check=True, timeout=300)
    values: dict[str, Any] = json.loads(out.read_text(encoding="utf-8"))
    assert values.keys() == KNOWN.keys()
    return values


@pytest.mark.parametrize("part", KNOWN)
def test_every_value_is_the_one_on_file(played: dict[str, Any], part: str) -> None:
    now, before = (json.dumps(values[part], indent=1, sort_keys=True).splitlines() for values in (played, KNOWN))
    assert now == before
