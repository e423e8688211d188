"""Sessions on the table of `rounds_bench`, and what is asked in them."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from dataclasses import replace

from sqlalchemy import select

from equipoise.model.rounds import SessionTerms, Share
from equipoise.queries.statements import CountDistinct, Marginal, Statement
from equipoise.wire.statements import statement_to_bytes
from equipoise_server.sessions.answer_store import StoredAnswer
from equipoise_server.sessions.attachments import Attachment
from equipoise_server.storage.tables.session import asked as asked_table
from harness.rounds_bench import COLOUR, SALT, SIZE, TERMS, Bench
from harness.waiting import PATIENCE, pauses

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
BY_TURNS_AMONG = replace(
    BY_TURNS,
    mechanism="low_sensitivity",
    options={
        "prior": "none",
        "sensitivity": "1/400",
        "candidates": [{"cells": [0, 7], "counts": [3, 1]}, {"cells": [1, 2, 3], "counts": [1, 1, 1]}],
    },
)
BY_TURNS_FROM_PRIOR = replace(BY_TURNS_AMONG, options={"prior": "own", "sensitivity": "1/400"})
COUNTED: dict[str, list[Statement]] = {
    "ann": [CountDistinct(("colour", "size")), CountDistinct(("size",))],
    "bob": [CountDistinct(("colour",))],
}
TOLD: dict[str, list[Statement]] = {"ann": [COLOUR == "red", CountDistinct(("size",))], "bob": COUNTED["bob"]}
ASKED: dict[str, list[Statement]] = {
    "ann": [COLOUR == "red", Marginal(("colour", "size")), SIZE.isin(["s", "m"])],
    "bob": [Marginal(("size",), where=COLOUR == "red"), (COLOUR == "red") | (SIZE == "xl")],
}


def attached(bench: Bench, analyst: str, session_id: str, after: int = 0) -> Attachment:
    """A new stream of the analyst's, which knows what the session is."""
    return bench.sessions.attach(analyst, session_id, after, SALT, accept_unprotected=True)


def ask(stream: Attachment, sequence: int, statement: Statement) -> StoredAnswer:
    """One statement's answer, waited for."""
    return stream.ask(sequence, statement_to_bytes(statement)).result(PATIENCE)


def ask_all(bench: Bench, session_id: str) -> dict[str, list[StoredAnswer]]:
    """All of `ASKED`, one analyst after the other, and the answers by analyst."""
    answers = {}
    for analyst, statements in ASKED.items():
        stream = attached(bench, analyst, session_id)
        asked = [stream.ask(i, statement_to_bytes(each)) for i, each in enumerate(statements, start=1)]
        answers[analyst] = [each.result(PATIENCE) for each in asked]
        stream.detach()
    return answers


def ask_by_turns(bench: Bench, sessions: Mapping[str, Mapping[str, list[Statement]]]) -> None:
    """What is asked in each session, by analyst; the clock goes on for as long as an answer is waited for."""
    waiting = []
    for session_id, asked in sessions.items():
        for analyst, statements in asked.items():
            stream = attached(bench, analyst, session_id)
            waiting += [stream.ask(i, statement_to_bytes(each)) for i, each in enumerate(statements, start=1)]
    pause = pauses()
    while not all(each.done() for each in waiting):
        bench.clock.move(10)
        time.sleep(next(pause))


def release(bench: Bench, session_ids: Iterable[str]) -> None:
    """Closed, run and released, their results and records open."""
    for session_id in session_ids:
        bench.sessions.close(session_id, f"close {session_id}")
        bench.rounds.lifecycle.run(session_id, f"run {session_id}")
    for session_id in session_ids:
        assert bench.wait(session_id).complete
        bench.rounds.lifecycle.release(session_id, f"release {session_id}")
    bench.clock.move(60)
    bench.rounds.schedule.keep()


def answered(bench: Bench) -> list[tuple[str, int, bytes]]:
    """Every answer in the store."""
    with bench.store.read() as connection:
        columns = (asked_table.c.analyst, asked_table.c.sequence, asked_table.c.chunk)
        query = select(*columns).order_by(asked_table.c.slot)
        return [tuple(row) for row in connection.execute(query)]
