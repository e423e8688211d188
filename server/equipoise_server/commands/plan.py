"""What a round would promise, from public numbers: without any server."""

from __future__ import annotations

from typing import Annotated

import typer

from equipoise_lab.planning.report import as_json as comparison_as_json
from equipoise_lab.planning.report import print_comparison
from equipoise_lab.planning.request import PlanRequest, compared
from equipoise_server.commands.printing import ERR, OUT, AsJson, print_json


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
    support: Annotated[
        str | None,
        typer.Option(
            help="How many of the universe's records one query may cover, or leave out, whichever are fewer: 16800 "
            "for tables of 20 cells over 336000. One number for all analysts alike, or one for each. "
            "[default: half of the universe]",
            metavar="C|A,B,C",
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
    mechanism: Annotated[
        str, typer.Option(help="Plan this one only, also one of sessions; auto compares all of rounds and chooses.")
    ] = "auto",
    length: Annotated[
        int | None,
        typer.Option(
            help="Of a session: how many turns it has, or statements in all where it has no turns. "
            "[default: as the shares allow]",
            show_default=False,
        ),
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
        support=support,
        unit=unit,
        eps_data=eps_data,
        delta_data=delta_data,
        eps_analyst=eps_analyst,
        delta_analyst=delta_analyst,
        beta=beta,
        mechanism=mechanism,
        length=length,
        forced=tuple(forced or ()),
    )
    setting = request.setting()
    with ERR.status("planning") as status:
        found = compared(request, setting, lambda name: status.update(f"planning {name}"))
    if as_json:
        print_json(comparison_as_json(setting, found))
    else:
        print_comparison(OUT, setting, found)
    if found.chosen is None:
        raise typer.Exit(1)
