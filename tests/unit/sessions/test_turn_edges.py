"""Turns to the instant: who comes at a turn's end is of the next one, and answers are never due at once."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import pytest

from equipoise_server.sessions.turns import Immediate, TurnBased

START = datetime(2026, 1, 1, tzinfo=UTC)
TURN, MOMENT = timedelta(seconds=10), timedelta(microseconds=1)
TURNS = TurnBased(START, TURN, turns=4, shares=2)


@dataclass(frozen=True)
class Waiting:
    """A statement of one share, and when it arrived."""

    place: int
    arrived: datetime


def test_a_statement_that_arrives_as_a_turn_ends_is_of_the_next_turn() -> None:
    in_time, late = Waiting(0, START + TURN - MOMENT), Waiting(1, START + TURN)
    assert TURNS.take([late, in_time], 0, [], START + TURN) == [(0, in_time)]
    assert TURNS.take([late], 1, [], START + 2 * TURN - MOMENT) == []
    assert TURNS.take([late], 1, [], START + 2 * TURN) == [(3, late)]


def test_nothing_is_taken_while_answers_of_an_earlier_turn_are_not_due() -> None:
    waits = [Waiting(0, START + TURN)]
    assert TURNS.take(waits, 2, ["an answer"], START + 2 * TURN) == []
    assert TURNS.take(waits, 2, [], START + 2 * TURN) == [(2, waits[0])]


def test_a_turn_is_answered_once_and_with_one_statement_of_each_analyst() -> None:
    waits = [Waiting(1, START), Waiting(0, START), Waiting(1, START + MOMENT)]
    assert TURNS.take(waits, 0, [], START + TURN) == [(0, waits[1]), (1, waits[0])]
    assert TURNS.take(waits[2:], 2, [], START + 2 * TURN - MOMENT) == []


def test_after_the_last_turn_no_slots_are_made() -> None:
    late = START + 9 * TURN
    assert TURNS.passed(late) == 8
    assert TURNS.take([Waiting(0, START)], 6, [], late) == [(6, Waiting(0, START))]
    assert TURNS.take([Waiting(0, START)], 7, [], late) == []


@pytest.mark.parametrize(
    ("stored", "due"), [(TURN - MOMENT, TURN), (TURN, 2 * TURN), (TURN + MOMENT, 2 * TURN)], ids=str
)
def test_answers_are_due_at_the_first_end_of_a_turn_after_they_were_stored(
    stored: timedelta, due: timedelta
) -> None:
    assert TURNS.due(START + stored) == START + due


def test_a_session_without_turns_has_room_for_its_length_and_no_more() -> None:
    schedule = Immediate(5)
    assert not schedule.full(3, 1)
    assert schedule.full(3, 2)
