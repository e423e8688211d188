"""The options `prior` and `standing`: what a plan starts from, and the plans from each prior that there may be."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from equipoise.errors import BudgetExhausted, InvalidArgument
from equipoise.model.rounds import STANDING_OPTION, MechanismPlan
from equipoise_server.mechanisms.interface import PublicParameters

PRIOR = "prior"
OWN, STANDING, NONE = "own", "standing", "none"
PRIORS = (OWN, STANDING, NONE)
OF_PRIOR = (PRIOR, STANDING_OPTION)


@dataclass(frozen=True)
class Start:
    """A plan, and the prior that it starts from: `OWN`, `STANDING` or `NONE`."""

    prior: str
    plan: MechanismPlan


@runtime_checkable
class StartsFromPrior(Protocol):
    """A mechanism of rounds or of sessions that may start from a measurement."""

    def starts(self, setting: PublicParameters) -> list[Start]:
        """Plan from every prior that the options allow, that of least expected error first; at least one.

        Raises what `Mechanism.plan` raises.
        """
        ...


def check_prior(options: Mapping[str, object]) -> None:
    """Raise `InvalidArgument` for an option `prior` that means nothing, or that no named measurement goes with."""
    wanted = options.get(PRIOR, STANDING)
    if wanted not in PRIORS:
        raise InvalidArgument(f"options.{PRIOR}", f"must be {OWN}, {STANDING} or {NONE}")
    if wanted != STANDING and STANDING_OPTION in options:
        raise InvalidArgument(f"options.{STANDING_OPTION}", f"belongs to prior {STANDING}, and prior is {wanted}")


def starts_of(setting: PublicParameters, ways: Mapping[str, Callable[[], MechanismPlan]]) -> list[Start]:
    """Return the plan of the prior that the options ask for; without that, all there are, the best first.

    The best is that of the smallest expected error; of equal ones the first of `ways`.

    Args:
        setting: its options may hold `prior`. The dataset has a standing measurement if they hold one.
        ways: plans from each prior, or from none.

    Raises:
        InvalidArgument: there is no plan, or the options make no sense.
        BudgetExhausted: there is no plan within the budgets.
    """
    check_prior(setting.options)
    wanted = setting.options.get(PRIOR)
    if isinstance(wanted, str):
        return [Start(wanted, ways[wanted]())]
    starts, refusals = list[Start](), list[InvalidArgument | BudgetExhausted]()
    for prior, planned in ways.items():
        if prior == STANDING and STANDING_OPTION not in setting.options:
            continue
        try:
            starts.append(Start(prior, planned()))
        except (InvalidArgument, BudgetExhausted) as refusal:
            refusals.append(refusal)
    if not starts:
        raise refusals[0]
    return sorted(starts, key=lambda start: start.plan.expected_error)


def without_measurement(options: Mapping[str, object]) -> dict[str, object]:
    """Return the options of a plan that does not start from the standing measurement."""
    return {name: value for name, value in options.items() if name != STANDING_OPTION}
