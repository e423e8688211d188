"""All rounds, and the dossier of one: its terms and plan, its charges, and what the log has of it."""

from __future__ import annotations

from starlette.responses import Response

from equipoise.auditing.auditor_log import offered_nonce
from equipoise.auditing.download import read_log
from equipoise.auditing.steps import Step, open_steps
from equipoise.commands.columns import FACTS, SHARES, SHARES_OF_SESSION, plan_facts
from equipoise.commands.dataset_columns import JOURNAL
from equipoise.commands.printing import Columns
from equipoise.commands.round_lists import ROUNDS
from equipoise.console.asked import Asked
from equipoise.console.desk import Desk, stretch_of
from equipoise.console.rendering import table_of
from equipoise.errors import NotFound, VerificationFailed
from equipoise.model.rounds import RoundDetail, RoundState

STEPS: Columns[Step] = {
    "entry": lambda each: each.index,
    "what": lambda each: each.kind.value.replace("-", " "),
    "items": lambda each: len(each.record.items),
    "root": lambda each: each.root.hex(),
}


def home(desk: Desk, asked: Asked) -> Response:
    """All rounds, newest first."""
    part = stretch_of(desk.auditor.rounds, asked)
    return desk.show(
        "auditor/home.html",
        section="Rounds",
        part=part,
        rounds=table_of(ROUNDS, part.items, [f"{desk.base}/rounds/{each.round.id}" for each in part.items]),
    )


def dossier(desk: Desk, asked: Asked) -> Response:
    """All that is on record of one round. The log is read whole: each record is opened, and must be its leaf's."""
    round_id = asked.path["round_id"]
    detail = _find(desk, round_id)
    terms = detail.round.terms
    facts = [(title, fact(detail.round, None)) for title, fact in FACTS.items()]
    problem = ""
    steps: tuple[Step, ...] = ()
    try:
        _, leaves, records = read_log(desk.auditor)
        steps = tuple(each for each in open_steps(records, leaves) if _is_about(each, round_id))
    except VerificationFailed as error:
        problem = error.message
    return desk.show(
        "auditor/dossier.html",
        section="Rounds",
        detail=detail,
        can_add=detail.round.state is RoundState.OPEN,
        facts=[
            *((title, str(value)) for title, value in facts if value is not None),
            ("commitment to the seed", detail.round.seed_commitment.hex()),
        ],
        plan=[(title, str(value)) for title, value in plan_facts(detail.plan, terms, detail.round.records)],
        shares=table_of(SHARES if terms.session is None else SHARES_OF_SESSION, terms.shares),
        charges=table_of(JOURNAL, [each for each in desk.auditor.journal() if each.round_id == round_id]),
        steps=table_of(STEPS, steps),
        problem=problem,
    )


def add_nonce(desk: Desk, asked: Asked) -> Response:
    """Adds the auditor's randomness to an open round; the profile keeps it, and the next audit looks for it."""
    round_id = asked.path["round_id"]
    _find(desk, round_id)
    with offered_nonce(desk.profile, round_id) as drawn:
        desk.auditor.set_nonce(round_id, drawn, asked.needed("request_id"))
    return desk.go(f"/rounds/{round_id}")


def _find(desk: Desk, round_id: str) -> RoundDetail:
    found = next((each for each in desk.auditor.rounds() if each.round.id == round_id), None)
    if found is None:
        raise NotFound("there is no such round")
    return found


def _is_about(step: Step, round_id: str) -> bool:
    return any(getattr(item, "round_id", None) == round_id for item in step.record.items)
