"""What is shown of one round, one session and one grant."""

from __future__ import annotations

from dataclasses import replace

from harness.shown_rounds import PLAN, ROUND

from equipoise.commands.columns import FACTS, next_step
from equipoise.model.rounds import GRANT, Progress, Round, RoundDetail, SessionTerms

SESSION = replace(ROUND, mechanism="online", terms=replace(ROUND.terms, session=SessionTerms(5)))
OF_SESSIONS = {"unit of protection", "analyst budget", "session of", "after its updates"}


def test_a_grant_shows_nothing_that_only_sessions_of_several_analysts_have() -> None:
    of_session, of_grant = (
        {title: said for title, fact in FACTS.items() if (said := fact(shown, None)) is not None}
        for shown in (SESSION, replace(SESSION, mechanism=GRANT))
    )
    assert of_session["session"] == of_grant["grant"] == ROUND.id
    assert of_session.keys() - of_grant.keys() == OF_SESSIONS | {"session"}
    assert of_grant.keys() - of_session.keys() == {"grant"}


def test_what_is_open_names_the_command_that_ends_it() -> None:
    def said(shown: Round) -> str:
        return next_step(RoundDetail(shown, PLAN, Progress("", 0, 0, 0.0, False, 0)))

    assert said(ROUND).endswith(f"equipoise operator round seal {ROUND.id}")
    assert said(SESSION).endswith(f"equipoise operator session close {ROUND.id}")
    assert said(replace(SESSION, mechanism=GRANT)).endswith(f"equipoise operator grant end {ROUND.id}")
