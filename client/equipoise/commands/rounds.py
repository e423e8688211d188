"""What operators type about rounds."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from typing import Annotated

import typer

from equipoise.clients.operator import Operator
from equipoise.commands.options import DEFAULT_PROFILE, AsJson, Profile, RequestId, RoundId
from equipoise.commands.printing import (
    RunProgress,
    next_step,
    print_json,
    print_line,
    print_plan,
    print_round,
    print_table,
)
from equipoise.errors import InvalidArgument
from equipoise.model.accounts import Budget
from equipoise.model.rounds import RoundDetail, Share, Terms

round_app = typer.Typer(
    help="Rounds, from opening to release: open, (analysts submit), seal, run, release.", no_args_is_help=True
)

Dataset = Annotated[str, typer.Argument(help="The dataset's name.")]
SHARE = "ANALYST=STATEMENTS[/QUERIES[/SENSITIVITY[/SUPPORT]]]"
Shares = Annotated[
    list[str],
    typer.Option(
        "--share",
        metavar=SHARE,
        help="What one analyst may ask, such as AA=100/240/120; once for each analyst. Queries count the cells of "
        "marginals; left out, they are as many as the statements. The sensitivity is 1 for each condition and 2 "
        "for each marginal, in sum; left out or 0, all may be marginals, and noise may be larger for it. The "
        "support is how many records of the universe one query may cover or leave out, whichever are fewer; left "
        "out or 0, half of the universe, and histogram promises less for it.",
    ),
]
DataEpsilon = Annotated[float, typer.Option(help="The most the round may cost the people in the table.")]
DataDelta = Annotated[float, typer.Option(help="Its delta.")]
AnalystEpsilon = Annotated[float, typer.Option(help="The most it may cost any analyst.")]
AnalystDelta = Annotated[float, typer.Option(help="Its delta.")]
Unit = Annotated[
    str,
    typer.Option(
        help="What stays hidden from the other analysts: one statement (query), or all of one's (analyst)."
    ),
]
Beta = Annotated[float, typer.Option(help="The probability with which any stated bound may fail.")]
Mechanism = Annotated[
    str, typer.Option(help="A mechanism's name, or auto, which takes the one with the smallest promised error.")
]
Close = Annotated[
    datetime | None,
    typer.Option(
        "--close",
        formats=["%Y-%m-%dT%H:%M:%S%z", "%Y-%m-%dT%H:%M%z"],
        help="When the round closes, such as 2030-01-31T18:00Z: from then on the server seals, runs and releases "
        "it by itself. [default: each step is asked for]",
        show_default=False,
    ),
]
ReleaseGrid = Annotated[
    int, typer.Option(help="Results open at multiples of this many seconds since 1970; 0: as the server is set.")
]
Options = Annotated[str, typer.Option(help='Options of the mechanism, a JSON object: {"play": "sampled"}.')]

_SHARE = re.compile(
    r"(?P<analyst>[^=]+)=(?P<statements>[0-9]{1,13})"
    r"(?:/(?P<queries>[0-9]{1,13})(?:/(?P<sensitivity>[0-9]{1,13})(?:/(?P<support>[0-9]{1,13}))?)?)?",
    re.ASCII,
)


@round_app.command("plan")
def plan(
    dataset: Dataset,
    share: Shares,
    data_epsilon: DataEpsilon,
    data_delta: DataDelta,
    analyst_epsilon: AnalystEpsilon,
    analyst_delta: AnalystDelta = 1e-6,
    unit: Unit = "query",
    beta: Beta = 0.05,
    mechanism: Mechanism = "auto",
    options: Options = "",
    close: Close = None,
    release_grid: ReleaseGrid = 0,
    profile: Profile = DEFAULT_PROFILE,
    as_json: AsJson = False,
) -> None:
    """Show what a round would do, cost and promise. Nothing is opened, nothing is spent.

    A plan depends on public things only: the number of records, the schema, shares and budgets.
    """
    data, analysts = Budget(data_epsilon, data_delta), Budget(analyst_epsilon, analyst_delta)
    terms = Terms(dataset, parse_shares(share), data, analysts, unit, beta, mechanism, parse_options(options))
    terms = replace(terms, close_time=close, release_grid_seconds=release_grid)
    with Operator.from_profile(profile) as operator:
        found = operator.plan(terms)
    if as_json:
        print_json(found)
    else:
        print_plan(found, terms.mechanism)


@round_app.command("open")
def open_round(
    dataset: Dataset,
    share: Shares,
    data_epsilon: DataEpsilon,
    data_delta: DataDelta,
    analyst_epsilon: AnalystEpsilon,
    analyst_delta: AnalystDelta = 1e-6,
    unit: Unit = "query",
    beta: Beta = 0.05,
    mechanism: Mechanism = "auto",
    options: Options = "",
    close: Close = None,
    release_grid: ReleaseGrid = 0,
    request_id: RequestId = None,
    profile: Profile = DEFAULT_PROFILE,
    as_json: AsJson = False,
) -> None:
    """Open a round: the analysts with a share can submit from now on. Its seed is drawn and committed here."""
    data, analysts = Budget(data_epsilon, data_delta), Budget(analyst_epsilon, analyst_delta)
    terms = Terms(dataset, parse_shares(share), data, analysts, unit, beta, mechanism, parse_options(options))
    terms = replace(terms, close_time=close, release_grid_seconds=release_grid)
    act(profile, as_json, lambda operator: operator.open(terms, request_id))


@round_app.command("list")
def list_rounds(profile: Profile = DEFAULT_PROFILE, as_json: AsJson = False) -> None:
    """List all rounds, newest first."""
    with Operator.from_profile(profile) as operator:
        found = list(operator.rounds())
    if as_json:
        print_json({"rounds": found})
    else:
        print_rounds(found)


@round_app.command("show")
def show(round_id: RoundId, profile: Profile = DEFAULT_PROFILE, as_json: AsJson = False) -> None:
    """Show one round: terms, shares, plan, progress."""
    act(profile, as_json, lambda operator: operator.round(round_id))


@round_app.command("seal")
def seal(
    round_id: RoundId, request_id: RequestId = None, profile: Profile = DEFAULT_PROFILE, as_json: AsJson = False
) -> None:
    """Fix the workloads and reserve both budgets. Late work is refused from now on.

    A round in which nobody has asked goes on like any other, at the same price: its analysts must not see that.
    """
    act(profile, as_json, lambda operator: operator.seal(round_id, request_id))


@round_app.command("run")
def run(
    round_id: RoundId,
    follow: Annotated[bool, typer.Option(help="Wait for the end and show the progress.")] = True,
    request_id: RequestId = None,
    profile: Profile = DEFAULT_PROFILE,
    as_json: AsJson = False,
) -> None:
    """Compute the answers in a worker process; a run that was interrupted can be started again."""

    def start(operator: Operator) -> RoundDetail:
        if not follow:
            return operator.run(round_id, request_id)
        with RunProgress() as progress:
            return operator.run_to_completion(round_id, progress, request_id)

    act(profile, as_json, start)


@round_app.command("watch")
def watch(round_id: RoundId, profile: Profile = DEFAULT_PROFILE, as_json: AsJson = False) -> None:
    """Follow a round until it has ended, and say what it waits for. With --json one object for every change."""
    last = None
    with Operator.from_profile(profile) as operator:
        if as_json:
            for last in operator.watch(round_id):
                print_json(last)
            return
        with RunProgress() as progress:
            for last in operator.watch(round_id):
                progress(last)
                progress.say(next_step(last))
    if last is not None:
        _print_detail(last)


@round_app.command("release")
def release(
    round_id: RoundId, request_id: RequestId = None, profile: Profile = DEFAULT_PROFILE, as_json: AsJson = False
) -> None:
    """Store the answers, spend both budgets, and open every analyst's stream at the same moment."""
    act(profile, as_json, lambda operator: operator.release(round_id, request_id))


