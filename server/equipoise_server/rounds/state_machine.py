"""Where a round or a session stands and how it may move on. Values in, decisions out: nothing here reads or writes.

OPEN --seal--> SEALED --run--> RUNNING --release--> RELEASED
  |              |               | ^
  |              |               +-+ run again, where the worker died
  +----abort-----+----abort------+------------> ABORTED

A session takes the same steps, and answers while it is OPEN: so it is charged when it is opened, and nothing that
it was charged is ever given back.

A round with a closing time takes the steps after OPEN by itself from then on (`due`). The points of the code at
which a kill matters are named in `storage.crash_points`: before and after the commit of each of these steps, and
around what follows a commit.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from equipoise.errors import WrongState
from equipoise.model.rounds import RoundState, Terms


class Action(StrEnum):
    """What an operator does to a round, by the participle that error texts use."""

    SEAL = "sealed"
    RUN = "run"
    RELEASE = "released"
    ABORT = "aborted"


class Settlement(StrEnum):
    """What an action does to the round's charges."""

    NONE = "none"
    RESERVE = "reserve"
    START = "start"
    SPEND = "spend"
    RELEASE = "release"


Steps = Mapping[tuple[RoundState, Action], tuple[RoundState, Settlement]]

ROUND_STEPS: Steps = {
    (RoundState.OPEN, Action.SEAL): (RoundState.SEALED, Settlement.RESERVE),
    # From here on data may be touched. That is journaled, so that no older copy of the store can undo it.
    (RoundState.SEALED, Action.RUN): (RoundState.RUNNING, Settlement.START),
    # The worker died: the same seed and the same inputs give the same bytes, so nothing is charged anew.
    (RoundState.RUNNING, Action.RUN): (RoundState.RUNNING, Settlement.NONE),
    (RoundState.RUNNING, Action.RELEASE): (RoundState.RELEASED, Settlement.SPEND),
    (RoundState.OPEN, Action.ABORT): (RoundState.ABORTED, Settlement.NONE),
    # No worker was ever started, so no data were touched: the only case in which a charge is given back.
    (RoundState.SEALED, Action.ABORT): (RoundState.ABORTED, Settlement.RELEASE),
    # Data may have been touched: in doubt means spent.
    (RoundState.RUNNING, Action.ABORT): (RoundState.ABORTED, Settlement.SPEND),
}
SESSION_STEPS: Steps = {
    (RoundState.OPEN, Action.SEAL): (RoundState.SEALED, Settlement.NONE),
    (RoundState.SEALED, Action.RUN): (RoundState.RUNNING, Settlement.NONE),
    (RoundState.RUNNING, Action.RUN): (RoundState.RUNNING, Settlement.NONE),
    (RoundState.RUNNING, Action.RELEASE): (RoundState.RELEASED, Settlement.SPEND),
    # Answers may have been given from the moment it was open.
    (RoundState.OPEN, Action.ABORT): (RoundState.ABORTED, Settlement.SPEND),
    (RoundState.SEALED, Action.ABORT): (RoundState.ABORTED, Settlement.SPEND),
    (RoundState.RUNNING, Action.ABORT): (RoundState.ABORTED, Settlement.SPEND),
}


@dataclass(frozen=True)
class Lifecycle:
    """A life cycle: the allowed transitions, and what each does to the round's charges."""

    noun: str
    opening: tuple[Settlement, ...]
    steps: Steps

    def after(self, state: RoundState, action: Action) -> tuple[RoundState, Settlement]:
        """The state that follows and what happens to the charges. Raises `WrongState` for an illegal action."""
        try:
            return self.steps[state, action]
        except KeyError:
            raise WrongState(f"the {self.noun} is {state.value}, so it cannot be {action.value}") from None


ROUND = Lifecycle("round", (), ROUND_STEPS)
SESSION = Lifecycle("session", (Settlement.RESERVE, Settlement.START), SESSION_STEPS)


def lifecycle_of(terms: Terms) -> Lifecycle:
    """Return the life cycle of a round, or of a session, with these terms."""
    return ROUND if terms.session is None else SESSION


def closed(close_time: datetime | None, now: datetime) -> bool:
    """Return whether a round's closing time has come, whether or not it has been sealed already."""
    return close_time is not None and now >= close_time


def due(state: RoundState, close_time: datetime | None, complete: bool, now: datetime) -> Action | None:
    """Return what the server does by itself to a round that has a closing time; None where nothing, or nothing yet.

    `complete`: the answers are there. A run that ended without answers is left to the operator.
    """
    if not closed(close_time, now):
        return None
    match state:
        case RoundState.OPEN:
            return Action.SEAL
        case RoundState.SEALED:
            return Action.RUN
        case RoundState.RUNNING if complete:
            return Action.RELEASE
        case _:
            return None


def streams_open(state: RoundState, release_time: datetime | None, now: datetime) -> bool:
    """Return whether results may be read: the round is released and its release time has come."""
    return state is RoundState.RELEASED and release_time is not None and now >= release_time


def shown_to_analysts(
    state: RoundState, close_time: datetime | None, release_time: datetime | None, now: datetime
) -> RoundState:
    """The state as analysts see it: SEALED from closing until the streams open, so that no run time shows."""
    if state is RoundState.OPEN and closed(close_time, now):
        return RoundState.SEALED
    if state is RoundState.RUNNING:
        return RoundState.SEALED
    if state is RoundState.RELEASED and not streams_open(state, release_time, now):
        return RoundState.SEALED
    return state
