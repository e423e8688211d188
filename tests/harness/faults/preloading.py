"""Libraries in C that stand between a server and its machine: built where they are used, and preloaded."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

from harness.stores import in_ci

UNTOLD = "There is no Linux or no C compiler, so no disk was broken, no power was lost and no clock was set."


def find_compiler() -> str | None:
    """A C compiler's command."""
    return shutil.which("cc") or shutil.which("gcc")


def can_preload() -> bool:
    """Whether these tests can run; with CI=true they must."""
    return in_ci() or (sys.platform == "linux" and find_compiler() is not None)


def built(source: Path, scratch: Path) -> Path:
    """The library of a source file, below `scratch`."""
    compiler = find_compiler()
    assert compiler is not None, "with CI=true faults of the machine must be tested: a C compiler is not installed"
    library = scratch / f"{source.stem}.so"
    subprocess.run([compiler, "-shared", "-fPIC", "-O1", "-o", library, source, "-ldl", "-lpthread"], check=True)
    return library
