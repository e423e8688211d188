"""Seeds are drawn by the server: nobody who calls it, configures it or types its commands can choose one."""

from __future__ import annotations

import inspect
from typing import Any

import pytest
import typer
from google.protobuf.descriptor import Descriptor, ServiceDescriptor

import equipoise.cli
import equipoise_server.cli
from equipoise.v1 import analyst_pb2, auditor_pb2, operator_pb2
from equipoise_server.config import Config
from equipoise_server.rounds.opening import Opening

SERVICES: list[ServiceDescriptor] = [
    service
    for module in (analyst_pb2, auditor_pb2, operator_pb2)
    for service in module.DESCRIPTOR.services_by_name.values()
]
# Two read a seed that a server has drawn. A simulation has no server: it releases nothing of any round.
NOT_OF_A_ROUND_TO_COME = {
    ("equipoise-server audit replay", "--seed-file"),
    ("equipoise audit seed", "--seed-key"),
    ("equipoise dummy", "--seed"),
    ("equipoise-server simulate", "--seed"),
}


def fields(message: Descriptor, known: set[str]) -> list[str]:
    """The names of all fields of a message and of those in it."""
    if message.full_name in known:
        return []
    known.add(message.full_name)
    names = [field.name for field in message.fields]
    return names + [
        name
        for field in message.fields
        if field.message_type is not None
        for name in fields(field.message_type, known)
    ]


def options(name: str, command: Any) -> list[tuple[str, str]]:
    """The options of a command and of all below it."""
    found = [(name, option) for parameter in command.params for option in parameter.opts]
    for each in getattr(command, "commands", {}):
        below = command.resolve_command(typer.Context(command), [each])[1]
        found += options(f"{name} {each}", below)
    return found


@pytest.mark.parametrize("service", SERVICES, ids=lambda service: service.name)
def test_no_request_has_a_seed(service: ServiceDescriptor) -> None:
    known: set[str] = set()
    names = [name for method in service.methods for name in fields(method.input_type, known)]
    assert len(names) > len(service.methods)
    assert [name for name in names if "seed" in name or "random" in name] == []


def test_no_setting_has_a_seed() -> None:
    assert len(Config.model_fields) > 20
    assert [name for name in Config.model_fields if "seed" in name or "random" in name] == []


def test_no_option_of_a_command_chooses_a_seed() -> None:
    programs = {"equipoise": equipoise.cli.app, "equipoise-server": equipoise_server.cli.app}
    found = [pair for name, app in programs.items() for pair in options(name, typer.main.get_command(app))]
    assert len(found) > 200
    assert {pair for pair in found if "seed" in pair[1] or "random" in pair[1]} == NOT_OF_A_ROUND_TO_COME


def test_whoever_opens_a_round_brings_no_seed() -> None:
    assert "seed" not in " ".join(inspect.signature(Opening.open).parameters)
