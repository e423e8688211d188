"""What analysts type in sessions, in which each statement is answered before the next is needed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Annotated, TypedDict

import typer

from equipoise.accounting import in_rho
from equipoise.clients.analyst import Client
from equipoise.clients.statement_answer import StatementAnswer
from equipoise.commands.files import read_priced
from equipoise.commands.options import DEFAULT_PROFILE, AsJson, Profile, SessionId, percentage, weights_of
from equipoise.commands.printing import fraction, print_json, print_line, print_list, print_table
from equipoise.commands.round_lists import OWN_SESSIONS
from equipoise.commands.typed_statements import Typed, read_typed
from equipoise.errors import BudgetExhausted, InvalidArgument
from equipoise.queries.grant_costs import SHOWN as SHOWN_ERRORS
from equipoise.queries.grant_costs import shown_errors
from equipoise.queries.grant_price import GrantPrice
from equipoise.queries.statements import Statement, StatisticKind, kind_of
from equipoise.results import Answer

TYPED = Path("-")
SHOWN = ("cell", "value", "low", "high", "standard_error", "method")
HEAD = f"{'number':>8} {'value':>9} {'low':>9} {'high':>9} {'error':>9} {'records':>19}  {'method':<12}  cell"
WINDOW = 32  # statements of a file that are on their way at once


def sessions(profile: Profile = DEFAULT_PROFILE, as_json: AsJson = False) -> None:
    """List the online sessions in which you have a share, newest first."""
    with Client.from_profile(profile) as client:
        print_list("sessions", list(client.sessions()), OWN_SESSIONS, as_json)


Unprotected = Annotated[
    bool, typer.Option("--accept-unprotected", help="Ask although other analysts may learn what you ask.")
]
Rho = Annotated[
    float | None, typer.Option(help="Of a grant: what each statement may cost, in zCDP.", show_default=False)
]
WantedError = Annotated[
    float | None,
    typer.Option(
        help="Of a grant: the wanted standard error of each count, in records; what it needs is paid.",
        show_default=False,
    ),
]
Epsilon = Annotated[
    float | None,
    typer.Option(help="Of a grant: the pure epsilon of an answer that costs as much.", show_default=False),
]
Relative = Annotated[
    float | None,
    typer.Option(
        parser=percentage,
        metavar="PERCENT",
        help="Of a grant: the wanted error of a typical cell, such as 5%; 19 of 20 of such cells keep it.",
        show_default=False,
    ),
]


def ask(
    session_id: SessionId,
    statements: Annotated[
        Path,
        typer.Argument(
            metavar="[STATEMENTS]",
            help="A statements file, as for `equipoise submit`; without one, type them, or pipe them in.",
        ),
    ] = TYPED,
    after: Annotated[
        int | None,
        typer.Option(
            min=0,
            help="How many of your statements in this session come before these. [default: 0 with a file, whose "
            "statements get their answers again if they have any; else all that you have asked]",
            show_default=False,
        ),
    ] = None,
    accept_unprotected: Unprotected = False,
    rho: Rho = None,
    error: WantedError = None,
    epsilon: Epsilon = None,
    relative: Relative = None,
    weights: Annotated[
        str | None,
        typer.Option(
            metavar="NUMBERS",
            help="Of a grant: such as 2,1,1, one for each statement, which share --rho by these.",
            show_default=False,
        ),
    ] = None,
    dry_run: Annotated[
        bool,
        typer.Option(
            "--dry-run",
            help="Of a grant: only show what each statement would cost after all that was asked. Nothing is asked.",
        ),
    ] = False,
    profile: Profile = DEFAULT_PROFILE,
    as_json: AsJson = False,
) -> None:
    """Ask statements of a grant or in a session, one after the other; each answer is printed as it arrives.

    Of a grant, --rho, --epsilon, --error or --relative says how precisely each statement is wanted. The same
    question again, for no more than was paid for it, has the same answer and costs nothing. A statement can say so
    for itself, as in {"marginal": ["carrier"], "error": 200}: rho, epsilon, error, relative (0.05 for 5%), or in a
    file a weight by which all share --rho.

    Values, intervals and standard errors are fractions of the records. Beside them are a count and its standard
    error, in records.

    What is typed, or piped in, is one statement a line, as in a statements file:

    {"among": {"attribute": "carrier", "categories": ["AA", "UA"]}}

    Each of those is a new statement, also where the same line was asked before; --after 0 says that they are all
    of yours from the first on. With a file, what has its answer is not asked twice: the same file again goes on
    where it was. A server that is started again is waited for, some two minutes. A quantile is answered as a place
    in the attribute's range, from 0, its lowest edge, to 1, its highest; what it stands for is shown beside it.

    The newest receipt is kept in the profile. With --json each answer is an object on a line of its own.
    """
    price = Price(rho=rho, error=error, epsilon=epsilon, relative=relative, weights=weights_of(weights), prices=())
    asked = None
    if statements != TYPED:
        asked = read_priced(statements)
    elif dry_run:
        asked = read_typed()
    if asked is not None:
        price |= {"prices": asked.prices, "weights": asked.weights or price["weights"]}
    if dry_run and asked is not None:
        show_costs(profile, session_id, asked.statements, price, as_json)
        return
    with Client.from_profile(profile) as client:
        shown = client.session(session_id)
        typed = Typed(priced=shown.grant is not None)
        if asked is None and shown.grant is not None and price["weights"] is None:
            price["prices"] = typed.prices()
        answers_to = partial(client.ask, shown.id, accept_unprotected=accept_unprotected, **price)
        if not as_json:
            print_line(HEAD)
        if asked is not None:
            show_answers(answers_to(asked.statements, after=after or 0, window=WINDOW), shown.records, as_json)
            return
        while not typed.ended:
            try:
                show_answers(answers_to(typed, after=after), shown.records, as_json)
            except (InvalidArgument, BudgetExhausted) as refusal:
                typed.refused(refusal)
                after = None  # all before it were answered


def show_costs(
    profile: Path, session_id: str, statements: Sequence[Statement], price: Price, as_json: bool
) -> None:
    """Print what statements would cost of a grant as it stands, and what is cheaper. Nothing is asked.

    Args:
        profile: the analyst's.
        session_id: the grant, or its dataset.
        statements: in order.
        price: what each may cost, by the names of `SessionsClient.ask`.
        as_json: whether one object is printed.

    Raises:
        InvalidArgument: it is a session that is no grant, or a statement is a statistic.
    """
    with Client.from_profile(profile) as client:
        shown = client.session(session_id)
        found = client.grant_costs(shown.id, statements, **price)
    if as_json:
        print_json({"grant": shown.id, **asdict(found)})
        return
    rows = [
        (i, in_rho(each.rho), in_rho(each.cost), *shown_errors(each)) for i, each in enumerate(found.statements)
    ]
    print_table(("statement", "wanted for rho", "costs rho", *SHOWN_ERRORS), rows)
    print_line(f"together rho {in_rho(found.at_most)}, of rho {in_rho(found.left)} that is left")
    if found.cheapest < found.at_most:
        order = ", ".join(map(str, found.cheapest_order))
        print_line(f"cheaper in the order {order}: together rho {in_rho(found.cheapest)}")


class Price(TypedDict):
    """The price that is wanted for each statement of a grant, as `SessionsClient.ask` takes it."""

    rho: float | None
    error: float | None
    epsilon: float | None
    relative: float | None
    weights: list[float] | None
    prices: Iterable[GrantPrice | None]


def show_answers(answers: Iterable[StatementAnswer], records: int, as_json: bool) -> None:
    """Print a line for each cell of each answer, or an object for each answer.

    Args:
        answers: in the order in which they arrive.
        records: how many the table has.
        as_json: whether objects are printed.
    """
    for answer in answers:
        if as_json:
            rows = [{name: row[name] for name in SHOWN} for row in answer.results.to_dicts()]
            print_json({"sequence": answer.sequence, "slot": answer.slot, "cost": answer.cost, "answers": rows})
            continue
        for each in answer.results:
            numbers = (each.value, each.low, each.high, each.standard_error)
            row = " ".join(f"{fraction(number):>9}" for number in numbers)
            row += f" {_in_records(answer, each, records):>19}"
            cell = " / ".join(each.cell) or _meaning(answer)
            line = f"{answer.sequence:>8} {row}  {each.method.label:<12}  {cell}"
            print_line(line.rstrip())


def _in_records(answer: StatementAnswer, each: Answer, records: int) -> str:
    """Return a count with its standard error, in records; nothing of what is no count."""
    if isinstance(kind_of(answer.statement), StatisticKind):
        return ""
    error = "" if each.standard_error is None else f" +- {each.standard_error * records:,.4g}"
    return f"{each.value * records:,.0f}{error}"


def _meaning(answer: StatementAnswer) -> str:
    """Of a statistic whose value does not stand for itself: what it stands for."""
    labels, kind = answer.results.labels, kind_of(answer.statement)
    if labels is None or not isinstance(kind, StatisticKind):
        return ""
    return kind.meaning(answer.statement, min(max(0.0, answer.value), 1.0), labels.schema)
