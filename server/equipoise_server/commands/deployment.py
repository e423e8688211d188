"""Making a deployment, checking it, serving it, and seeing one at work."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Annotated

import typer

from equipoise.commands.printing import print_line
from equipoise_server.admin.checks import check_state
from equipoise_server.admin.new_state import LOCAL_NAMES, create_state
from equipoise_server.admin.ping import ping as ping_server
from equipoise_server.app import serve as serve_state
from equipoise_server.commands.printing import DEFAULT_STATE, AsJson, State, print_json


def init(
    state: State = DEFAULT_STATE,
    host: Annotated[
        list[str] | None,
        typer.Option(
            help="A host name or address by which clients reach this server; repeat for several. "
            "The server's certificate is good for these and no others. [default: localhost and loopback]"
        ),
    ] = None,
    listen: Annotated[
        str, typer.Option(help="The address to listen on, HOST:PORT. Loopback is reached from this machine only.")
    ] = "127.0.0.1:7443",
    store: Annotated[
        str,
        typer.Option(
            help="The store's URL: an SQLite file, or postgresql+psycopg://USER@HOST/DATABASE, an empty database. "
            "No password: put that into a file that PGPASSFILE names."
        ),
    ] = "sqlite:///equipoise.db",
    as_json: AsJson = False,
) -> None:
    """Make a state directory with a certificate authority, keys, an empty store and a configuration file.

    Also makes the first operator's and the first auditor's profile. A profile is a directory that lets its holder
    in: give each to its owner over a channel you trust, and delete it here.
    """
    config = create_state(state, tuple(host or LOCAL_NAMES), listen=listen, store=store)
    profiles = {role: str(state / "profiles" / role) for role in ("operator", "auditor")}
    if as_json:
        print_json({"state": str(state), "deployment": config.deployment, "profiles": profiles})
        return
    print_line(f"Made {state} for deployment {config.deployment}.")
    print_line(f"  configuration     {state / 'equipoise.toml'}")
    print_line(f"  private tables    put them into {state / 'data'}")
    for role, path in profiles.items():
        print_line(f"  {role + ' profile':<17} {path}")
    print_line(f"Next: equipoise-server serve --state {state}")


def check(state: State = DEFAULT_STATE, as_json: AsJson = False) -> None:
    """Check configuration, keys, certificates, store and journal, without serving.

    Exits with 0 if a server would start; otherwise with 1 and one line that says what is wrong. A store of an older
    version is brought up to date.
    """
    report = check_state(state)
    if as_json:
        print_json(report)
        return
    for name, value in report.items():
        print_line(f"  {name.replace('_', ' '):<28} {value}")
    print_line("All is well.")


def ping(state: State = DEFAULT_STATE, as_json: AsJson = False) -> None:
    """Ask the running server whether it answers. For health checks of containers and service managers.

    Exits with 0 if it does within five seconds; otherwise with 1 and one line that says what is wrong.
    """
    address = ping_server(state)
    if as_json:
        print_json({"state": str(state), "address": address})
    else:
        print_line(f"The server answers at {address}.")


def serve(
    state: State = DEFAULT_STATE,
    listen: Annotated[
        str | None,
        typer.Option(
            help="Where to listen, HOST:PORT, for one of several servers that share a state directory and a "
            "PostgreSQL on one machine. [default: as configured]"
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Serve until interrupted (Ctrl+C or SIGTERM); open calls may end first.

    Logs go to standard error as JSON lines. Rounds that were running when the server last stopped are run again,
    with the same results.
    """

    def ready(port: int) -> None:
        if as_json:
            print_json({"state": str(state), "port": port})
        else:
            print_line(f"Serving on port {port}. Stop with Ctrl+C.")

    asyncio.run(serve_state(state, ready=ready, listen=listen))


def demo(
    directory: Annotated[
        Path | None,
        typer.Option(help="An empty or new directory that keeps the demo's files. [default: a temporary one]"),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Run a whole round on a public table, with airlines that hide their questions from one another.

    Starts a real server on loopback with real certificates. Takes a minute or two, and ends with what every
    airline got, what it cost, and what to try next on the files it leaves.
    """
    # Only here: the demo's table comes with the demo's own dependencies.
    from equipoise_lab.demo import run_demo  # noqa: PLC0415

    run_demo(directory, json_only=as_json)
