"""The plan of a session in epochs from a prior: a measurement, and one epoch of tests against its distribution.

The hypothesis stays the prior. What the analysts' budget allows to be drawn of a learnt one errs by more: at
epsilon 1, some 70 records. So the analysts pay for nothing but the end of the epoch, with all of their budget, and
no statement moves what others are answered from. Few statements are expected to be answered afresh, so there are
places for few, and the tests of all others are the sharper.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

from equipoise.accounting import RHO_UNIT, Cost, PrivacyEvent, charge_of
from equipoise.errors import InvalidArgument
from equipoise.model.accounts import Budget
from equipoise.model.rounds import MechanismPlan
from equipoise.records.canonical import canonical_json, parse_canonical_json
from equipoise.records.codec import COUNT, FRACTION, canonical_object, codec_of, key
from equipoise_server.conversion import largest_rho
from equipoise_server.mechanisms.budget_rounding import usable_delta, usable_rho, with_samplers
from equipoise_server.mechanisms.epochs import cost
from equipoise_server.mechanisms.epochs.cost import Session
from equipoise_server.mechanisms.epochs.epochs import EpochParameters
from equipoise_server.mechanisms.epochs.plan import (
    Learning,
    check_session,
    filled_in,
    forced,
    on_epsilon_grid,
    promised,
)
from equipoise_server.mechanisms.epochs.session_plan import session_plan
from equipoise_server.mechanisms.interface import GRID_BITS, PublicParameters
from equipoise_server.mechanisms.make_plan import make_plan
from equipoise_server.mechanisms.options import real
from equipoise_server.mechanisms.parameters import THE_PLAN, Parameters
from equipoise_server.mechanisms.prior.choice import STANDING
from equipoise_server.mechanisms.prior.known_answers import measured_half_width
from equipoise_server.mechanisms.prior.plan import PriorParameters, plan_prior, standing_prior

# Of epsilon, for a measurement of its own, and half of delta. Tests that cost a rho alone compose with it in rho,
# which leaves it more.
PRIOR_PART = 3 / 5
EXPECTED_POSITIVES = 16  # of statements that the prior serves badly


@canonical_object
class PriorEpochParameters(Parameters):
    """Public parameters of a session that starts from a prior.

    `prior`: what is measured. `chance`: that any interval of the measurement misses its truth.
    `measured_half_width`: of the single cells that it holds, at most, in units of 2^-40. `epochs`: the one epoch.
    """

    prior: PriorParameters = key("prior", codec_of(PriorParameters))
    chance: Fraction = key("chance", FRACTION)
    measured_half_width: int = key("told_half_width", COUNT)
    epochs: EpochParameters = key("epochs", codec_of(EpochParameters))

    @property
    def promise(self) -> int:
        """The largest half-width of a certified answer, in units of 2^-40."""
        return max(self.measured_half_width, int(promised(self.epochs) * 2.0**GRID_BITS))


def plan_from_prior(setting: PublicParameters, session: Session, prior: str) -> PriorEpochParameters:
    """Plan the measurement and the one epoch.

    Args:
        setting: the public parameters.
        session: the session's public size.
        prior: `OWN`, measured with a part of the budget, or `STANDING`, which leaves all of it to the epoch.

    Raises:
        InvalidArgument: there is nothing that a prior could be made of (`plan_prior`, `standing_prior`), or an
            option says how to learn.
        BudgetExhausted: the budget is too small.
    """
    check_session(setting, session)
    for name in ("epochs", "rate", "records"):
        if name in setting.options:
            raise InvalidArgument(f"options.{name}", "must not be set with a prior, from which nothing is learnt")
    rest = tested_setting(setting, prior != STANDING)
    ending = on_epsilon_grid(real(setting.options, "ending_epsilon", cost.analyst_budget(setting).epsilon))
    beyond = int(forced(setting, "beyond", (cost.places_beyond(setting, ending, 1),))[0])
    early = cost.ends_early(ending, 1, session.slots, Fraction(rest.beta) / 8)
    usual = min(session.statements + early, EXPECTED_POSITIVES + early)
    target = int(forced(setting, "target", (usual,))[0])
    epochs = filled_in(rest, session, ending, Learning(1, target, beyond, 0, 1.0))
    chance = Fraction(setting.beta) / 4
    measured = _measured(setting, prior, charge_of(cost.data_parts(rest, session, epochs)))
    return PriorEpochParameters(measured, chance, measured_half_width(measured, chance, setting.records), epochs)


def _measured(setting: PublicParameters, prior: str, tested: Cost) -> PriorParameters:
    """Return the measurement: its own has its part of epsilon, or all rho that is left by tests that cost a rho."""
    if prior == STANDING:
        return standing_prior(setting)
    budget = setting.data_budget
    rho = largest_rho(budget.epsilon * PRIOR_PART, usable_delta(budget) / 2)
    if not tested.epsilon:
        rho = max(rho, usable_rho(budget) - tested.rho)
    return plan_prior(setting, Fraction(rho, RHO_UNIT))


def tested_setting(setting: PublicParameters, own: bool) -> PublicParameters:
    """Return the setting of what follows a measurement of the session's own, or the standing one.

    It has the rest of beta; of epsilon and delta, too, where the measurement is its own.
    """
    budget = setting.data_budget
    rest = budget if not own else Budget(budget.epsilon * (1 - PRIOR_PART), budget.delta / 2)
    return replace(setting, data_budget=rest, beta=setting.beta * 3 / 4)


def data_events(
    setting: PublicParameters, session: Session, parameters: PriorEpochParameters
) -> list[PrivacyEvent]:
    """Return what a session costs the people in the table: a measurement of its own, then the tests and answers."""
    prior = parameters.prior
    tested = tested_setting(setting, prior.released is None)
    rest = cost.data_parts(tested, session, parameters.epochs)
    if prior.released:
        return rest
    return [*with_samplers(prior.events(), prior.truncation(), setting.data_budget.epsilon), *rest]


def beginning_seconds(plan: MechanismPlan) -> float:
    """Predict what passes before a session by turns answers: the fit of its prior, on one ordinary core.

    Returns:
        Seconds, which are a part of the plan's; 0 of a session that starts from no prior.
    """
    written = parse_canonical_json(plan.parameters.encode(), THE_PLAN)
    start = written.get("start", written) if isinstance(written, dict) else None
    if not isinstance(start, dict) or start.keys() != codec_of(PriorEpochParameters).keys.keys():
        return 0.0
    return PriorEpochParameters.from_json(canonical_json(start).decode()).prior.seconds()


def prior_session_plan(
    mechanism: str,
    setting: PublicParameters,
    session: Session,
    parameters: PriorEpochParameters,
    expected_error: float,
) -> MechanismPlan:
    """Return the plan of a session from a prior, with the costs of the measurement and of the epoch at its cap.

    `expected_error`: of its answers, as the mechanism expects it of the prior.

    Args:
        mechanism: the name under which the session is charged.
        setting: of the session.
        session: its size.
        parameters: of the prior and the epoch.
        expected_error: of the answers, as the mechanism expects it of the prior; a fraction of the records.
    """
    tested = tested_setting(setting, parameters.prior.released is None)
    plan = session_plan(mechanism, tested, session, parameters.epochs)
    return make_plan(
        mechanism,
        setting,
        parameters,
        data_events(setting, session, parameters),
        cost.analyst_parts(setting, session, parameters.epochs) if setting.protects_analysts else (),
        max_half_width=parameters.promise / 2**GRID_BITS,
        expected_error=expected_error,
        max_uncertified=plan.max_uncertified,
        seconds=plan.seconds + parameters.prior.seconds(),
        memory_bytes=plan.memory_bytes + parameters.prior.memory_bytes(),
    )
