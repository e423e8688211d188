"""Tables that a real Spark counts, in a Java of its own on loopback."""

from __future__ import annotations

import importlib.util
import shutil
from pathlib import Path

from equipoise_server.datasets.source import source_at
from equipoise_server.datasets.spark.table import SparkTable
from harness.stores import in_ci


def engines_are_here() -> bool:
    """Whether tests can start a Spark; in CI they must, and fail without. `requirements/engines.txt` has it."""
    return in_ci() or (importlib.util.find_spec("pyspark") is not None and shutil.which("java") is not None)


def for_spark(directory: Path, path: str, more: str = "") -> SparkTable:
    """A source whose description says that a local Spark counts this path."""
    description = directory / "t.spark.toml"
    description.write_text(f'master = "local[1]"\npath = "{path}"\n{more}')
    source = source_at(description)
    assert isinstance(source, SparkTable)
    return source
