"""Whatever comes over a session's stream: malformed, out of order, out of turn, unread, or left in the middle."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from harness.abuse.place import (
    ANALYST,
    ASKED,
    Place,
    attempt,
    connection,
    outcome,
    refusal,
    session_terms,
    terms,
    upload,
)
from harness.abuse.talk import ASK, RED, TABLE, asked, attach, talk
from harness.rounds_bench import SALT
from harness.server_process import Credentials, Refusal

from equipoise.clients.analyst import Client
from equipoise.clients.operator import Operator
from equipoise.errors import EquipoiseError
from equipoise.model.accounts import Budget, Danger
from equipoise.model.rounds import SessionTerms, Share, Terms
from equipoise.queries.predicates import attribute
from equipoise.queries.statements import Quantile
from equipoise.v1 import analyst_pb2, types_pb2
from equipoise.wire.results import answers_from_chunk
from equipoise.wire.statements import statement_to_bytes
from equipoise.wire.workloads import workload_to_bytes

MAX_UINT64 = 2**64 - 1
UNREAD = 1000
INVALID = ("INVALID_ARGUMENT", "INVALID")
GAP = ("OUT_OF_RANGE", "RANGE")
ATTACH_FIRST = "attach: must be sent once, before any piece of the workload"


def answered(here: Place, who: Credentials, session_id: str) -> int:
    """How many statements have an answer."""
    with here.channel(who) as channel:
        first, *_ = outcome(channel, ASK, [attach(session_id)])
    return analyst_pb2.AskQueriesResponse.FromString(first).attached.answered


@contextmanager
def nothing_happens(here: Place, session_id: str) -> Iterator[None]:
    """No account, no session, and no answer of mal's in this session is another one afterwards."""

    def state() -> object:
        with connection(here.server, here.operator) as way:
            operator = Operator(way)
            opened = [each.round for each in operator.rounds()]
            return list(operator.accounts("shop")), opened, answered(here, here.mal, session_id)

    before = state()
    yield
    assert state() == before


def interval(low: float, high: float) -> bytes:
    message = types_pb2.Statement()
    message.predicate.interval.attribute = "price"
    message.predicate.interval.low, message.predicate.interval.high = low, high
    return message.SerializeToString()


def wrapped(field: int, content: bytes) -> bytes:
    """A message of one field, which may be nested deeper than any library writes."""
    length, number = bytearray(), len(content)
    while number > 127:
        length.append(number & 127 | 128)
        number >>= 7
    return bytes([field << 3 | 2, *length, number]) + content


def nested(depth: int) -> bytes:
    predicate = types_pb2.Statement.FromString(RED).predicate.SerializeToString()
    for _ in range(depth):
        predicate = wrapped(types_pb2.Predicate.NEGATION_FIELD_NUMBER, predicate)
    return wrapped(types_pb2.Statement.PREDICATE_FIELD_NUMBER, predicate)


NO_STATEMENTS = {
    "nothing": b"",
    "garbage": b"\xff",
    "cut off": TABLE[:-1],
    "an unknown field": RED + b"\x98\x06\x01",
    "an unknown field within": types_pb2.Statement(
        predicate=types_pb2.Predicate.FromString(b"\x98\x06\x01")
    ).SerializeToString(),
    "a whole workload": workload_to_bytes(ASKED),
    "NaN": interval(math.nan, 1.0),
    "no edge": interval(0.0, 0.5),
    "of another dataset": statement_to_bytes(attribute("origin") == "JFK"),
    "another category": statement_to_bytes(attribute("colour") == "blue"),
    "an attribute twice": types_pb2.Statement(
        marginal=types_pb2.Marginal(attributes=["colour", "colour"])
    ).SerializeToString(),
    "a statistic": statement_to_bytes(Quantile("price", 0.5, 0.1)),
    "nested deeply": nested(90),
    "nested very deeply": nested(3000),
}
NO_ORDERS: dict[str, Callable[[str], list[bytes]]] = {
    "nothing": lambda _: [],
    "an empty message": lambda _: [b""],
    "asked before attaching": lambda _: [asked(1, RED)],
    "attached twice": lambda at: [attach(at), attach(at)],
    "attached elsewhere by the same stream": lambda at: [attach(at), attach("0" * 32)],
    "an empty message later": lambda at: [attach(at), b""],
}
NO_ATTACHMENTS: dict[str, tuple[dict[str, Any], tuple[str, str]]] = {
    "no salt": ({"salt": b""}, INVALID),
    "a short salt": ({"salt": SALT[:31]}, INVALID),
    "a long salt": ({"salt": SALT + b"a"}, INVALID),
    "after an answer that is not there": ({"after": 10_000}, GAP),
    "after the largest number": ({"after": MAX_UINT64}, GAP),
    "not accepted": ({"accepted": False}, ("FAILED_PRECONDITION", "STATE")),
}