@round_app.command("abort")
def abort(
    round_id: RoundId,
    reason: Annotated[str, typer.Option(help="Shown to every analyst of the round: give public things only.")],
    request_id: RequestId = None,
    profile: Profile = DEFAULT_PROFILE,
    as_json: AsJson = False,
) -> None:
    """End a round without answers. If it ran already, its budgets count as spent."""
    act(profile, as_json, lambda operator: operator.abort(round_id, reason, request_id))


def print_rounds(found: list[RoundDetail]) -> None:
    """A line for each round."""
    print_table(
        ("round", "dataset", "state", "mechanism", "analysts", "queries", "promised error"),
        (
            (
                each.round.id,
                each.round.terms.dataset,
                each.round.state,
                each.plan.mechanism,
                len(each.round.terms.shares),
                f"{sum(share.queries for share in each.round.terms.shares):,}",
                f"{each.plan.error_bound:.4g}",
            )
            for each in found
        ),
    )


def act(profile: Profile, as_json: bool, step: Callable[[Operator], RoundDetail]) -> None:
    """Takes a step of a round's or a session's, and prints it as it then is."""
    with Operator.from_profile(profile) as operator:
        detail = step(operator)
    if as_json:
        print_json(detail)
    else:
        _print_detail(detail)


def _print_detail(detail: RoundDetail) -> None:
    print_round(detail.round)
    print_plan(detail.plan, detail.round.terms.mechanism)
    if detail.progress.phase:
        done = detail.progress
        print_table(("phase", "done", "of"), [(done.phase, done.done, done.total)])
    if step := next_step(detail):
        print_line(f"  {step}")
    columns: tuple[str, ...] = ("analyst", "statements", "queries")
    rows = [_asks(share) for share in detail.round.terms.shares]
    if detail.round.terms.session is None:
        columns += ("sensitivity", "support")
        declared = ((_declared(share.sensitivity), _declared(share.support)) for share in detail.round.terms.shares)
        rows = [row + each for row, each in zip(rows, declared, strict=True)]
    print_table(columns, rows)


