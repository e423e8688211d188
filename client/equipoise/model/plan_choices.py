"""What a plan was chosen from: every mechanism that was compared, and why one won.

Errors are fractions of the records.
"""

from __future__ import annotations

from dataclasses import dataclass

from equipoise.model.accounts import Budget
from equipoise.model.persons import EACH_ROW, Persons
from equipoise.model.rounds import Plan


@dataclass(frozen=True, kw_only=True)
class Forecast:
    """What a mechanism's plan states of a round, without its parameters.

    Attributes:
        expected_error: The mean error over all declared queries that is expected; no promise rests on it.
        max_half_width: The largest half-width of any answer's interval; 1, which says nothing, where none has one.
        max_uncertified: At most how many answers carry no interval.
        data_budget: What the round would cost the people in the table, at the round's delta.
        analyst_budget: What it would cost one unit of the analysts, at the round's delta; None where they are not
            protected.
        seconds: Predicted, of a run on one ordinary core.
        memory_bytes: Predicted, at the peak.
    """

    expected_error: float
    max_half_width: float
    max_uncertified: int
    data_budget: Budget
    analyst_budget: Budget | None
    seconds: float
    memory_bytes: int


@dataclass(frozen=True, kw_only=True)
class PlanCandidate:
    """One of the mechanisms from which a plan was chosen.

    Attributes:
        mechanism: Its name.
        refusal: Why it cannot serve the round; empty where it can.
        beyond_limits: The limit of time or memory that its plan exceeds, in words; empty where it exceeds none.
        forecast: What its plan states; None where it cannot serve the round.
    """

    mechanism: str
    refusal: str
    beyond_limits: str
    forecast: Forecast | None


@dataclass(frozen=True, kw_only=True)
class PlanChoice:
    """A plan, and what it was chosen from.

    Attributes:
        plan: The chosen plan.
        because: One sentence on why its mechanism was chosen; empty where the terms name the mechanism.
        candidates: Every mechanism that was compared; none where the terms name the mechanism.
        persons: Whose privacy the plan counts. Errors are fractions of all persons' records.
        records: How many these are.
    """

    plan: Plan
    because: str
    candidates: tuple[PlanCandidate, ...]
    records: int
    persons: Persons = EACH_ROW
