"""The files of a tree of this project by what they are: production code, protos, documentation, tests."""

from __future__ import annotations

import io
import subprocess
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory

ROOT = Path(__file__).resolve().parents[1]
GENERATED = ("client/equipoise/v1",)
KINDS = ("code", "protos", "docs", "tests", "generated", "other")


def kind_of(path: str) -> str:
    """What a file is, by its path from the root of the tree: one of `KINDS`."""
    name = PurePosixPath(path)
    if any(name.is_relative_to(folder) for folder in GENERATED):
        return "generated"
    if name.parts[0] in ("client", "server", "examples") and name.suffix == ".py":
        return "code"
    if name.suffix == ".proto":
        return "protos"
    if name.parts[0] in ("tests", "benchmarks"):
        return "tests"
    return "docs" if name.suffix == ".md" else "other"


def files_of(tree: Path) -> Iterator[tuple[str, str]]:
    """Path and kind of every file of a tree that is production code, a proto or documentation."""
    for folder in ("client", "server", "examples", "protos", "docs", "deploy", "."):
        pattern = "*.md" if folder == "." else "**/*"
        for path in sorted((tree / folder).glob(pattern)):
            relative = path.relative_to(tree).as_posix()
            kind = kind_of(relative)
            if path.is_file() and kind in ("code", "protos", "docs"):
                yield relative, kind


@contextmanager
def tree_at(revision: str | None, tree: Path | None) -> Iterator[Path]:
    """The tree itself, or a copy of a git revision of this repository; this repository's files without either."""
    if revision is None:
        yield tree or ROOT
        return
    archive = subprocess.run(["git", "archive", revision], cwd=ROOT, check=True, capture_output=True).stdout
    with TemporaryDirectory() as directory:
        with tarfile.open(fileobj=io.BytesIO(archive)) as packed:
            packed.extractall(directory, filter="data")
        yield Path(directory)


def changed_files(change: str) -> list[str]:
    """The files that differ between two revisions, `BASE..HEAD`."""
    told = subprocess.run(
        ["git", "diff", "--name-only", change], cwd=ROOT, check=True, capture_output=True, text=True
    )
    return told.stdout.split()
