"""The option `prior`: whether a plan starts from a measurement of its own."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from equipoise.errors import BudgetExhausted, InvalidArgument
from equipoise.model.rounds import MechanismPlan
from equipoise_server.mechanisms.interface import PublicParameters

OWN, NONE = "own", "none"
PRIORS = (OWN, NONE)


def check_prior(options: Mapping[str, object]) -> None:
    """Raise `InvalidArgument` for an option `prior` that means nothing."""
    if "prior" in options and options["prior"] not in PRIORS:
        raise InvalidArgument("options.prior", f"must be {' or '.join(PRIORS)}")


def plan_with_prior(
    setting: PublicParameters,
    own: Callable[[], MechanismPlan],
    none: Callable[[], MechanismPlan],
) -> MechanismPlan:
    """Return the plan that the option `prior` asks for; without it, the one with the smaller expected error.

    Args:
        setting: its options may hold `prior`.
        own: plans with a measurement that is paid from the setting's own budget.
        none: plans without one.
    """
    wanted = setting.options.get("prior")
    if wanted == OWN:
        return own()
    without = none()
    if wanted == NONE:
        return without
    try:
        plan = own()
    except (InvalidArgument, BudgetExhausted):
        return without
    return plan if plan.expected_error < without.expected_error else without
