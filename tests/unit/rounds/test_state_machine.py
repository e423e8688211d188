"""The life of a round as a table: every state and action, and what each does to the charges."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from equipoise.errors import WrongState
from equipoise.model.rounds import RoundState
from equipoise_server.clock import next_grid_point
from equipoise_server.rounds.state_machine import (
    ROUND,
    SESSION,
    Action,
    Settlement,
    due,
    shown_to_analysts,
    streams_open,
)

NOW = datetime(2024, 1, 1, 12, 0, 30, tzinfo=UTC)
LATER = NOW + timedelta(seconds=30)

LEGAL = {
    (RoundState.OPEN, Action.SEAL): (RoundState.SEALED, Settlement.RESERVE),
    (RoundState.OPEN, Action.ABORT): (RoundState.ABORTED, Settlement.NONE),
    (RoundState.SEALED, Action.RUN): (RoundState.RUNNING, Settlement.START),
    (RoundState.SEALED, Action.ABORT): (RoundState.ABORTED, Settlement.RELEASE),
    (RoundState.RUNNING, Action.RUN): (RoundState.RUNNING, Settlement.NONE),
    (RoundState.RUNNING, Action.RELEASE): (RoundState.RELEASED, Settlement.SPEND),
    (RoundState.RUNNING, Action.ABORT): (RoundState.ABORTED, Settlement.SPEND),
}


@pytest.mark.parametrize("state", RoundState)
@pytest.mark.parametrize("action", Action)
def test_every_pair_is_either_legal_or_refused(state: RoundState, action: Action) -> None:
    if (state, action) in LEGAL:
        assert ROUND.after(state, action) == LEGAL[state, action]
    else:
        with pytest.raises(WrongState, match=f"the round is {state.value}, so it cannot be {action.value}"):
            ROUND.after(state, action)


def test_sessions_take_the_same_steps_and_are_charged_at_their_opening_for_good() -> None:
    assert SESSION.steps.keys() == LEGAL.keys()
    assert {pair: state for pair, (state, _) in SESSION.steps.items()} == {
        pair: state for pair, (state, _) in LEGAL.items()
    }
    assert SESSION.opening == (Settlement.RESERVE, Settlement.START)
    ends = {pair: what for pair, (state, what) in SESSION.steps.items() if state.ended}
    assert set(ends.values()) == {Settlement.SPEND}
    assert {what for pair, (_, what) in SESSION.steps.items() if pair not in ends} == {Settlement.NONE}
    with pytest.raises(WrongState, match="the session is open, so it cannot be run"):
        SESSION.after(RoundState.OPEN, Action.RUN)


def test_charges_are_only_given_back_where_no_worker_was_ever_started() -> None:
    giving_back = [pair for pair, (_, what) in LEGAL.items() if what is Settlement.RELEASE]
    assert giving_back == [(RoundState.SEALED, Action.ABORT)]


def test_nothing_follows_an_end() -> None:
    assert {state for state, _ in LEGAL if state.ended} == set()
    assert [state for state in RoundState if state.ended] == [RoundState.RELEASED, RoundState.ABORTED]


@pytest.mark.parametrize(
    ("state", "close_time", "release_time", "shown"),
    [
        (RoundState.OPEN, None, None, RoundState.OPEN),
        (RoundState.OPEN, LATER, None, RoundState.OPEN),
        (RoundState.OPEN, NOW, None, RoundState.SEALED),
        (RoundState.SEALED, LATER, None, RoundState.SEALED),
        (RoundState.RUNNING, None, None, RoundState.SEALED),
        (RoundState.RELEASED, NOW, LATER, RoundState.SEALED),
        (RoundState.RELEASED, None, NOW, RoundState.RELEASED),
        (RoundState.ABORTED, NOW, None, RoundState.ABORTED),
    ],
)
def test_analysts_do_not_see_how_long_a_run_takes(
    state: RoundState, close_time: datetime | None, release_time: datetime | None, shown: RoundState
) -> None:
    assert shown_to_analysts(state, close_time, release_time, NOW) is shown
    assert streams_open(state, release_time, NOW) is (shown is RoundState.RELEASED)


@pytest.mark.parametrize("complete", [False, True])
@pytest.mark.parametrize("state", RoundState)
def test_from_its_closing_time_on_a_round_goes_on_by_itself(state: RoundState, complete: bool) -> None:
    step = due(state, NOW, complete, NOW)
    expected = {RoundState.OPEN: Action.SEAL, RoundState.SEALED: Action.RUN}
    if complete:
        expected[RoundState.RUNNING] = Action.RELEASE
    assert step is expected.get(state)
    # Whatever is due is legal, and nothing is due before the time, or without one.
    assert step is None or (state, step) in LEGAL
    assert due(state, LATER, complete, NOW) is None
    assert due(state, None, complete, NOW) is None


@pytest.mark.parametrize(
    ("time", "grid", "expected"),
    [
        (NOW, 60, LATER),
        (LATER, 60, LATER + timedelta(seconds=60)),
        (LATER - timedelta(microseconds=1), 60, LATER),
        (NOW, 1, NOW + timedelta(seconds=1)),
        (NOW, 86400, datetime(2024, 1, 2, tzinfo=UTC)),
    ],
)
def test_the_grid_is_public_and_always_ahead(time: datetime, grid: int, expected: datetime) -> None:
    assert next_grid_point(time, grid) == expected
