"""Says in words why a plan was chosen."""

from __future__ import annotations

from collections.abc import Sequence

from equipoise.model.rounds import MechanismPlan
from equipoise_server.mechanisms.choice import NEAR, Candidate, by_promise, choose
from equipoise_server.mechanisms.planner import Comparison
from equipoise_server.mechanisms.prior.choice import OWN, STANDING, Start


def why(comparison: Comparison) -> str:
    """Say in a sentence why the chosen mechanism won, and in another why it starts from the standing measurement.

    Empty where none has a plan, or where there was nothing to choose.
    """
    chosen = comparison.chosen
    if chosen is None or chosen.plan is None:
        return ""
    start = _why_standing(chosen.starts)
    if len(comparison.candidates) == 1:
        return start
    return f"{_why_mechanism(comparison, chosen, chosen.plan)} {start}".strip()


def _why_standing(starts: Sequence[Start]) -> str:
    if not starts or starts[0].prior != STANDING or len(starts) == 1:
        return ""
    named = {OWN: "from a measurement of its own"}
    others = " and ".join(
        f"{_figure(other.plan.expected_error)} {named.get(other.prior, 'from none')}" for other in starts[1:]
    )
    expected = _figure(starts[0].plan.expected_error)
    return f"It starts from the standing measurement, expected to err by {expected} in the mean, against {others}."


def _why_mechanism(comparison: Comparison, chosen: Candidate, plan: MechanismPlan) -> str:
    others = [each for each in comparison.candidates if each.plan is not None and each is not chosen]
    other = choose(others, comparison.rule)
    if other is None or other.plan is None:
        return f"{chosen.mechanism} is the only mechanism that can serve this round."
    if other.beyond and not chosen.beyond:
        return f"Of all plans within the limits of time and memory, only that of {chosen.mechanism} can serve."
    if comparison.rule is by_promise:
        return (
            f"{chosen.mechanism} promises {_figure(plan.max_half_width)} (alpha {_figure(chosen.alpha)}); "
            f"{other.mechanism}, the next, {_figure(other.plan.max_half_width)} (alpha {_figure(other.alpha)})."
        )
    expected = f"{chosen.mechanism} is expected to err by {_figure(plan.expected_error)} in the mean"
    told = f"{expected}, {other.mechanism}, the next, by {_figure(other.plan.expected_error)}"
    if other.plan.expected_error <= plan.expected_error * (1 + NEAR):
        return f"{told}; {_why_so_near(plan, other.plan)}."
    return f"{told}."


def _why_so_near(plan: MechanismPlan, other: MechanismPlan) -> str:
    if other.max_uncertified and not plan.max_uncertified:
        return "that is not known more closely, and only the former gives every answer an interval"
    return "that counts as equal, and the promise, the cost to the analysts and the time decide"


def _figure(error: float) -> str:
    return f"{error:.3g}"