def _asks(share: Share) -> tuple[str, ...]:
    return share.analyst, f"{share.statements:,}", f"{share.queries:,}"


def _declared(number: int) -> str:
    return f"{number:,}" if number else "not declared"


def parse_shares(texts: list[str]) -> tuple[Share, ...]:
    """The shares of texts such as `SHARE`. Raises `InvalidArgument`."""
    shares = []
    for text in texts:
        found = _SHARE.fullmatch(text)
        if found is None:
            raise InvalidArgument("--share", f"{text!r} is not {SHARE}")
        queries = int(found["queries"] or found["statements"])
        declared = int(found["sensitivity"] or 0), int(found["support"] or 0)
        shares.append(Share(found["analyst"], int(found["statements"]), queries, *declared))
    return tuple(shares)


def parse_options(text: str) -> dict[str, object]:
    """The options of a mechanism, a JSON object. Raises `InvalidArgument`."""
    options = parse_json(text or "{}", "--options")
    if not isinstance(options, dict):
        raise InvalidArgument("--options", 'must be a JSON object, such as {"play": "sampled"}')
    return options


def parse_json(text: str, source: str) -> object:
    """What JSON says, of a file or an option that an error then names, and the line of NaN or Infinity."""

    def refused(constant: str) -> float:
        line = next(i for i, each in enumerate(text.splitlines(), start=1) if constant in each)
        raise InvalidArgument(source, f"holds {constant}, which is not JSON, in line {line:,}")

    try:
        return json.loads(text, parse_constant=refused)
    except (ValueError, RecursionError) as error:
        raise InvalidArgument(source, f"is not JSON: {error}") from None
