"""What operators type about rounds."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

from equipoise.clients.operator import Operator
from equipoise.commands.calendar import schedule, schedules, unschedule
from equipoise.commands.columns import SHARES, SHARES_OF_SESSION, next_step, print_plan, print_round
from equipoise.commands.dangers import warnings
from equipoise.commands.options import DEFAULT_PROFILE, AsJson, Profile, RequestId, RoundId, with_fields
from equipoise.commands.planners import explained, print_candidates
from equipoise.commands.printing import print_facts, print_json, print_line, print_list, print_rows, print_table
from equipoise.commands.progress import RunProgress, ShownProgress
from equipoise.commands.round_lists import ROUNDS
from equipoise.commands.terms_options import RoundOptions
from equipoise.model.dangers import dangers_of_round, not_accepted
from equipoise.model.rounds import RoundDetail, Terms

round_app = typer.Typer(
    help="Rounds, from opening to release: open, (analysts submit), seal, run, release.", no_args_is_help=True
)


@round_app.command("plan")
@with_fields
def plan(options: RoundOptions, profile: Profile = DEFAULT_PROFILE, as_json: AsJson = False) -> None:
    """Show what a round would do, cost, charge its accounts and promise. Nothing is opened, nothing is spent.

    Where auto chooses, also shows what every mechanism would expect, promise and cost, and why the chosen one won.
    A plan depends on public things only: the number of records, the schema, shares and budgets. Exits with 1 where
    an account does not admit the round now, and says which limit it exceeds and what still fits; and where there is
    a danger that --accept does not name.
    """
    show_plan(options.terms(), profile, as_json)


@round_app.command("open")
@with_fields
def open_round(
    options: RoundOptions,
    request_id: RequestId = None,
    profile: Profile = DEFAULT_PROFILE,
    as_json: AsJson = False,
) -> None:
    """Open a round: the analysts with a share can submit from now on. Its seed is drawn and committed here."""
    terms = options.terms()

    def opened(operator: Operator) -> RoundDetail:
        with ShownProgress("planning") as progress:
            return operator.open(terms, request_id, progress.follow)

    act(profile, as_json, opened)


@round_app.command("list")
def list_rounds(profile: Profile = DEFAULT_PROFILE, as_json: AsJson = False) -> None:
    """List all rounds, newest first."""
    with Operator.from_profile(profile) as operator:
        print_list("rounds", list(operator.rounds()), ROUNDS, as_json)


@round_app.command("show")
def show(round_id: RoundId, profile: Profile = DEFAULT_PROFILE, as_json: AsJson = False) -> None:
    """Show one round: terms, shares, plan, progress."""
    act(profile, as_json, lambda operator: operator.round(round_id))


@round_app.command("seal")
def seal(
    round_id: RoundId, request_id: RequestId = None, profile: Profile = DEFAULT_PROFILE, as_json: AsJson = False
) -> None:
    """Seal a round: fix the workloads and reserve both budgets. Later workloads are refused.

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
    """Compute the answers in a worker process. A run that was interrupted can be started again."""

    def start(operator: Operator) -> RoundDetail:
        if not follow:
            return operator.run(round_id, request_id)
        with RunProgress() as progress:
            return operator.run_to_completion(round_id, progress, request_id)

    act(profile, as_json, start)


@round_app.command("watch")
def watch(round_id: RoundId, profile: Profile = DEFAULT_PROFILE, as_json: AsJson = False) -> None:
    """Follow a round until it has ended, and show what it waits for. With --json one object for every change."""
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
    """Release a round: store the answers, spend both budgets, and open all analysts' results at one moment."""
    act(profile, as_json, lambda operator: operator.release(round_id, request_id))


@round_app.command("abort")
def abort(
    round_id: RoundId,
    reason: Annotated[
        str, typer.Option(help="The reason, shown to every analyst of the round: write public facts only.")
    ],
    request_id: RequestId = None,
    profile: Profile = DEFAULT_PROFILE,
    as_json: AsJson = False,
) -> None:
    """Abort a round: end it without answers. If it has run, its budgets count as spent."""
    act(profile, as_json, lambda operator: operator.abort(round_id, reason, request_id))


round_app.command("schedule")(schedule)
round_app.command("schedules")(schedules)
round_app.command("unschedule")(unschedule)


def show_plan(terms: Terms, profile: Path, as_json: bool) -> None:
    """Show what a round or session with these terms would cost and promise, and whether it could be opened now."""
    with Operator.from_profile(profile) as operator, ShownProgress("planning") as progress:
        planned = operator.plan(terms, progress.follow)
    found = dangers_of_round(
        terms.data_budget,
        terms.analyst_budget,
        terms.unit,
        terms.shares,
        planned.plan,
        planned.records,
        planned.persons.records,
    )
    refusal = planned.plan.refusal
    if as_json:
        print_json(planned)
    else:
        print_plan(planned.plan, terms, planned.records)
        print_facts(
            [
                ("a person", planned.persons.in_words()),
                *warnings(found, terms.accepted),
                ("admitted now", f"no: {refusal}" if refusal else "yes, by every account"),
            ]
        )
        if planned.candidates:
            queries = sum(share.queries for share in terms.shares)
            print_candidates(planned.candidates, planned.plan.mechanism, queries)
            print_facts([*explained(planned.candidates), ("because", planned.because)])
    if refusal or not_accepted(found, terms.accepted):
        raise typer.Exit(1)


def act(profile: Profile, as_json: bool, step: Callable[[Operator], RoundDetail]) -> None:
    """Take a step of a round or a session, and print what the round then is.

    Args:
        profile: the operator's.
        as_json: whether one JSON object is printed.
        step: makes the call.
    """
    with Operator.from_profile(profile) as operator:
        detail = step(operator)
    if as_json:
        print_json(detail)
    else:
        _print_detail(detail)


def _print_detail(detail: RoundDetail) -> None:
    print_round(detail.round)
    print_plan(detail.plan, detail.round.terms, detail.round.records)
    if detail.progress.phase:
        done = detail.progress
        print_table(("phase", "done", "of"), [(done.phase, done.done, done.total)])
    if step := next_step(detail):
        print_line(f"  {step}")
    print_rows(SHARES if detail.round.terms.session is None else SHARES_OF_SESSION, detail.round.terms.shares)
