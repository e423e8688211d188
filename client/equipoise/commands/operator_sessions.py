"""What operators type about online sessions."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Annotated

import typer

from equipoise.clients.operator import Operator
from equipoise.commands.analyst import read_text
from equipoise.commands.options import DEFAULT_PROFILE, AsJson, Profile, RequestId, SessionId
from equipoise.commands.printing import print_json, print_plan, print_table
from equipoise.commands.rounds import (
    AnalystDelta,
    Beta,
    DataDelta,
    Dataset,
    ReleaseGrid,
    Unit,
    act,
    parse_json,
    parse_options,
    parse_shares,
)
from equipoise.errors import NotFound
from equipoise.model.accounts import Budget
from equipoise.model.rounds import Ending, RoundDetail, SessionTerms, Terms

session_app = typer.Typer(
    help="Online sessions, in which statements are answered one at a time: open, (analysts ask), close. "
    "`equipoise operator round run` and `release` then give their results once more, as those of a round, with "
    "all that can be verified.",
    no_args_is_help=True,
)

Shares = Annotated[
    list[str],
    typer.Option(
        "--share",
        metavar="ANALYST=STATEMENTS[/QUERIES]",
        help="What one analyst may ask, such as AA=100/240; once for each analyst. Queries count the cells of "
        "marginals; left out, they are as many as the statements.",
    ),
]
DataEpsilon = Annotated[float, typer.Option(help="The most the session may cost the people in the table.")]
Mechanism = Annotated[
    str,
    typer.Option(
        help="online: least errors, but analysts are not protected from one another. online_private: they are. "
        "low_sensitivity: so, and medians, variances and the like can be asked."
    ),
]
AnalystEpsilon = Annotated[
    float | None,
    typer.Option(
        help="The most the session may cost any analyst. [default: none, where analysts are not protected]",
        show_default=False,
    ),
]
Length = Annotated[
    int,
    typer.Option(
        min=0,
        help="How many statements there are in all, or, where analysts are protected, how many turns; 0: as many "
        "as the shares allow together.",
    ),
]
TurnSeconds = Annotated[
    int,
    typer.Option(
        min=0,
        help="How long a turn takes, where analysts are protected: each has one statement a turn, and answers come "
        "to all at once.",
    ),
]
EndingOption = Annotated[
    Ending,
    typer.Option(
        help="What happens to statements after the updates are used up: hypothesis, answers without a bound, or "
        "stop, refusals."
    ),
]
Candidates = Annotated[
    Path | None,
    typer.Option(
        help="For low_sensitivity, which needs it: a JSON file with the list of candidate databases, such as "
        '[{"cells": [0, 7], "counts": [120, 380]}, ...]: universe cells and how many records each holds. Everybody '
        "sees them, so they must not come from the data. --options must then give the sensitivity."
    ),
]
Options = Annotated[
    str,
    typer.Option(
        help='Options of the mechanism, a JSON object: {"updates": 40} for online, {"epochs": 4} for '
        'online_private, {"sensitivity": "1/1000"} for low_sensitivity. docs/session-mechanisms.md lists them.'
    ),
]
Close = Annotated[
    datetime | None,
    typer.Option(
        "--close",
        formats=["%Y-%m-%dT%H:%M:%S%z", "%Y-%m-%dT%H:%M%z"],
        help="When the session closes, such as 2030-01-31T18:00Z: from then on the server seals, runs and releases "
        "it by itself. [default: after its last turn; without turns when it is asked for]",
        show_default=False,
    ),
]


@session_app.command("plan")
def plan(
    dataset: Dataset,
    share: Shares,
    mechanism: Mechanism,
    data_epsilon: DataEpsilon,
    data_delta: DataDelta,
    analyst_epsilon: AnalystEpsilon = None,
    analyst_delta: AnalystDelta = 1e-6,
    length: Length = 0,
    turn_seconds: TurnSeconds = 0,
    ending: EndingOption = Ending.HYPOTHESIS,
    candidates: Candidates = None,
    unit: Unit = "query",
    beta: Beta = 0.05,
    options: Options = "",
    close: Close = None,
    release_grid: ReleaseGrid = 0,
    profile: Profile = DEFAULT_PROFILE,
    as_json: AsJson = False,
) -> None:
    """Show what a session would cost and promise. Nothing is opened, nothing is spent."""
    terms = Terms(
        dataset,
        parse_shares(share),
        Budget(data_epsilon, data_delta),
        _analyst_budget(analyst_epsilon, analyst_delta),
        unit,
        beta,
        mechanism,
        _options(options, candidates),
        close,
        release_grid,
        SessionTerms(length, turn_seconds, ending),
    )
    with Operator.from_profile(profile) as operator:
        found = operator.plan(terms)
    if as_json:
        print_json(found)
    else:
        print_plan(found, terms.mechanism)


@session_app.command("open")
def open_session(
    dataset: Dataset,
    share: Shares,
    mechanism: Mechanism,
    data_epsilon: DataEpsilon,
    data_delta: DataDelta,
    analyst_epsilon: AnalystEpsilon = None,
    analyst_delta: AnalystDelta = 1e-6,
    length: Length = 0,
    turn_seconds: TurnSeconds = 0,
    ending: EndingOption = Ending.HYPOTHESIS,
    candidates: Candidates = None,
    unit: Unit = "query",
    beta: Beta = 0.05,
    options: Options = "",
    close: Close = None,
    release_grid: ReleaseGrid = 0,
    request_id: RequestId = None,
    profile: Profile = DEFAULT_PROFILE,
    as_json: AsJson = False,
) -> None:
    """Open a session: the analysts with a share can ask from now on.

    With turns, the first begins at once, and after the last one the session closes, runs and releases itself.

    Both budgets are charged here, for good, and whether or not anybody asks: the first answer goes out before the
    last statement is known.
    """
    terms = Terms(
        dataset,
        parse_shares(share),
        Budget(data_epsilon, data_delta),
        _analyst_budget(analyst_epsilon, analyst_delta),
        unit,
        beta,
        mechanism,
        _options(options, candidates),
        close,
        release_grid,
        SessionTerms(length, turn_seconds, ending),
    )
    act(profile, as_json, lambda operator: operator.open_session(terms, request_id))


@session_app.command("close")
def close_session(
    session_id: SessionId,
    request_id: RequestId = None,
    profile: Profile = DEFAULT_PROFILE,
    as_json: AsJson = False,
) -> None:
    """Close a session: no more statements are taken. What was asked is its workload from now on."""
    act(profile, as_json, lambda operator: operator.close_session(session_id, request_id))


@session_app.command("list")
def list_sessions(profile: Profile = DEFAULT_PROFILE, as_json: AsJson = False) -> None:
    """List all sessions, newest first."""
    with Operator.from_profile(profile) as operator:
        found = [each for each in operator.rounds() if each.round.terms.session is not None]
    if as_json:
        print_json({"sessions": found})
        return
    print_table(
        (
            "session",
            "dataset",
            "state",
            "mechanism",
            "protects analysts",
            "analysts",
            "statements",
            "promised error",
        ),
        (
            (
                each.round.id,
                each.round.terms.dataset,
                each.round.state,
                each.plan.mechanism,
                _protects(each),
                len(each.round.terms.shares),
                f"{sum(share.statements for share in each.round.terms.shares):,}",
                f"{each.plan.error_bound:.4g}",
            )
            for each in found
        ),
    )


@session_app.command("show")
def show(session_id: SessionId, profile: Profile = DEFAULT_PROFILE, as_json: AsJson = False) -> None:
    """Show one session: terms, shares, plan, and how many statements have their answers or how far its run is."""

    def found(operator: Operator) -> RoundDetail:
        detail = operator.round(session_id)
        if detail.round.terms.session is None:
            raise NotFound("it is a round, not a session")
        return detail

    act(profile, as_json, found)


def _protects(detail: RoundDetail) -> str:
    """Whether analysts are protected from one another, where there is more than one."""
    if len(detail.round.terms.shares) == 1:
        return "there is one"
    return "no" if detail.round.terms.analyst_budget is None else "yes"


def _analyst_budget(epsilon: float | None, delta: float) -> Budget | None:
    return None if epsilon is None else Budget(epsilon, delta)


def _options(text: str, candidates: Path | None) -> dict[str, object]:
    """The options, with the candidates of a file among them. Raises `InvalidArgument` naming the file."""
    options = parse_options(text)
    if candidates is None:
        return options
    return options | {"candidates": parse_json(read_text(candidates), str(candidates))}
