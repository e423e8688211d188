"""What `import equipoise` brings in, seen from a fresh interpreter."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

KEPT_OUT = (
    "equipoise_server",
    "scipy",
    "sqlalchemy",
    "alembic",
    "duckdb",
    "dp_accounting",
    "pydantic",
    "pyarrow",
    "psycopg",
)
SCRIPT = "import json, sys, {module}; print(json.dumps(sorted(sys.modules)))"


def imported_by(module: str) -> set[str]:
    """The top-level names of all modules that importing `module` loads."""
    run = subprocess.run([sys.executable, "-c", SCRIPT.format(module=module)], capture_output=True, check=True)
    return {name.partition(".")[0] for name in json.loads(run.stdout)}


@pytest.mark.parametrize("module", ["equipoise", "equipoise.cli"])
def test_the_client_needs_nothing_of_the_server(module: str) -> None:
    assert imported_by(module).isdisjoint(KEPT_OUT)


def test_the_test_would_see_it() -> None:
    assert {"equipoise_server", "duckdb"} <= imported_by("equipoise_server.datasets.source")