def test_malformed_statements_are_neither_answered_nor_counted(here: Place) -> None:
    with here.channel(here.mal) as channel, nothing_happens(here, here.session):
        following = answered(here, here.mal, here.session) + 1
        for name, statement in NO_STATEMENTS.items():
            found = attempt(channel, ASK, [attach(here.session), asked(following, statement)])
            assert isinstance(found, Refusal), name
            assert (found.status, found.reason, found.message[:9]) == (*INVALID, "statement"), (name, found)
            assert here.session not in found.message


def test_messages_out_of_order_end_the_stream(here: Place) -> None:
    with here.channel(here.mal) as channel, nothing_happens(here, here.session):
        for name, order in NO_ORDERS.items():
            found = refusal(channel, ASK, order(here.session))
            assert found == Refusal(*INVALID, ATTACH_FIRST), name


def test_malformed_attachments_are_refused(here: Place) -> None:
    with here.channel(here.mal) as channel, nothing_happens(here, here.session):
        for name, (how, expected) in NO_ATTACHMENTS.items():
            found = refusal(channel, ASK, [attach(here.session, **how)])
            assert (found.status, found.reason) == expected, name


def test_sequence_numbers_have_no_gaps(here: Place) -> None:
    with here.channel(here.mal) as channel, nothing_happens(here, here.session):
        following = answered(here, here.mal, here.session) + 1
        for number, expected in ((0, INVALID), (following + 1, GAP), (MAX_UINT64, GAP)):
            found = refusal(channel, ASK, [attach(here.session), asked(number, RED)])
            assert (found.status, found.reason) == expected, number


def test_a_sequence_number_has_one_statement_and_one_answer(here: Place) -> None:
    with here.channel(here.mal) as channel:
        number = answered(here, here.mal, here.session) + 1
        first = outcome(channel, ASK, [attach(here.session, number - 1), asked(number, RED)])[-1]
        with nothing_happens(here, here.session):
            again = outcome(channel, ASK, [attach(here.session, number), asked(number, RED)])[-1]
            assert again == first
            assert outcome(channel, ASK, [attach(here.session, number - 1)])[-1] == first
            found = refusal(channel, ASK, [attach(here.session, number), asked(number, TABLE)])
            assert (found.status, found.reason) == ("ALREADY_EXISTS", "EXISTS")


def test_answers_come_before_the_refusal_of_the_next_statement(here: Place) -> None:
    with talk(here, here.mal) as stream:
        number = answered(here, here.mal, here.session)
        stream.say(attach(here.session, number), asked(number + 1, RED), asked(number + 2, TABLE))
        stream.say(asked(number + 3, b"\xff"), asked(number + 4, RED))
        assert stream.hear().attached.answered == number
        assert [stream.hear().answered.sequence for _ in range(2)] == [number + 1, number + 2]
        assert stream.end().status == "INVALID_ARGUMENT"
    assert answered(here, here.mal, here.session) == number + 2


def test_the_newest_stream_takes_over(here: Place) -> None:
    with talk(here, here.mal) as first, talk(here, here.mal) as second:
        first.say(attach(here.session))
        number = first.hear().attached.answered
        second.say(attach(here.session, number))
        assert second.hear().attached.answered == number
        end = first.end()
        assert (end.status, end.reason) == ("FAILED_PRECONDITION", "STATE")
        second.say(asked(number + 1, RED))
        assert second.hear().answered.sequence == number + 1


def test_a_session_takes_no_workload_and_a_round_no_statement(here: Place) -> None:
    workload = workload_to_bytes(ASKED)
    with here.channel(here.mal) as channel, nothing_happens(here, here.session):
        found = refusal(channel, f"{ANALYST}/SubmitWorkload", upload(here.session, workload, "a workload"))
        assert found.status in ("FAILED_PRECONDITION", "INVALID_ARGUMENT"), found
        # What a workload would be answered with may be asked, and asks nothing.
        assert outcome(channel, f"{ANALYST}/DryRunWorkload", upload(here.session, workload, "a workload"))
        found = refusal(channel, ASK, [attach(here.shared), asked(1, RED)])
        assert found == Refusal("NOT_FOUND", "NOT_FOUND", "there is no such round")


@pytest.mark.full
def test_unread_answers_hold_up_nobody_and_are_all_there(here: Place) -> None:
    with talk(here, here.ann) as unread, here.channel(here.mal) as channel:
        begin = answered(here, here.ann, here.session)
        unread.say(attach(here.session, begin))
        unread.say(*(asked(begin + number, (RED, TABLE)[number % 2]) for number in range(1, UNREAD + 1)))
        number = answered(here, here.mal, here.session) + 1
        assert len(outcome(channel, ASK, [attach(here.session, number - 1), asked(number, RED)])) == 2
        assert unread.hear().attached.answered == begin
        heard = [unread.hear().answered for _ in range(UNREAD)]
    assert [each.sequence for each in heard] == list(range(begin + 1, begin + UNREAD + 1))
    assert all(answers_from_chunk(each.chunk).sequence == each.sequence for each in heard)
    slots = [each.slot for each in heard]
    assert slots == sorted(set(slots))


