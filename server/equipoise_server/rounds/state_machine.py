"""The states of rounds and sessions, and the transitions between them. Pure functions: no input and no output.

OPEN --seal--> SEALED --run--> RUNNING --release--> RELEASED
  |              |               | ^
  |              |               +-+ run again, after the worker died
  +----abort-----+----abort------+------------> ABORTED

A session takes the same steps, but answers while it is OPEN. So a session is charged when it is opened, and none of
its charges is ever given back.

From its closing time on, a round takes its steps without an operator (`due`). `storage.crash_points` names the
points of the code at which a crash matters: before and after the commit of each step, and around what follows a
commit.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from equipoise.errors import WrongState
from equipoise.model.rounds import RoundState, Terms


class Action(StrEnum):
    """A step that an operator takes with a round. Its value is the participle that error texts use."""

    SEAL = "sealed"
    RUN = "run"
    RELEASE = "released"
    ABORT = "aborted"


class Settlement(StrEnum):
    """The effect of an action on the round's charges."""

    NONE = "none"
    RESERVE = "reserve"
    START = "start"
    SPEND = "spend"
    RELEASE = "release"


Steps = Mapping[tuple[RoundState, Action], tuple[RoundState, Settlement]]

ROUND_STEPS: Steps = {
    (RoundState.OPEN, Action.SEAL): (RoundState.SEALED, Settlement.RESERVE),
    # From here on the worker may read data. The journal says so, so that no older copy of the store can undo it.
    (RoundState.SEALED, Action.RUN): (RoundState.RUNNING, Settlement.START),
    # The worker died. The same seed and inputs give the same bytes, so nothing is charged again.
    (RoundState.RUNNING, Action.RUN): (RoundState.RUNNING, Settlement.NONE),
    (RoundState.RUNNING, Action.RELEASE): (RoundState.RELEASED, Settlement.SPEND),
    (RoundState.OPEN, Action.ABORT): (RoundState.ABORTED, Settlement.NONE),
    # No worker was ever started, so no data were read. This is the only case in which a charge is given back.
    (RoundState.SEALED, Action.ABORT): (RoundState.ABORTED, Settlement.RELEASE),
    # The worker may have read data: in doubt, the charge is spent.
    (RoundState.RUNNING, Action.ABORT): (RoundState.ABORTED, Settlement.SPEND),
}
SESSION_STEPS: Steps = {
    (RoundState.OPEN, Action.SEAL): (RoundState.SEALED, Settlement.NONE),
    (RoundState.SEALED, Action.RUN): (RoundState.RUNNING, Settlement.NONE),
    (RoundState.RUNNING, Action.RUN): (RoundState.RUNNING, Settlement.NONE),
    (RoundState.RUNNING, Action.RELEASE): (RoundState.RELEASED, Settlement.SPEND),
    # An open session may have given answers.
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
        """Return the next state and the effect on the charges. Raises `WrongState` for an illegal action."""
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
    """Return the step that the server itself must take now with a round; None if there is none.

    Args:
        state: the round's state.
        close_time: the round's closing time; None for a round that waits for its operator.
        complete: whether a run has stored all answers. A run that ended without answers is left to the operator.
        now: the time.
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
    """Return the state that analysts see: SEALED from closing until the streams open, which hides the run time."""
    if state is RoundState.OPEN and closed(close_time, now):
        return RoundState.SEALED
    if state is RoundState.RUNNING:
        return RoundState.SEALED
    if state is RoundState.RELEASED and not streams_open(state, release_time, now):
        return RoundState.SEALED
    return state
