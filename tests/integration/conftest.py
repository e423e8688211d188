"""The custodian's side without a network, on a store of its own; and a server for the commands of a shop."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from harness.client_command import answered, refusal
from harness.rounds_bench import Bench, new_bench
from harness.server_process import make_state, running
from harness.shop_commands import SCHEMA, STATEMENTS, Run
from harness.stores import sqlite_url

from equipoise.profile.profile import Profile


@pytest.fixture
def bench(tmp_path: Path, store_url: str) -> Iterator[Bench]:
    """A bench on an empty store of either kind."""
    bench = new_bench(tmp_path, store_url)
    yield bench
    bench.stop()


@pytest.fixture
def on_sqlite(tmp_path: Path) -> Iterator[Bench]:
    """A bench for what does not depend on the store, where a worker starts in a second or two."""
    bench = new_bench(tmp_path, sqlite_url(tmp_path))
    yield bench
    bench.stop()


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Path]:
    state = make_state(tmp_path / "state")
    rows = [f"{('red', 'green')[row % 3 % 2]},{'smlx'[row * row % 7 % 4]}" for row in range(400)]
    (state / "data" / "shop.csv").write_text("\n".join(["colour,size", *rows]) + "\n")
    (tmp_path / "schema.json").write_text(json.dumps(SCHEMA))
    (tmp_path / "statements.json").write_text(json.dumps({"version": 1, "statements": STATEMENTS}))
    with running(state) as server:
        for name in ("operator", "auditor"):
            profile = state / "profiles" / name
            target = Profile.load(profile).target
            path = profile / "profile.toml"
            path.write_text(path.read_text().replace(target, f"127.0.0.1:{server.port}"))
        yield tmp_path


@pytest.fixture
def run(place: Path, capsys: pytest.CaptureFixture[str]) -> Run:
    """Runs a command as `who` with --json and gives the object it prints."""

    def command(who: str, *arguments: object) -> Any:
        profiles = place / "state" / "profiles" if who in ("operator", "auditor") else place
        return answered(capsys, profiles / who, *arguments)

    return command


@pytest.fixture
def refused(place: Path, capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    """Runs a command that must fail with exit code 1, and gives what it says."""

    def command(who: str, *arguments: object) -> str:
        profiles = place / "state" / "profiles" if who in ("operator", "auditor") else place
        return refusal(capsys, profiles / who, *arguments)

    return command
