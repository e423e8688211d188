"""`equipoise-server`: for the machine that holds the data. People who talk to a server use `equipoise`."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from equipoise.errors import BudgetExhausted, EquipoiseError, InvalidArgument
from equipoise_server.app import serve as serve_state
from equipoise_server.checking import check_state, count_table
from equipoise_server.planning.report import as_json as comparison_as_json
from equipoise_server.planning.report import print_comparison
from equipoise_server.planning.request import PlanRequest, compared
from equipoise_server.repairing import verify, write_off_state
from equipoise_server.simulation.progress import RunsProgress
from equipoise_server.simulation.report import as_json as report_as_json
from equipoise_server.simulation.report import print_report
from equipoise_server.simulation.request import Request
from equipoise_server.simulation.simulate import simulate as simulate_runs
from equipoise_server.simulation.task import Analysts, load_task
from equipoise_server.state import LOCAL_NAMES, create_state

app = typer.Typer(
    help="Hold a private table and answer many analysts' questions about it, in rounds that protect the people "
    "in the table and the analysts who ask.\n\nBegin with: equipoise-server init, then equipoise-server serve. "
    "To see a whole round first: equipoise-server demo.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
data_app = typer.Typer(help="Look at tables before they are registered.", no_args_is_help=True)
app.add_typer(data_app, name="data")
ledger_app = typer.Typer(help="Check and repair the budget ledger, while no server runs.", no_args_is_help=True)
app.add_typer(ledger_app, name="ledger")

State = Annotated[
    Path,
    typer.Option(
        "--state",
        envvar="EQUIPOISE_STATE",
        help="The state directory: configuration, keys, store. Keep it private and back it up.",
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object, the last line of the output.")]

DEFAULT_STATE = Path("equipoise-state")
_FINDINGS = {
    "contained": "Nothing is missing.",
    "missing": "There was no guard, so all that was left has been written off.",
    "behind": "The store is an older copy.",
    "forked": "The store is a copy that went another way.",
}
_out = Console(emoji=False)
_err = Console(stderr=True, emoji=False)


@app.command()
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
        str, typer.Option(help="Where to listen, HOST:PORT. Loopback is reached from this machine only.")
    ] = "127.0.0.1:7443",
    store: Annotated[
        str,
        typer.Option(
            help="The store's URL: an SQLite file, or postgresql+psycopg://USER@HOST/DATABASE, an empty database."
        ),
    ] = "sqlite:///equipoise.db",
    as_json: AsJson = False,
) -> None:
    """Make a state directory: an own certificate authority, keys, an empty store, a configuration file.

    Also makes the first operator's and the first auditor's profile. A profile is a directory that lets its holder
    in: hand each to its owner over a channel you trust, and remove it here.
    """
    config = create_state(state, tuple(host or LOCAL_NAMES), listen=listen, store=store)
    profiles = {role: str(state / "profiles" / role) for role in ("operator", "auditor")}
    if as_json:
        _print_json({"state": str(state), "deployment": config.deployment, "profiles": profiles})
        return
    _out.print(f"Made [bold]{state}[/bold] for deployment {config.deployment}.", highlight=False)
    _out.print(f"  configuration     {state / 'equipoise.toml'}", highlight=False)
    _out.print(f"  private tables    put them into {state / 'data'}", highlight=False)
    for role, path in profiles.items():
        _out.print(f"  {role + ' profile':<17} {path}", highlight=False)
    _out.print(f"Next: equipoise-server serve --state {state}", highlight=False)


@app.command()
def check(state: State = DEFAULT_STATE, as_json: AsJson = False) -> None:
    """Check configuration, keys, certificates, store and journal, without serving.

    Exits with 0 if a server would start, with 1 and one line saying what is wrong if not. A store of an older
    version is brought up to date.
    """
    found = check_state(state)
    if as_json:
        _print_json(found)
        return
    for name, value in found.items():
        _out.print(f"  {name.replace('_', ' '):<28} {value}", highlight=False)
    _out.print("All is well.")


@app.command()
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
            _print_json({"state": str(state), "port": port})
        else:
            _out.print(f"Serving on port {port}. Stop with Ctrl+C.", highlight=False)

    asyncio.run(serve_state(state, ready=ready, listen=listen))


@ledger_app.command("verify")
def verify_ledger(state: State = DEFAULT_STATE, as_json: AsJson = False) -> None:
    """Recompute the journal's chain and every account from it, and compare with the guard.

    Changes nothing, but for a store of an older version, which is brought up to date. Exits with 1 and one line
    saying what is wrong, if something is.
    """
    found = verify(state)
    if as_json:
        _print_json(found)
        return
    _out.print(f"{found['entries']:,} entries, {found['accounts']:,} accounts: all agree.", highlight=False)
    _out.print(f"Last digest {found['digest']}.", highlight=False)


@ledger_app.command("write-off")
def write_off(state: State = DEFAULT_STATE, as_json: AsJson = False) -> None:
    """Repair a store that was restored from an older copy, so that a server starts on it again.

    What the copy does not know of is marked as spent, by account and in the journal: exactly where the guard knows
    it, all that is left where the guard is gone. Every round that has not ended is aborted and charged, because it
    may have been run in what was lost. Does nothing where nothing is missing.
    """
    found = write_off_state(state)
    if as_json:
        _print_json(found)
        return
    _out.print(_FINDINGS[found["finding"]], highlight=False)
    for lost in found["written_off"]:
        amounts = (
            f"rho {lost['rho'] / 1e12:.6g}, epsilon {lost['epsilon'] / 1e12:.6g}, delta {lost['delta'] / 1e18:.3g}"
        )
        _out.print(f"  written off on {lost['account']}: {amounts}", highlight=False, markup=False)
    for round_id in found["aborted"]:
        _out.print(f"  aborted round {round_id}", highlight=False, markup=False)


@data_app.command("check")
def check_table(
    table: Annotated[Path, typer.Option(help="The table: a .csv or .parquet file with a header.")],
    schema: Annotated[Path, typer.Option(help="The schema: a JSON file of attributes.")],
    as_json: AsJson = False,
) -> None:
    """Read a table under a schema, as registering it would, and count.

    Prints the size of the universe (how many different records can exist), the number of records, and how many
    fall into each category. What the schema does not allow is counted by attribute, and the exit code is 1.
    The counts are exact and private: they are for the custodian's eyes.
    """
    found = count_table(table, schema)
    if as_json:
        _print_json({"universe_size": found.universe_size, "records": found.records, "counts": found.counts})
        return
    shown = Table("attribute", "category", "records")
    for attribute, counts in found.counts.items():
        for category, count in counts.items():
            shown.add_row(attribute, category, f"{count:,}")
    _out.print(shown)
    _out.print(f"{found.records:,} records in a universe of {found.universe_size:,}.", highlight=False)


@app.command()
def demo(
    directory: Annotated[
        Path | None,
        typer.Option(help="An empty or new directory that keeps the demo's files. [default: a temporary one]"),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Play one whole round on a real public table: airlines compete, nobody learns what the others asked.

    Starts a real server on loopback with real certificates. Takes a minute or two, and ends with what every
    airline got, what it cost, and what to try next on the files it leaves.
    """
    # Only here: the demo's table comes with the demo's own dependencies.
    from equipoise_server.demo import run_demo  # noqa: PLC0415

    run_demo(directory, json_only=as_json)


