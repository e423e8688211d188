"""The configuration file: documented, checked, and the only source."""

from __future__ import annotations

from pathlib import Path

import pytest

from equipoise.errors import InvalidArgument
from equipoise_server.config import Config
from equipoise_server.config_file import load_config, make_config, render


def write(state: Path, text: str) -> Path:
    (state / "equipoise.toml").write_text(text, encoding="utf-8")
    return state


def test_what_is_rendered_is_read_back(tmp_path: Path) -> None:
    config = make_config(deployment="here", listen="[::1]:0", drain_seconds=3)
    assert load_config(write(tmp_path, render(config))).model_dump() == config.model_dump()


def test_every_field_is_described_above_its_line() -> None:
    text = render(make_config(deployment="here"))
    lines = text.splitlines()
    for name, field in Config.model_fields.items():
        (position,) = [number for number, line in enumerate(lines) if line.startswith(f"{name} = ")]
        assert field.description
        assert lines[position - 1] == f"# {field.description}"


def test_defaults_are_loopback_and_the_default_port(tmp_path: Path) -> None:
    config = load_config(write(tmp_path, 'deployment = "here"'))
    assert config.listen == "127.0.0.1:7443"
    # No address is opened that nobody asked for.
    assert (config.health_listen, config.metrics_listen) == ("", "")
    assert config.workload_limit_bytes == 64 * 2**20
    assert config.message_limit_bytes == 4 * 2**20


def test_relative_paths_start_at_the_state_directory(tmp_path: Path) -> None:
    config = load_config(write(tmp_path, 'deployment = "here"\ndata_directory = "/srv/tables"'))
    assert config.store_url(tmp_path) == f"sqlite:///{tmp_path}/equipoise.db"
    assert config.data_path(tmp_path) == Path("/srv/tables")


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("", "deployment"),
        ('deployment = "here"\nlisten = "7443"', "listen"),
        ('deployment = "here"\nlisten = "localhost:70000"', "listen"),
        ('deployment = "here"\nlisten = ""', "listen"),
        ('deployment = "here"\nmetrics_listen = "9464"', "metrics_listen"),
        ('deployment = "here"\nhealth_listen = ":9464"', "health_listen"),
        ('deployment = "here"\nrelease_grid_seconds = 0', "release_grid_seconds"),
        ('deployment = "here"\nrelease_grid_second = 60', "release_grid_second"),
        ('deployment = "here"\nversion = 2', "version"),
        ('deployment = "here"\nlog_level = "loud"', "log_level"),
        ("deployment = ", "is not TOML"),
    ],
)
def test_what_is_wrong_is_named(tmp_path: Path, text: str, named: str) -> None:
    with pytest.raises(InvalidArgument, match=rf"equipoise\.toml: {named}"):
        load_config(write(tmp_path, text))


def test_a_missing_file_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(InvalidArgument, match="equipoise-server init"):
        load_config(tmp_path)


def test_the_environment_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LISTEN", "0.0.0.0:1")
    monkeypatch.setenv("listen", "0.0.0.0:1")
    assert load_config(write(tmp_path, 'deployment = "here"')).listen == "127.0.0.1:7443"
