"""A state directory that others may enter or change is refused, by the name of what is open."""

from __future__ import annotations

import os
import re
from datetime import timedelta
from pathlib import Path

import pytest

from equipoise.errors import InvalidArgument
from equipoise_server.admin.new_state import create_state
from equipoise_server.admin.state_directory import open_deployment
from equipoise_server.clock import system_clock
from equipoise_server.storage.store import hold


@pytest.fixture(scope="module")
def state(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("modes") / "state"
    create_state(made)
    return made


@pytest.mark.parametrize(
    ("name", "mode", "right"),
    [
        (".", 0o777, "700"),
        (".", 0o755, "700"),
        ("ca", 0o710, "700"),
        ("keys", 0o777, "700"),
        ("equipoise.db", 0o666, "600"),
        ("equipoise.db", 0o640, "600"),
        ("guard", 0o666, "600"),
    ],
)
def test_what_others_may_open_is_refused_by_name(state: Path, name: str, mode: int, right: str) -> None:
    path = (state / name).resolve()
    before = path.stat().st_mode & 0o777
    path.chmod(mode)
    try:
        with pytest.raises(InvalidArgument, match=re.escape(f"run: chmod {right} {path}")):
            open_deployment(state, system_clock())
    finally:
        path.chmod(before)
    open_deployment(state, system_clock() + timedelta(seconds=1))


@pytest.mark.parametrize("mode", [0o777, 0o720, 0o1777])
def test_a_store_is_not_believed_where_others_may_exchange_its_file(tmp_path: Path, mode: int) -> None:
    place = tmp_path / "elsewhere"
    place.mkdir(mode=0o700)
    create_state(tmp_path / "state", store=f"sqlite:///{place / 'store.db'}")
    open_deployment(tmp_path / "state", system_clock() + timedelta(seconds=1))
    place.chmod(mode)
    with pytest.raises(InvalidArgument, match=re.escape(f"{place}: others may exchange the store in it")):
        open_deployment(tmp_path / "state", system_clock() + timedelta(seconds=1))


def test_a_store_with_a_second_name_is_held_under_neither(state: Path) -> None:
    database, link = state / "equipoise.db", state / "again.db"
    os.link(database, link)
    try:
        for path in (database, link):
            with pytest.raises(InvalidArgument, match="has a second name"), hold(f"sqlite:///{path}"):
                pass
    finally:
        link.unlink()
    with hold(f"sqlite:///{database}"):
        pass


@pytest.mark.parametrize(
    "url",
    [
        "postgresql+psycopg://me:hunter2@db/x",
        "postgresql+psycopg://me@db/x?password=hunter2",
        "postgresql+psycopg://me@db/x?%70assword=hunter2",
        "postgresql+psycopg://me@db/x?sslkey=/k.pem&sslpassword=hunter2",
        "postgresql+psycopg://me@db/x?SSLPassword=hunter2",
        "postgresql+psycopg://me@db/x?oauth_client_secret=hunter2",
        "postgresql+psycopg://me@db/x?scram_client_key=hunter2",
        "postgresql+psycopg://me@db/x;password=hunter2",
        "postgresql+psycopg://me@db/x%20password%20=%20hunter2",
        "sqlite:///x?password=hunter2",
    ],
)
def test_a_secret_in_the_store_s_url_is_refused_without_repeating_it(tmp_path: Path, url: str) -> None:
    refusal = r"store: must not hold a password or another secret; .* PGPASSFILE"
    with pytest.raises(InvalidArgument, match=refusal) as caught:
        create_state(tmp_path / "state", store=url)
    assert "hunter2" not in str(caught.value)
    assert not (tmp_path / "state").exists()