@app.command()
def plan(
    records: Annotated[str, typer.Option(help="How many records the table has.", metavar="N")],
    universe: Annotated[
        str,
        typer.Option(
            help="How many different records can exist, such as 336000 or 2^40; or how many categories each "
            "attribute has, such as 16x7x15: mechanisms that measure tables of attributes need these.",
            metavar="X",
        ),
    ],
    queries: Annotated[
        str,
        typer.Option(
            help="How many linear queries (cells of tables count one by one) all analysts may ask together, dealt "
            "out evenly; or a number for each analyst, such as 600,600,50.",
            metavar="K|A,B,C",
        ),
    ],
    analysts: Annotated[
        str | None, typer.Option(help="How many analysts. [default: as many as --queries has]", metavar="M")
    ] = None,
    statements: Annotated[
        str | None,
        typer.Option(
            help="In how many statements they ask them, written as --queries; a table is one. "
            "[default: every query is a statement]",
            metavar="S|A,B,C",
        ),
    ] = None,
    sensitivity: Annotated[
        str | None,
        typer.Option(
            help="By how much one record replaced may move an analyst's counts in sum: 1 for each condition, 2 for "
            "each table. One number for all analysts alike, or one for each. [default: 2 for each statement]",
            metavar="D|A,B,C",
        ),
    ] = None,
    unit: Annotated[
        str, typer.Option(help="What of an analyst is protected: one query (statement), or all of the analyst.")
    ] = "query",
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
    mechanism: Annotated[str, typer.Option(help="Plan this one only; auto compares all and chooses.")] = "auto",
    as_json: AsJson = False,
) -> None:
    """Compare what every mechanism would promise, cost and take for a round, and show which one auto chooses.

    Needs no table and no server: a plan depends on public numbers only. Takes a few seconds, whatever the size.
    Exits with 1 where no mechanism can serve such a round.
    """
    request = PlanRequest(
        records=records,
        universe=universe,
        queries=queries,
        analysts=analysts,
        statements=statements,
        sensitivity=sensitivity,
        unit=unit,
        eps_data=eps_data,
        delta_data=delta_data,
        eps_analyst=eps_analyst,
        delta_analyst=delta_analyst,
        beta=beta,
        mechanism=mechanism,
    )
    setting = request.setting()
    with _err.status("planning") as status:
        found = compared(request, setting, lambda name: status.update(f"planning {name}"))
    if as_json:
        _print_json(comparison_as_json(setting, found))
    else:
        print_comparison(_out, setting, found)
    if found.chosen is None:
        raise typer.Exit(1)


