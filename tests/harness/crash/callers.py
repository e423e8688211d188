"""The operator and the analysts of a server that dies all the time."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from harness.crash.dying_server import Persisting, Server

from equipoise.clients.analyst import Client
from equipoise.clients.operator import Operator

ANALYSTS = ("ann", "bob", "cy")


def admit(server: Server, profiles: Path, names: Sequence[str] = ANALYSTS) -> None:
    """The analysts, before anything else."""
    caller = operator(server)
    for name in names:
        caller.ask(lambda it, name=name: it.add_analyst(name, profiles / name))  # type: ignore[misc]
    caller.close()


def operator(server: Server) -> Persisting[Operator]:
    """The operator of a server."""
    return Persisting(server, lambda: Operator.from_profile(server.state / "profiles" / "operator"))


def analyst(server: Server, profiles: Path, name: str) -> Persisting[Client]:
    """An analyst of a server, once admitted."""
    return Persisting(server, lambda: Client.from_profile(profiles / name))
