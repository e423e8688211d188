"""What was asked in a session: exact bytes and slots travel, and every other form of them is refused."""

from __future__ import annotations

import numpy as np
import pytest

from equipoise.errors import BudgetExhausted, InvalidArgument
from equipoise.queries.grant_account import GrantAccount
from equipoise.queries.predicates import Among, Interval, Not
from equipoise.queries.schema import Attribute, Schema
from equipoise.queries.statements import CountDistinct, Marginal, Statement, Variance
from equipoise.queries.statistics import CompiledStatistic
from equipoise.queries.workload_compiler import CompiledWorkload
from equipoise.v1 import types_pb2
from equipoise.wire.bulk_compiler import compile_workload_bytes
from equipoise.wire.outline import MAX_SLOT, asked_from_bytes, asked_to_bytes
from equipoise.wire.session_workload import (
    compile_asked,
    compile_offered,
    compile_statement,
    compile_with_work,
    offer_of,
    wanted_of,
)
from equipoise.wire.statements import (
    MAX_STATEMENT_BYTES,
    sent_from_bytes,
    statement_from_bytes,
    statement_to_bytes,
)
from equipoise.wire.workloads import workload_from_bytes, workload_to_bytes

SCHEMA = Schema((Attribute("a", ("x", "y", "z")), Attribute("b", ("0", "1"))))
STATEMENTS = (Not(Among("a", ("x",))), Marginal(("b", "a")))
# A form that our writer does not write, with the category before the attribute: its bytes must be kept.
ODD = b"\x0a\x08\x0a\x06\x12\x01y\x0a\x01a"
PIECES = (*(statement_to_bytes(each) for each in STATEMENTS), ODD)
SLOTS = (0, 127, 300)


def test_what_was_asked_keeps_its_bytes_and_is_a_workload_message() -> None:
    data = asked_to_bytes(PIECES, SLOTS)
    assert asked_from_bytes(data, 3) == (PIECES, SLOTS)
    message = types_pb2.Workload.FromString(data)
    assert (message.version, tuple(message.slots)) == (1, SLOTS)
    assert [each.SerializeToString() for each in message.statements[:2]] == list(PIECES[:2])
    assert statement_from_bytes(ODD) == Among("a", ("y",))


def test_what_was_asked_is_compiled_statement_by_statement() -> None:
    asked = compile_asked(asked_to_bytes(PIECES, SLOTS), SCHEMA)
    assert asked.slots.tolist() == list(SLOTS)
    assert (asked.query_count, [each.query_count for each in asked.statements]) == (8, [1, 6, 1])
    histogram = np.arange(6, dtype=np.int64)
    tables = [each for each in asked.statements if isinstance(each, CompiledWorkload)]
    assert [each.counts(histogram).tolist() for each in tables] == [[14], [0, 2, 4, 1, 3, 5], [5]]


def test_statistics_are_compiled_as_what_they_are() -> None:
    pieces = [statement_to_bytes(each) for each in (STATEMENTS[0], CountDistinct(("a", "b")))]
    asked = compile_asked(asked_to_bytes(pieces, (1, 2)), SCHEMA)
    assert [isinstance(each, CompiledStatistic) for each in asked.statements] == [False, True]
    assert asked.query_count == 2
    with pytest.raises(InvalidArgument) as caught:
        compile_statement(statement_to_bytes(Variance("a")), SCHEMA)
    assert caught.value.field == "statement.attribute"


@pytest.mark.parametrize(
    ("slots", "field"),
    [((5, 5, 6), "slots"), ((6, 5, 7), "slots"), ((1, 2), "slots"), ((1, 2, 3, 4), "slots"), ((), "slots")],
)
def test_slots_are_one_for_each_statement_and_ascend(slots: tuple[int, ...], field: str) -> None:
    with pytest.raises(ValueError, match="ascending"):
        asked_to_bytes(PIECES, slots)
    message = types_pb2.Workload.FromString(asked_to_bytes(PIECES, SLOTS))
    del message.slots[:]
    message.slots.extend(slots)
    with pytest.raises(InvalidArgument) as caught:
        asked_from_bytes(message.SerializeToString())
    assert caught.value.field == field


ASKED = asked_to_bytes(PIECES, SLOTS)