@app.command()
def simulate(
    table: Annotated[Path, typer.Option(help="The table: a .csv or .parquet file with a header.")],
    schema: Annotated[Path, typer.Option(help='The schema: a JSON file, also plain {"attribute": size}.')],
    workload: Annotated[
        str, typer.Option(help="marginals:3 for all tables of three attributes, or a statements file.")
    ],
    mechanism: Annotated[str, typer.Option(help="The mechanism by name; auto chooses.")] = "auto",
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
        float | None, typer.Option(help="Delta of the people in the table. [default: 1/n^2 for n records]")
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
        typer.Option("--set", help="NAME=VALUE forces a parameter, such as rounds=100; repeat for several."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Run a mechanism on a table one may look at, and compare every answer with the truth.

    Needs no server and no network. Errors are reported apart: of the synopsis, of what is delivered after repair,
    of the certified answers only. Never for private tables: true errors reveal them, and so does a chosen seed.
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
    asked = Analysts(analysts, tables_per_analyst, seed)
    try:
        with RunsProgress(repeat, _err) as progress:
            report = simulate_runs(load_task(table, schema, workload, asked), request, progress)
    except BudgetExhausted as error:
        # Options are all that is wrong: here are no accounts, nor an operator whom to ask for more.
        raise InvalidArgument(*error.message.split(": ", 1)) from None
    if as_json:
        _print_json(report_as_json(report))
    else:
        print_report(_out, report)


def main(arguments: Sequence[str] | None = None) -> None:
    """Runs the command. Exit codes: 0, 1 for a refusal or failure in one clear line, 2 for wrong usage."""
    try:
        app(arguments)
    except EquipoiseError as error:
        _err.print(f"error: {error.message}", style="red", markup=False, highlight=False, soft_wrap=True)
        if not isinstance(error, InvalidArgument):
            _err.print(error.advice, markup=False, highlight=False, soft_wrap=True)
        sys.exit(1)


def _print_json(value: object) -> None:
    # Not through rich, which would wrap lines at the terminal's width; flushed for those who wait for it.
    print(json.dumps(value), flush=True)
