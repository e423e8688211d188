"""The lock files: what they pin satisfies the ranges of pyproject.toml, by hash, and they name no host."""

from __future__ import annotations

import re
import tomllib
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]
LOCKS = sorted((ROOT / "requirements").glob("*.txt"))
PYTHONS = ["3.11", "3.12", "3.13", "3.14"]
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
GROUPS = PROJECT["dependency-groups"]
EXTRAS = PROJECT["project"]["optional-dependencies"]
BASE = [
    *PROJECT["project"]["dependencies"],
    *(each for extra in ("server", "arrow", "sql", "oidc", "postgres", "console") for each in EXTRAS[extra]),
    *GROUPS["build"],
    *PROJECT["build-system"]["requires"],
]
WANTED = {"base": BASE} | {name: group for name, group in GROUPS.items() if name != "build"}
# The extras for what counts tables elsewhere.
ENGINES = ("spark", "snowflake", "bigquery", "databricks", "trino")
WANTED["engines"] = [each for extra in ENGINES for each in EXTRAS[extra]]


def entries(lock: Path) -> list[str]:
    """The pinned packages of a lock file, each with its hashes."""
    text = "\n".join(line for line in lock.read_text(encoding="utf-8").splitlines() if not line.startswith("#"))
    return [" ".join(each.replace("\\\n", " ").split()) for each in re.split(r"\n(?=\S)", text.strip())]


def pinned(lock: Path, python: str) -> dict[str, str]:
    """The version of each package that a lock file gives a Python on Linux."""
    on = {
        "python_version": python,
        "python_full_version": f"{python}.0",
        "sys_platform": "linux",
        "os_name": "posix",
    }
    versions: dict[str, str] = {}
    for entry in entries(lock):
        requirement = Requirement(entry.partition(" --hash=")[0])
        if requirement.marker is None or requirement.marker.evaluate(on):
            (version,) = requirement.specifier
            versions[canonicalize_name(requirement.name)] = version.version
    return versions


def test_every_group_has_its_lock_file() -> None:
    assert [lock.stem for lock in LOCKS] == sorted(WANTED)


@pytest.mark.parametrize("lock", LOCKS, ids=[lock.stem for lock in LOCKS])
def test_every_package_is_pinned_by_hash_and_no_host_is_named(lock: Path) -> None:
    for entry in entries(lock):
        assert re.fullmatch(r"[\w.-]+==[\w.]+( ; [^\\]+?)?( --hash=sha256:[0-9a-f]{64})+", entry)
    assert "://" not in lock.read_text(encoding="utf-8")


@pytest.mark.parametrize("python", PYTHONS)
@pytest.mark.parametrize("lock", LOCKS, ids=[lock.stem for lock in LOCKS])
def test_what_is_pinned_is_within_the_ranges(lock: Path, python: str) -> None:
    versions = pinned(lock, python)
    for text in WANTED[lock.stem]:
        wanted = Requirement(text)
        assert wanted.specifier.contains(versions[canonicalize_name(wanted.name)]), f"{text}: run make lock"


@pytest.mark.parametrize("python", PYTHONS)
def test_the_lock_files_agree(python: str) -> None:
    found = defaultdict(set)
    for lock in LOCKS:
        for name, version in pinned(lock, python).items():
            found[name].add(version)
    assert {name: versions for name, versions in found.items() if len(versions) > 1} == {}


def test_the_pythons_are_those_that_the_package_claims() -> None:
    claimed = [each.rpartition(" ")[2] for each in PROJECT["project"]["classifiers"] if ":: 3." in each]
    assert claimed == PYTHONS
    assert PROJECT["project"]["requires-python"] == f">={PYTHONS[0]}"
