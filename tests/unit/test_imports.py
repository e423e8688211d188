"""What the client's modules bring in, seen from a fresh interpreter."""

from __future__ import annotations

import json
import subprocess
import sys

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
SCRIPT = """
import importlib, json, pkgutil, sys
package = importlib.import_module({package!r})
for each in pkgutil.walk_packages(package.__path__, {package!r} + "."):
    importlib.import_module(each.name)
print(json.dumps(sorted(sys.modules)))
"""


def imported_by(package: str) -> set[str]:
    """The top-level names of all modules that importing every module of `package` loads."""
    run = subprocess.run([sys.executable, "-c", SCRIPT.format(package=package)], capture_output=True, check=True)
    return {name.partition(".")[0] for name in json.loads(run.stdout)}


def test_the_client_needs_nothing_of_the_server() -> None:
    assert imported_by("equipoise").isdisjoint(KEPT_OUT)


def test_the_test_would_see_it() -> None:
    assert {"equipoise_server", "duckdb"} <= imported_by("equipoise_server.datasets")
