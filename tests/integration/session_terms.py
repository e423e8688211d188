"""Sessions on the table of `rounds_bench`, and what is asked in them."""

from __future__ import annotations

from dataclasses import replace

from integration.rounds_bench import COLOUR, SALT, SIZE, TERMS, Bench

from equipoise.queries import Marginal, Statement
from equipoise.wire import statement_to_bytes
from equipoise_server.mechanisms.interface import Share
from equipoise_server.rounds.records import SessionTerms
from equipoise_server.sessions.attachment import Attachment
from equipoise_server.sessions.records import AnsweredRecord

PATIENCE = 60.0
ONLINE = replace(
    TERMS,
    mechanism="online",
    analyst_budget=None,
    shares=(Share("ann", 5, 20), Share("bob", 3, 12)),
    options={},
    session=SessionTerms(),
)
BY_TURNS = replace(
    ONLINE,
    mechanism="online_private",
    analyst_budget=TERMS.analyst_budget,
    session=SessionTerms(length=6, turn_seconds=10),
)
ASKED: dict[str, list[Statement]] = {
    "ann": [COLOUR == "red", Marginal(("colour", "size")), SIZE.isin(["s", "m"])],
    "bob": [Marginal(("size",)), (COLOUR == "red") | (SIZE == "xl")],
}


def attached(bench: Bench, analyst: str, session_id: str, after: int = 0) -> Attachment:
    """A new stream of the analyst's, which knows what the session is."""
    return bench.sessions.attach(analyst, session_id, after, SALT, accept_unprotected=True)


def ask(stream: Attachment, sequence: int, statement: Statement) -> AnsweredRecord:
    """One statement's answer, waited for."""
    return stream.ask(sequence, statement_to_bytes(statement)).result(PATIENCE)


def ask_all(bench: Bench, session_id: str) -> dict[str, list[AnsweredRecord]]:
    """All of `ASKED`, one analyst after the other, and the answers by analyst."""
    answers = {}
    for analyst, statements in ASKED.items():
        stream = attached(bench, analyst, session_id)
        asked = [stream.ask(i, statement_to_bytes(each)) for i, each in enumerate(statements, start=1)]
        answers[analyst] = [each.result(PATIENCE) for each in asked]
        stream.detach()
    return answers