@pytest.mark.parametrize(
    ("data", "field"),
    [
        (b"", "slots"),
        (b"\x08\x02" + ASKED[2:], "workload"),
        (ASKED + b"\x78\x01", "workload"),
        (b"\x08\x01" + ASKED, "workload"),
        (ASKED + ASKED[-6:], "workload"),
        (ASKED[:-1], "workload"),
        (ASKED[:-6] + b"\x18\x00\x18\x01\x18\x02", "slots"),
        (b"\x08\x01\x12\x02\x12\x00\x1a\x02\x80\x00", "workload"),
        (b"\x08\x01\x12\x02\x12\x00\x1a\x09" + b"\xff" * 8 + b"\x7f", "slots"),
    ],
)
def test_any_other_form_is_refused(data: bytes, field: str) -> None:
    with pytest.raises(InvalidArgument) as caught:
        asked_from_bytes(data)
    assert caught.value.field == field


def test_the_largest_slot_travels() -> None:
    assert asked_from_bytes(asked_to_bytes(PIECES[:1], [MAX_SLOT]))[1] == (MAX_SLOT,)


def test_no_more_statements_are_read_than_are_allowed() -> None:
    with pytest.raises(BudgetExhausted, match="2 of your share"):
        compile_asked(ASKED, SCHEMA, 2)


def test_slots_are_refused_where_workloads_are_submitted() -> None:
    with pytest.raises(InvalidArgument, match="belong to sessions") as caught:
        workload_from_bytes(ASKED)
    assert caught.value.field == "slots"
    assert workload_from_bytes(workload_to_bytes(STATEMENTS)) == STATEMENTS


@pytest.mark.parametrize("statement", [*STATEMENTS, CountDistinct(("a", "b"))])
@pytest.mark.parametrize("rho", [0, 10**9])
def test_a_statement_asks_the_same_whatever_questions_it_was_translated_from(
    statement: Statement, rho: int
) -> None:
    """Noise and a grant's account go by the offer, the room in a turn by the work."""
    sent = [statement_to_bytes(statement, rho, each) for each in (b"", bytes(32), b"\xff" * 32)]
    assert [sent_from_bytes(each) for each in sent] == [
        (statement, rho, each) for each in (b"", bytes(32), b"\xff" * 32)
    ]
    assert len(set(sent)) == 3
    assert {offer_of(each) for each in sent} == {(statement_to_bytes(statement), rho)}
    assert {compile_offered(each, SCHEMA)[1] for each in sent} == {(statement_to_bytes(statement), rho)}
    assert len({compile_with_work(each, SCHEMA)[1] for each in sent}) == 1
    if not isinstance(statement, CountDistinct):
        account = GrantAccount(1 << 40)
        assert [account.pay(wanted_of(each, SCHEMA)) for each in sent] == [rho, 0, 0]
    assert compile_asked(asked_to_bytes(sent, SLOTS), SCHEMA).offers == (offer_of(sent[0]),) * 3


@pytest.mark.parametrize("questions", [b"q", bytes(31), bytes(33)])
def test_what_commits_to_questions_is_a_hash(questions: bytes) -> None:
    with pytest.raises(InvalidArgument, match="must have 32 bytes, or none") as caught:
        sent_from_bytes(statement_to_bytes(STATEMENTS[0], 0, questions))
    assert caught.value.field == "statement.questions_commitment"


def test_statements_of_a_round_do_not_commit_to_questions() -> None:
    workload = types_pb2.Workload(version=1)
    workload.statements.add().ParseFromString(statement_to_bytes(STATEMENTS[0], 0, bytes(32)))
    for read in (workload_from_bytes, lambda data: compile_workload_bytes(data, SCHEMA)):
        with pytest.raises(InvalidArgument, match="the header of the submission") as caught:
            read(workload.SerializeToString())
        assert caught.value.field == "statements[0].questions_commitment"


@pytest.mark.parametrize(
    ("data", "field"),
    [
        (statement_to_bytes(Interval("b", 0.0, 1.0)), "statement.attribute"),
        (statement_to_bytes(Among("a", ("w",))), "statement.categories"),
        (statement_to_bytes(Marginal(("a", "c"))), "statement.attributes[1]"),
        (b"\x0a\x02\x0a\x00", "statement.predicate.among.attribute"),
        (b"\x78\x01", "statement"),
        (b"", "statement"),
        (bytes(MAX_STATEMENT_BYTES + 1), "statement"),
    ],
)
def test_a_wrong_statement_names_what_is_wrong(data: bytes, field: str) -> None:
    with pytest.raises(InvalidArgument) as caught:
        compile_statement(data, SCHEMA)
    assert caught.value.field == field
    if len(data) <= MAX_STATEMENT_BYTES:
        with pytest.raises(InvalidArgument) as caught:
            compile_asked(asked_to_bytes([PIECES[0], data], [3, 4]), SCHEMA)
        assert caught.value.field == field.replace("statement", "statements[1]", 1)
