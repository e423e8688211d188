"""Backing a deployment up while servers run, and restoring it while none runs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from equipoise.commands.printing import print_line
from equipoise_server.admin.backups import back_up
from equipoise_server.admin.restore import restore as restore_state
from equipoise_server.commands.printing import DEFAULT_STATE, AsJson, State, print_json


def backup(
    out: Annotated[
        Path, typer.Option(help="A new directory for the backup. It is as secret as the state directory.")
    ],
    state: State = DEFAULT_STATE,
    as_json: AsJson = False,
) -> None:
    """Back up the store, the configuration and the keys to a new directory; servers may run meanwhile.

    Private tables and profiles are not part of it, nor is the guard, which must never be replaced by an older one.
    On PostgreSQL this needs pg_dump.
    """
    made = back_up(state, out)
    if as_json:
        print_json({"directory": str(out), "deployment": made.deployment, "time": made.time, "kind": made.kind})
        return
    print_line(f"Backed up {made.deployment} to {out}.")


def restore(
    source: Annotated[Path, typer.Option("--from", help="The directory that equipoise-server backup wrote.")],
    state: State = DEFAULT_STATE,
    older: Annotated[
        bool,
        typer.Option(
            "--older",
            help="Replace the store although budgets were spent since the backup, or though no guard is there to "
            "tell. A server starts on it only after: equipoise-server ledger write-off.",
        ),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Put a backup's store in the place of the deployment's, while no server runs.

    The copy is checked first, and refused if the guard knows of anything that it lacks. The store before is kept. A
    state directory that is lost is made anew with the backup's configuration and keys; put the private tables into
    its data directory. On PostgreSQL this needs pg_restore, and the right to make databases.
    """
    done = restore_state(state, source, older=older)
    if as_json:
        print_json({"replaced": done.replaced, "made_state": done.made, "older": done.older})
        return
    if done.made:
        print_line(f"Made {state} of the backup's configuration and keys.")
    print_line(f"Restored the store from {source}.")
    if done.replaced:
        print_line(f"The store before is kept as {done.replaced}; remove it when all is well.")
    if done.older:
        print_line(f"Next: equipoise-server ledger write-off --state {state}")
