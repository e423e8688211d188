"""What a grant allows: the largest rho that its budget holds. What is asked, and at which noise, is not planned."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

from equipoise.accounting import RHO_UNIT, ZcdpEvent
from equipoise.errors import BudgetExhausted, InvalidArgument
from equipoise.model.rounds import STANDING_OPTION, MechanismPlan
from equipoise.records.codec import COUNT, canonical_object, codec_of, key, optional
from equipoise.residuals.released import ReleasedNumbers
from equipoise_server.mechanisms.budget_rounding import usable_rho
from equipoise_server.mechanisms.expected_error import noisy_answers_error
from equipoise_server.mechanisms.interface import PublicParameters
from equipoise_server.mechanisms.make_plan import make_plan
from equipoise_server.mechanisms.noise_calibration import GaussianNoise
from equipoise_server.mechanisms.online.interface import session_length
from equipoise_server.mechanisms.parameters import Parameters
from equipoise_server.mechanisms.running_time import counting_bytes, counting_seconds
from equipoise_server.mechanisms.standing.released import named_measurement

ANSWERS = "answers"  # the name of the event that all answers are charged as
NO_PROMISE = 1.0  # a half-width that says nothing: how wide an interval is depends on what is paid for it


@canonical_object
class GrantParameters(Parameters):
    """All public parameters of one grant.

    `rho`: what all statements may cost together where one record is replaced, in units of 10^-12. `measurement`:
    the standing one that answers are combined with; None: there is none.
    """

    rho: int = key("rho", COUNT)
    measurement: ReleasedNumbers | None = key("measurement", optional(codec_of(ReleasedNumbers)))


def plan_grant(name: str, setting: PublicParameters) -> MechanismPlan:
    """Plan a grant: all that its budget allows. The expected error is that of one predicate that takes it all.

    The option `standing` is the measurement that answers are combined with. It costs nothing.

    Raises:
        InvalidArgument: the setting is not valid, has other options, or has shares of several analysts.
        BudgetExhausted: the budget allows no rho at all.
    """
    session_length(setting, slotted=False)
    for option in sorted(setting.options.keys() - {"length", STANDING_OPTION}):
        raise InvalidArgument(f"options.{option}", f"unknown; there is {STANDING_OPTION}")
    measurement = named_measurement(setting).numbers if STANDING_OPTION in setting.options else None
    if len(setting.shares) != 1:
        raise InvalidArgument("shares", "must be one: a grant is of one analyst")
    rho = usable_rho(setting.data_budget)
    if rho < 1:
        raise BudgetExhausted("data_budget: is too small for any statement; raise it")
    one = replace(setting, shares=(replace(setting.shares[0], statements=1, queries=1),))
    noise = GaussianNoise.within(Fraction(rho, RHO_UNIT))
    return make_plan(
        name,
        setting,
        GrantParameters(rho, measurement),
        [ZcdpEvent(ANSWERS, Fraction(rho, RHO_UNIT))],
        max_half_width=NO_PROMISE,
        expected_error=min(1.0, noisy_answers_error(noise.law(1), setting.records)),
        seconds=counting_seconds(one),
        memory_bytes=counting_bytes(one),
    )
