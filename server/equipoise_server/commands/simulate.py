"""How a mechanism does on a table that one may look at: without any server."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

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
    mechanism: Annotated[str, typer.Option(help="The mechanism by name; auto chooses one of rounds.")] = "auto",
    length: Annotated[
        int | None,
        typer.Option(
            help="Of a session: how many turns it has, or statements in all where it has no turns. "
            "[default: as many as are needed]",
            show_default=False,
        ),
    ] = None,
    play: Annotated[
        str | None,
        typer.Option(help="How the game is played: mixed, sampled, or hru (as published). [default: planned]"),
    ] = None,
    unit: Annotated[
        str, typer.Option(help="What of an analyst is protected: one query (statement), or all of the analyst.")
    ] = "query",
    analysts: Annotated[
        int | None,
        typer.Option(help="How many analysts the statements are dealt to in turn. [default: up to 10]"),
    ] = None,
    tables_per_analyst: Annotated[
        int | None,
        typer.Option(
            help="Instead, each analyst draws so many different statements of the workload, popular ones more "
            "often: the most popular twice as often as the second, three times as often as the third, and so on. "
            "--seed fixes the popularities, and who draws what, for all runs."
        ),
    ] = None,
    eps_data: Annotated[float, typer.Option(help="Epsilon of the people in the table.")] = 1.0,
    delta_data: Annotated[
        float | None,
        typer.Option(help="Delta of the people in the table. [default: 1/n^2 for n records, at least 1e-17]"),
    ] = None,
    eps_analyst: Annotated[
        float, typer.Option(help="Epsilon of the analysts; inf does not protect them from one another.")
    ] = 1.0,
    delta_analyst: Annotated[float, typer.Option(help="Delta of the analysts.")] = 1e-6,
    beta: Annotated[float, typer.Option(help="Bounds hold with at least one less this probability.")] = 0.05,
    seed: Annotated[int, typer.Option(help="A number that repeats a run; the next runs count on from it.")] = 0,
    repeat: Annotated[int, typer.Option(help="How many runs.")] = 1,
    budget_split: Annotated[
        str | None,
        typer.Option(help="game=SHARE: the game's share of the data budget; game=1 leaves nothing for repair."),
    ] = None,
    forced: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            help="NAME=VALUE forces a parameter, such as rounds=100, or NAME=@FILE one that is JSON; repeat for "
            "several.",
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Run a mechanism on a table one may look at, and compare every answer with the truth.

    Needs no server and no network. Errors are reported apart: of the synopsis, of what is delivered after repair,
    of the certified answers only. A mechanism of sessions answers statement by statement, and is compared with
    noise on each alone. Never for private tables: true errors reveal them, and so does a chosen seed.
    """
    request = Request(
        mechanism=mechanism,
        unit=unit,
        eps_data=eps_data,
        delta_data=delta_data,
        eps_analyst=eps_analyst,
        delta_analyst=delta_analyst,
        beta=beta,
        seed=seed,
        repeat=repeat,
        play=play,
        budget_split=budget_split,
        forced=tuple(forced or ()),
    )
    request.check()
    if mechanism in SESSION_MECHANISMS:
        for option, given in (("--analysts", analysts), ("--tables-per-analyst", tables_per_analyst)):
            if given is not None:
                raise InvalidArgument(option, "is of rounds; give one --workload for each analyst of a session")
        _simulate_session(table, schema, workload, length, request, as_json)
        return
    if len(workload) != 1:
        raise InvalidArgument("--workload", "is one for a round, whose statements are dealt to its analysts")
    if length is not None:
        raise InvalidArgument("--length", f"is of sessions, which {mechanism} does not answer")
    asked = Analysts(analysts, tables_per_analyst, seed)
    try:
        with RunsProgress(repeat, ERR) as progress:
            report = simulate_runs(load_task(table, schema, workload[0], asked), request, progress)
    except BudgetExhausted as error:
        # Options are all that is wrong: here are no accounts, nor an operator whom to ask for more.
        raise InvalidArgument(*error.message.split(": ", 1)) from None
    if as_json:
        print_json(report_as_json(report))
    else:
        print_report(OUT, report)


def _simulate_session(
    table: Path, schema: Path, workloads: list[str], length: int | None, request: Request, as_json: bool
) -> None:
    try:
        with RunsProgress(request.repeat, ERR) as progress:
            report = simulate_session(load_session_task(table, schema, workloads), request, progress, length)
    except BudgetExhausted as error:
        raise InvalidArgument(*error.message.split(": ", 1)) from None
    if as_json:
        print_json(session_as_json(report))
    else:
        print_session(OUT, report)
