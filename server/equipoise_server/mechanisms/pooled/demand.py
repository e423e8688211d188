"""The demand for tables, counted with noise: the only step of `pooled` that can reveal one analyst to another."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from equipoise import accounting
from equipoise.accounting import RHO_UNIT, ApproximateDpEvent, PrivacyEvent, ZcdpEvent
from equipoise.errors import BudgetExhausted
from equipoise.model.accounts import Budget
from equipoise.queries.marginal_tables import Axes
from equipoise.queries.workload_compiler import CompiledWorkload
from equipoise.records.codec import COUNT, INTEGER, canonical_object, key, optional
from equipoise_server.mechanisms.budget_rounding import MIN_EPSILON, usable_rho, with_samplers
from equipoise_server.mechanisms.interface import PublicParameters
from equipoise_server.mechanisms.noise_calibration import (
    NOISE,
    AnswerNoise,
    GaussianNoise,
    LaplaceNoise,
)
from equipoise_server.randomness.stream import KeyedStream

USUAL = Fraction(1, 100)  # the chance at which two laws of noise are compared


@canonical_object
class Demand:
    """Public: by how much one unit may move all votes together, the noise on each count, and what is left out.

    `noise` is None where the analysts are not protected. A set that is not among the family's largest is measured
    only if its noisy count is above `least`.

    Formal guarantees. All that the votes decide is a function of the noisy counts, which cost one unit of the
    analysts, against all others together: Gaussian noise `accounting.gaussian_rho(l1_sensitivity, variance)` in
    zCDP, Laplace noise its pure epsilon (`accounting.votes_l1_sensitivity` for the sensitivities), up to the
    truncation of the sampler.
    """

    l1_sensitivity: int = key("l1_sensitivity", COUNT)
    noise: AnswerNoise | None = key("noise", optional(NOISE))
    least: int = key("min_count", INTEGER)

    def noisy(self, votes: NDArray[np.int64], stream: KeyedStream) -> NDArray[np.int64]:
        """Return the counts with noise: int64[sets]. As many draws whatever was voted for."""
        if self.noise is None or not len(votes):
            return votes
        return votes + self.noise.law(self.l1_sensitivity).draw(len(votes), stream)


NO_VOTES = Demand(0, None, 0)


def plan_demand(
    setting: PublicParameters, sets: int, budget: Budget, only_concentrated: bool, least: float
) -> Demand:
    """Choose the noise that hides one unit's votes for sets of attributes from other analysts.

    Laplace noise where it reaches less far and nothing else is charged to the analysts: its pure epsilon adds to
    other costs in full.

    Args:
        setting: The public parameters.
        sets: How many sets of attributes are voted for.
        budget: What the analysts can pay for it.
        only_concentrated: Whether the analysts are charged for something else, too.
        least: The votes that a table needs, in multiples of what noise usually reaches.

    Raises:
        BudgetExhausted: The budget is too small for what one analyst may ask.
    """
    votes = max(share.statements for share in setting.shares) if setting.unit == "analyst" else 1
    l1_sensitivity = accounting.votes_l1_sensitivity(votes, sets)
    if not setting.protects_analysts or l1_sensitivity == 0:
        return Demand(l1_sensitivity, None, 0)
    epsilon = Fraction(int(Fraction(budget.epsilon) * RHO_UNIT), RHO_UNIT)
    rho = Fraction(usable_rho(budget), RHO_UNIT)
    if epsilon / l1_sensitivity < MIN_EPSILON or rho == 0:
        raise BudgetExhausted("analyst_budget: is too small to hide what one analyst asks for; raise it")
    noises: list[AnswerNoise] = [GaussianNoise.within(rho)]
    if not only_concentrated:
        noises.append(LaplaceNoise(epsilon))
    chance = USUAL / sets
    noise = min(noises, key=lambda each: each.law(l1_sensitivity).quantile(chance))
    return Demand(l1_sensitivity, noise, round(least * noise.law(l1_sensitivity).quantile(chance)))


def demand_parts(demand: Demand, sets: int, epsilon: float) -> list[PrivacyEvent]:
    """Return what counting the votes costs the analysts, where one unit's votes are replaced.

    Args:
        demand: The noise on the votes.
        sets: How many sets of attributes are voted for.
        epsilon: The analysts' epsilon, at which the samplers' delta is counted.
    """
    noise = demand.noise
    if noise is None:
        return []
    truncated = sets * noise.law(demand.l1_sensitivity).truncation_delta()
    part: PrivacyEvent = ZcdpEvent("demand", noise.rho(1))
    if isinstance(noise, LaplaceNoise):
        # As a pair, not as the rho it implies: one round's epsilon is what such noise is chosen for.
        part = ApproximateDpEvent("demand", noise.epsilon, Fraction(0))
    return with_samplers([part], truncated, epsilon)


def votes_of(workload: CompiledWorkload, unit: str, sets: Sequence[Axes]) -> NDArray[np.int64]:
    """Return one analyst's votes, int64[sets]: one for each statement, or (unit = analyst) for each different set.

    Statements about no set of the family vote for nothing.

    Args:
        workload: the analyst's statements.
        unit: of the analysts' protection, `query` or `analyst`.
        sets: of attributes, in the family's order.
    """
    places = {axes: place for place, axes in enumerate(sets)}
    asked: Iterable[Axes] = workload.statement_tables()
    votes = np.zeros(len(sets), dtype=np.int64)
    for axes in set(asked) if unit == "analyst" else asked:
        if axes in places:
            votes[places[axes]] += 1
    return votes
