"""How a mechanism does on a table that one may look at: without any server."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from equipoise.commands.options import with_fields
from equipoise.errors import BudgetExhausted, InvalidArgument
from equipoise_lab.simulation.progress import RunsProgress
from equipoise_lab.simulation.report import as_json as report_as_json
from equipoise_lab.simulation.report import print_report
from equipoise_lab.simulation.request import Request
from equipoise_lab.simulation.session_report import as_json as session_as_json
from equipoise_lab.simulation.session_report import print_session
from equipoise_lab.simulation.session_simulate import simulate_session
from equipoise_lab.simulation.session_task import load_session_task
from equipoise_lab.simulation.simulate import simulate as simulate_runs
from equipoise_lab.simulation.task import Analysts, load_task
from equipoise_server.commands.printing import ERR, OUT, AsJson, print_json
from equipoise_server.mechanisms.registry import SESSION_MECHANISMS


@with_fields
def simulate(
    table: Annotated[Path, typer.Option(help="The table: a .csv or .parquet file with a header.")],
    schema: Annotated[Path, typer.Option(help='The schema: a JSON file, also plain {"attribute": size}.')],
    workload: Annotated[
        list[str],
        typer.Option(
            help="marginals:3 for all tables of three attributes, or a statements file. For a mechanism of "
            "sessions what one analyst asks, in order; repeat for several, who then ask by turns."
        ),
    ],
    request: Request,
    as_json: AsJson = False,
) -> None:
    """Run a mechanism on a public table, and compare every answer with the truth.

    Needs no server and no network. Errors are reported separately for the synopsis, for the answers after repair
    and for the certified answers alone. A session mechanism answers statement by statement, and is compared with
    noise on each. Never use a private table: true errors reveal it, and so does a chosen seed.
    """
    request.check()
    if request.mechanism in SESSION_MECHANISMS:
        for option, given in (
            ("--analysts", request.analysts),
            ("--tables-per-analyst", request.tables_per_analyst),
        ):
            if given is not None:
                raise InvalidArgument(option, "is of rounds; give one --workload for each analyst of a session")
        _simulate_session(table, schema, workload, request, as_json)
        return
    if len(workload) != 1:
        raise InvalidArgument("--workload", "is one for a round, whose statements are dealt to its analysts")
    if request.length is not None:
        raise InvalidArgument("--length", f"is of sessions, which {request.mechanism} does not answer")
    asked = Analysts(request.analysts, request.tables_per_analyst, request.seed)
    try:
        with RunsProgress(request.repeat, ERR) as progress:
            report = simulate_runs(load_task(table, schema, workload[0], asked, request.whose), request, progress)
    except BudgetExhausted as error:
        # Options are all that is wrong: here are no accounts, nor an operator whom to ask for more.
        raise InvalidArgument(*error.message.split(": ", 1)) from None
    if as_json:
        print_json(report_as_json(report))
    else:
        print_report(OUT, report)


def _simulate_session(table: Path, schema: Path, workloads: list[str], request: Request, as_json: bool) -> None:
    try:
        with RunsProgress(request.repeat, ERR) as progress:
            report = simulate_session(load_session_task(table, schema, workloads, request.whose), request, progress)
    except BudgetExhausted as error:
        raise InvalidArgument(*error.message.split(": ", 1)) from None
    if as_json:
        print_json(session_as_json(report))
    else:
        print_session(OUT, report)
