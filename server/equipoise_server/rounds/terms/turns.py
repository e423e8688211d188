"""Whether the turns of a session are long enough, and enough of them."""

from __future__ import annotations

import math
from collections.abc import Sequence

from equipoise.errors import InvalidArgument
from equipoise.model.rounds import MechanismPlan, SessionTerms
from equipoise_server.mechanisms.epochs.prior_plan import beginning_seconds

SLOWER = 4  # times as long as planned may take what nobody's statements change, on a busy machine
HARDEST = 32  # times as long as planned for a usual one: a condition of many parts, on a busy machine


def turns_before_answers(session: SessionTerms, plan: MechanismPlan) -> int:
    """Return how many turns may end before anything can be answered: those in which a prior is fitted.

    Args:
        session: one that answers by turns.
        plan: of the session.
    """
    return int(SLOWER * beginning_seconds(plan) // session.turn_seconds)


def check_turns(session: SessionTerms, statements: Sequence[int], plan: MechanismPlan) -> None:
    """Refuse turns that are too short for the hardest statements: a late turn would be seen by all analysts.

    A prior is fitted once, before anything is answered, whatever is asked. So turns may be shorter than that, but
    those that pass meanwhile must not be all that there are.

    Args:
        session: one that answers by turns.
        statements: how many each share may ask.
        plan: of the session.

    Raises:
        InvalidArgument: the turns are too short or too few.
    """
    asked = sum(min(count, session.length) for count in statements)
    needed = HARDEST * (plan.seconds - beginning_seconds(plan)) / asked * len(statements)
    if session.turn_seconds < needed:
        raise InvalidArgument(
            "session.turn_seconds",
            f"must be at least {math.ceil(needed):,}, so that the hardest statements of all shares fit into a turn",
        )
    passed = turns_before_answers(session, plan)
    if session.length <= passed:
        raise InvalidArgument(
            "session.length",
            f"must be above {passed:,}: so many turns of {session.turn_seconds:,} s may pass before the prior is "
            "fitted and anything is answered",
        )