def test_streams_that_are_left_in_the_middle_leave_what_was_answered(here: Place) -> None:
    for number in range(20):
        with talk(here, here.mal) as left:
            before = answered(here, here.mal, here.session) if number % 3 == 0 else 0
            left.say(attach(here.session, before))
            if number % 3 == 0:
                heard = left.hear().attached.answered
                left.say(asked(heard + 1, RED), asked(heard + 2, TABLE))
    with connection(here.server, here.mal) as way:
        count = answered(here, here.mal, here.session)
        (last,) = Client(way).ask(here.session, ASKED[:1], after=count, accept_unprotected=True)
    assert last.sequence == count + 1


def test_what_is_beyond_a_share_is_refused(here: Place) -> None:
    with connection(here.server, here.operator) as way, here.channel(here.mal) as channel:
        share = Share("mal", 2, 7)
        session_id = Operator(way).open_session(session_terms("mal", shares=(share,))).round.id
        outcome(channel, ASK, [attach(session_id), asked(1, TABLE)])
        with nothing_happens(here, session_id):
            found = refusal(channel, ASK, [attach(session_id), asked(2, TABLE)])
            assert (found.status, found.reason) == ("RESOURCE_EXHAUSTED", "BUDGET")
        outcome(channel, ASK, [attach(session_id), asked(2, RED)])
        with nothing_happens(here, session_id):
            found = refusal(channel, ASK, [attach(session_id), asked(3, RED)])
            assert (found.status, found.reason) == ("RESOURCE_EXHAUSTED", "BUDGET")


def test_what_is_beyond_the_length_is_refused(here: Place) -> None:
    with connection(here.server, here.operator) as way, here.channel(here.mal) as channel:
        session_id = Operator(way).open_session(session_terms("mal", session=SessionTerms(1))).round.id
        outcome(channel, ASK, [attach(session_id), asked(1, RED)])
        with nothing_happens(here, session_id):
            found = refusal(channel, ASK, [attach(session_id), asked(2, RED)])
            assert (found.status, found.reason) == ("FAILED_PRECONDITION", "STATE")


SLOTTED = SessionTerms(100, 3600)
NO_SESSIONS: dict[str, tuple[Terms, str]] = {
    "a round's mechanism": (session_terms("mal", mechanism="pooled"), "INVALID"),
    "auto": (session_terms("mal", mechanism="auto"), "INVALID"),
    "an unknown mechanism": (session_terms("mal", mechanism="none"), "INVALID"),
    "an endless session": (session_terms("mal", session=SessionTerms(MAX_UINT64)), "INVALID"),
    "turns where there are none": (session_terms("mal", session=SLOTTED), "INVALID"),
    "no turns where there must be": (
        session_terms("mal", mechanism="online_private", analyst_budget=Budget(4.0, 1e-5)),
        "INVALID",
    ),
    "turns of years": (
        session_terms(
            "mal",
            mechanism="online_private",
            analyst_budget=Budget(4.0, 1e-5),
            session=SessionTerms(100, 2**32 - 1),
        ),
        "INVALID",
    ),
    "no protection where it is promised": (
        session_terms("mal", mechanism="online_private", session=SLOTTED),
        "INVALID",
    ),
    "protection where there is none": (session_terms("ann", "mal", analyst_budget=Budget(4.0, 1e-5)), "INVALID"),
    "a length among the options": (session_terms("mal", options={"length": 3}), "INVALID"),
    "an unknown option": (session_terms("mal", options={"none": 3}), "INVALID"),
    "no budget": (session_terms("mal", data_budget=Budget(0.0, 1e-5)), "INVALID"),
    "more than is left": (
        session_terms(
            "mal",
            data_budget=Budget(49.9, 1e-3),
            options={"prior": "none"},
            accepted=tuple(Danger),
        ),
        "BUDGET",
    ),
    "nobody": (session_terms(), "INVALID"),
    "an empty list of candidates": (
        session_terms(
            "mal",
            mechanism="low_sensitivity",
            analyst_budget=Budget(4.0, 1e-5),
            session=SLOTTED,
            options={"candidates": [], "sensitivity": "1/100"},
        ),
        "INVALID",
    ),
}


@pytest.mark.thin(3)
@pytest.mark.parametrize("name", NO_SESSIONS)
def test_malformed_sessions_are_not_opened(here: Place, name: str) -> None:
    asked_for, reason = NO_SESSIONS[name]
    with connection(here.server, here.operator) as way, nothing_happens(here, here.session):
        with pytest.raises(EquipoiseError) as refused:
            Operator(way).open_session(asked_for)
        assert refused.value.reason == reason, refused.value


def test_a_round_cannot_be_opened_as_a_session_nor_closed_as_one(here: Place) -> None:
    with connection(here.server, here.operator) as way, nothing_happens(here, here.session):
        operator = Operator(way)
        with pytest.raises(EquipoiseError, match="mechanism: online answers sessions"):
            operator.open(terms("mal", mechanism="online"))
        for round_id in (here.shared, "0" * 32, ""):
            with pytest.raises(EquipoiseError, match="there is no such round"):
                operator.close_session(round_id)
