"""What operators type about online sessions."""

from __future__ import annotations

import typer

from equipoise.clients.operator import Operator
from equipoise.commands.options import DEFAULT_PROFILE, AsJson, Profile, RequestId, SessionId, with_fields
from equipoise.commands.printing import print_list
from equipoise.commands.progress import ShownProgress
from equipoise.commands.round_lists import SESSIONS
from equipoise.commands.rounds import act, show_plan
from equipoise.commands.terms_options import SessionOptions
from equipoise.errors import NotFound
from equipoise.model.rounds import RoundDetail

session_app = typer.Typer(
    help="Online sessions, in which statements are answered one at a time: open, (analysts ask), close. "
    "`equipoise operator round run` and `release` then give their results once more, as those of a round, with "
    "all that can be verified.",
    no_args_is_help=True,
)


@session_app.command("plan")
@with_fields
def plan(options: SessionOptions, profile: Profile = DEFAULT_PROFILE, as_json: AsJson = False) -> None:
    """Show what a session would cost, charge its accounts and promise. Nothing is opened, nothing is spent.

    Exits with 1 where an account does not admit the session now, and says what still fits; and where there is a
    danger that --accept does not name.
    """
    show_plan(options.terms(), profile, as_json)


@session_app.command("open")
@with_fields
def open_session(
    options: SessionOptions,
    request_id: RequestId = None,
    profile: Profile = DEFAULT_PROFILE,
    as_json: AsJson = False,
) -> None:
    """Open a session: the analysts with a share can ask from now on.

    With turns, the first begins at once, and after the last one the session closes, runs and releases itself.

    Both budgets are charged here, for good, and whether or not anybody asks: the first answer goes out before the
    last statement is known.
    """
    terms = options.terms()

    def opened(operator: Operator) -> RoundDetail:
        with ShownProgress("planning") as progress:
            return operator.open_session(terms, request_id, progress.follow)

    act(profile, as_json, opened)


@session_app.command("close")
def close_session(
    session_id: SessionId,
    request_id: RequestId = None,
    profile: Profile = DEFAULT_PROFILE,
    as_json: AsJson = False,
) -> None:
    """Close a session: no more statements are accepted. Those that were asked become its workload."""
    act(profile, as_json, lambda operator: operator.close_session(session_id, request_id))


@session_app.command("list")
def list_sessions(profile: Profile = DEFAULT_PROFILE, as_json: AsJson = False) -> None:
    """List all sessions, newest first."""
    with Operator.from_profile(profile) as operator:
        sessions = [each for each in operator.rounds() if each.round.terms.session is not None]
    print_list("sessions", sessions, SESSIONS, as_json)


@session_app.command("show")
def show(session_id: SessionId, profile: Profile = DEFAULT_PROFILE, as_json: AsJson = False) -> None:
    """Show one session: terms, shares, plan, and how many statements have their answers or how far its run is."""

    def session_detail(operator: Operator) -> RoundDetail:
        detail = operator.round(session_id)
        if detail.round.terms.session is None:
            raise NotFound("it is a round, not a session")
        return detail

    act(profile, as_json, session_detail)
