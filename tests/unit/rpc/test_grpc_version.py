"""A server starts with the versions of gRPC that its extra allows, and with no others."""

from __future__ import annotations

import tomllib
from pathlib import Path

import grpc
import pytest
from packaging.requirements import Requirement

from equipoise.errors import InvalidArgument
from equipoise_server.app import serve
from equipoise_server.rpc.grpc_version import check_grpc

PROJECT = tomllib.loads((Path(__file__).parents[3] / "pyproject.toml").read_text(encoding="utf-8"))["project"]
(SERVER,) = (each for each in map(Requirement, PROJECT["optional-dependencies"]["server"]) if each.name == "grpcio")
(CLIENT,) = (each for each in map(Requirement, PROJECT["dependencies"]) if each.name == "grpcio")


@pytest.mark.parametrize(
    "version", ["1.77.0", "1.78.0", "1.82.9", "1.83.0", "1.83.2", "1.84.2", "1.100.0", "2.0.0"]
)
def test_it_is_the_extra_s_range_that_is_checked(version: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(grpc, "__version__", version)
    if version in SERVER.specifier:
        check_grpc()
    else:
        with pytest.raises(InvalidArgument, match=f"grpcio: version {version} is installed; a server needs 1.78"):
            check_grpc()


async def test_a_server_looks_at_it_before_anything_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(grpc, "__version__", "1.84.0")
    with pytest.raises(InvalidArgument, match=r"grpcio: version 1\.84\.0 is installed"):
        await serve(tmp_path / "nowhere")


def test_clients_may_have_newer_ones() -> None:
    assert "1.85.1" in CLIENT.specifier
    assert "1.85.1" not in SERVER.specifier


def test_this_one_is_allowed() -> None:
    check_grpc()
