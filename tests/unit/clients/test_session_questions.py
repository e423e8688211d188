"""Questions that are asked in a session: each statement commits to them, and they are never sent."""

from __future__ import annotations

import pytest
from harness.fake_server import connected
from harness.session_server import SESSION, Store, handlers
from harness.small_custodian import SCHEMA

from equipoise.clients.analyst import Client
from equipoise.clients.statement_answer import StatementAnswer
from equipoise.errors import AlreadyExists
from equipoise.queries.predicates import attribute
from equipoise.queries.statements import Statement
from equipoise.questions.aggregates import count
from equipoise.questions.builder import Table
from equipoise.questions.questions import Questions
from equipoise.records.record import questions_commitment
from equipoise.wire.statements import sent_from_bytes, statement_to_bytes

SHOP = Table(SCHEMA, "shop")
SMALL, PAIRS = SHOP.where(attribute("size") == "s"), SHOP.group_by("colour", "size")
ALL = Questions.of(SMALL.agg(n=count()), PAIRS.agg(n=count()))
SAME = Questions.of(SMALL.agg(people=count()), PAIRS.agg(people=count()))


def asked_in(store: Store, asked: Questions | tuple[Statement, ...], breaks: int = 10**9) -> list[StatementAnswer]:
    """The answers to questions, after all that were asked before."""
    with connected(handlers(store.handler(breaks))) as connection:
        return list(Client(connection).ask(SESSION, asked, after=None))


@pytest.mark.parametrize("breaks", [10**9, 2])
def test_each_statement_commits_to_the_questions_under_the_salt_in_force(breaks: int) -> None:
    """Another client's salt is in force, or a stream breaks: the commitments are under the one of the chain."""
    store = Store()
    asked_in(store, ALL.statements[:1])
    answers = asked_in(store, ALL, breaks=breaks)
    assert [each.statement for each in answers] == list(ALL.statements)
    own = questions_commitment(store.salt, ALL.as_comments.encode())
    sent = [data for _, data in store.asked]
    assert sent[0] == statement_to_bytes(ALL.statements[0])
    assert [sent_from_bytes(each) for each in sent[1:]] == [(each, 0, own) for each in ALL.statements]
    assert not any(b"SELECT" in each for each in sent)


def test_the_same_questions_again_are_the_same_bytes_and_other_questions_are_not() -> None:
    """A program that starts again gets its answers; one whose questions were understood otherwise is told."""
    store = Store()
    first = asked_in(store, ALL)
    with connected(handlers(store.handler())) as connection:
        again = list(Client(connection).ask(SESSION, ALL, after=0))
        assert [each.receipt for each in again] == [each.receipt for each in first]
        assert SAME.statements == ALL.statements
        with pytest.raises(AlreadyExists, match="asked before"):
            list(Client(connection).ask(SESSION, SAME, after=0))
    assert len(store.asked) == len(ALL.statements)
