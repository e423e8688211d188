"""A round's life: what it waits for is one button, which says what it will do."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice

from starlette.responses import Response

from equipoise.commands.columns import FACTS, SHARES, SHARES_OF_SESSION, plan_facts
from equipoise.commands.round_lists import ROUNDS
from equipoise.console.asked import Asked
from equipoise.console.desk import ROWS, Desk, stretch_of
from equipoise.console.jobs import Job
from equipoise.console.rendering import table_of
from equipoise.errors import InvalidArgument, WrongState
from equipoise.model.rounds import GRANT, RoundDetail, RoundState


@dataclass(frozen=True)
class Step:
    """What an operator can do next with a round.

    Attributes:
        name: what the form sends.
        button: what the button says.
        explanation: what it does, and whether it can be undone.
    """

    name: str
    button: str
    explanation: str


SEAL = Step(
    "seal",
    "Seal: take no more questions, reserve both budgets",
    "The workloads are fixed, and both budgets are reserved at the round's caps. This cannot be undone.",
)
RUN = Step(
    "run",
    "Run: compute the answers",
    "The table is read, and the answers are computed. From here on both budgets count as spent, whatever comes.",
)
RELEASE = Step(
    "release",
    "Release: give all analysts their results",
    "The answers are stored, and all analysts can read their own at one moment. This cannot be undone.",
)
CLOSE = Step(
    "close",
    "Close the session: take no more statements",
    "The statements that were asked become its workload. Run and release then publish its results.",
)
STEPS = {each.name: each for each in (SEAL, RUN, RELEASE, CLOSE)}


def home(desk: Desk, asked: Asked) -> Response:
    """All rounds, newest first, and which of them wait for a step."""
    part = stretch_of(desk.operator.rounds, asked)
    return desk.show(
        "operator/home.html",
        section="Rounds",
        part=part,
        rounds=table_of(ROUNDS, part.items, addresses(desk, part.items)),
        waiting=[(each.round, step) for each in part.items if (step := next_step(each)) is not None],
        asking=len(list(islice(desk.operator.grant_requests(), ROWS))) if part.newest else 0,
    )


def show(desk: Desk, asked: Asked) -> Response:
    """One round: what it waits for, its terms, plan and shares."""
    detail = desk.operator.round(asked.path["round_id"])
    terms = detail.round.terms
    facts = [(title, fact(detail.round, None)) for title, fact in FACTS.items()]
    return desk.show(
        "operator/round.html",
        section="Rounds" if terms.session is None else "Sessions",
        detail=detail,
        kind=_kind(detail),
        step=next_step(detail),
        by_itself=terms.close_time is not None and not detail.round.state.ended,
        facts=[(title, str(value)) for title, value in facts if value is not None],
        plan=[(title, str(value)) for title, value in plan_facts(detail.plan, terms, detail.round.records)],
        shares=table_of(SHARES if terms.session is None else SHARES_OF_SESSION, terms.shares),
    )


def step(desk: Desk, asked: Asked) -> Response:
    """Takes the step that the button says."""
    operator, round_id, request_id = desk.operator, asked.path["round_id"], asked.needed("request_id")
    match asked.text("step"):
        case "seal":
            operator.seal(round_id, request_id)
        case "release":
            operator.release(round_id, request_id)
        case "close":
            operator.close_session(round_id, request_id)
        case "run":

            def work(job: Job) -> None:
                def tell(detail: RoundDetail) -> None:
                    progress = detail.progress
                    job.tell(progress.phase or f"the round is {detail.round.state}", progress.done, progress.total)

                operator.run_to_completion(round_id, tell, request_id)
                job.verdict = "The answers are ready to be released."

            return desk.start(Job("Compute the answers", f"/rounds/{round_id}", "Back to the round"), work)
        case _:
            raise InvalidArgument("step", f"must be one of {', '.join(STEPS)}")
    return desk.go(f"/rounds/{round_id}")


def abort(desk: Desk, asked: Asked) -> Response:
    """Ends a round without answers."""
    if asked.text("sure") != "yes":
        raise WrongState("nothing was aborted: say that you are sure")
    desk.operator.abort(asked.path["round_id"], asked.needed("reason"), asked.needed("request_id"))
    return desk.go(f"/rounds/{asked.path['round_id']}")


def next_step(detail: RoundDetail) -> Step | None:
    """Returns what an operator has to do for a round to go on; None where nothing, or where it goes on by itself.

    A grant waits for nobody: it can be ended at any time.

    Args:
        detail: the round.
    """
    shown, progress = detail.round, detail.progress
    failed = progress.phase.startswith("failed")
    if shown.mechanism == GRANT or (shown.terms.close_time is not None and not failed):
        return None
    match shown.state:
        case RoundState.OPEN:
            return SEAL if shown.terms.session is None else CLOSE
        case RoundState.SEALED:
            return RUN
        case RoundState.RUNNING if progress.complete:
            return RELEASE
        case RoundState.RUNNING if failed:
            return RUN
        case _:
            return None


def _kind(detail: RoundDetail) -> str:
    """What people call it."""
    if detail.round.mechanism == GRANT:
        return "grant"
    return "round" if detail.round.terms.session is None else "session"


def addresses(desk: Desk, details: Sequence[RoundDetail]) -> list[str]:
    """Returns where the pages of rounds are.

    Args:
        desk: the operator's.
        details: the rounds.
    """
    return [f"{desk.base}/rounds/{each.round.id}" for each in details]
