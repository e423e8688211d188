"""What the client's modules bring in, seen from a fresh interpreter; and what tests import of one another."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from pathlib import Path

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


@pytest.mark.slow
def test_the_client_needs_nothing_of_the_server() -> None:
    assert imported_by("equipoise").isdisjoint(KEPT_OUT)


@pytest.mark.slow
def test_the_test_would_see_it() -> None:
    assert {"equipoise_server", "duckdb"} <= imported_by("equipoise_server.datasets.files")


TESTS = Path(__file__).parents[1]
FOLDERS = {each.name for each in TESTS.iterdir() if each.is_dir()}


def imports_of(source: str) -> set[str]:
    """The dotted names of all modules of tests that the source imports."""
    found = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom) and node.module:
            found |= {node.module, *(f"{node.module}.{each.name}" for each in node.names)}
        elif isinstance(node, ast.Import):
            found |= {each.name for each in node.names}
    return {name for name in found if name.partition(".")[0] in FOLDERS}


def strays(folder: str, source: str) -> set[str]:
    """What the source imports of tests from neither the harness nor helpers in its own folder."""
    imported = imports_of(source)
    tests = {name for name in imported if any(part.startswith("test_") for part in name.split("."))}
    return tests | {name for name in imported if name.partition(".")[0] not in ("harness", folder)}


@pytest.mark.slow
def test_tests_import_the_harness_and_no_other_tests() -> None:
    for path in TESTS.rglob("*.py"):
        place = path.relative_to(TESTS)
        # The exact laws and the mutants are of use to the statistical tests alone.
        own = place.parts[0] if place.parts[0] == "statistical" else "harness"
        assert strays(own, path.read_text(encoding="utf-8")) == set(), place


def test_an_import_of_another_test_would_be_seen() -> None:
    assert strays("harness", "from harness.stores import KINDS") == set()
    assert strays("harness", "from harness import stores\nimport unit.rpc.test_audit") == {"unit.rpc.test_audit"}
    assert strays("statistical", "from statistical.test_pipeline import used") >= {"statistical.test_pipeline"}
    assert strays("harness", "from statistical import exact_pooled") >= {"statistical.exact_pooled"}
