"""Proposing sampled play where nobody protects the analysts from one another.

Without the analysts' constraint the density is 1 unless forced, the data player's rate is free, and in sampled
play so are the records: they are post-processing of the drawn actions. What is left to choose is how many
actions are drawn and how far the data player goes. The proven bound is several times too pessimistic to choose
by (its second-order terms take every payoff for as large as payoffs can be), so sampled play is ranked by an
expectation with the same two regret terms and constants measured once, on marginals and on dense predicates.
Promises never rest on it.
"""

from __future__ import annotations

import math

import numpy as np

from equipoise.accounting import RHO_UNIT
from equipoise_server.mechanisms.budget_rounding import usable_rho
from equipoise_server.mechanisms.equilibrium import cost_limits
from equipoise_server.mechanisms.equilibrium.cost_model import Size
from equipoise_server.mechanisms.equilibrium.forecast import Numbers, Sketch
from equipoise_server.mechanisms.equilibrium.search import MAX_QUERY_TRAVEL, Proposal
from equipoise_server.mechanisms.interface import PublicParameters
from equipoise_server.mechanisms.options import real

ACTIONS = np.geomspace(16, 2**17, 300)
ROUNDS = 200
RECORDS = 1 << 16  # of the synopsis: so many that drawing them costs little beside what the game errs

REGRET_PART = 1 / 3  # of either player's regret bound, as measured
STEP_COST = 1 / 80  # error for each nat by which one drawn action moves its records
ROUND_COST = 1 / 800  # and for each nat by which a whole round may: its actions are chosen at once


def unprotected_error(sketch: Sketch, size: Size) -> Numbers:
    """The largest error that is expected of sampled play's synopsis, by a rule of thumb. Guarantees nothing."""
    distance = np.log(size.units / sketch.density) + math.log(2 * size.largest_unit)
    regrets = math.log(size.universe) / sketch.data_travel + distance / sketch.query_travel
    return np.asarray(REGRET_PART * regrets + _cost_of_travel(sketch.actions) * sketch.data_travel)


def _cost_of_travel(actions: Numbers) -> Numbers:
    return np.asarray(STEP_COST / actions + ROUND_COST / ROUNDS)


def propose_unprotected(setting: PublicParameters, share: float) -> Proposal | None:
    """The number of actions expected to err least within `share` of the data's budget; `E_D` balances its terms."""
    size = Size.of(setting)
    data_rho = share * usable_rho(setting.data_budget) / RHO_UNIT
    query_travel = np.minimum(cost_limits.sampled_query_travel(ACTIONS, data_rho, size), MAX_QUERY_TRAVEL)
    actions = ACTIONS[query_travel > 0]
    if not actions.size:
        return None
    data_travel = np.sqrt(REGRET_PART * math.log(max(2, size.universe)) / _cost_of_travel(actions))
    whole = np.ones_like(actions)
    density = real(setting.options, "density", 1.0) * whole
    sketch = Sketch(RECORDS * whole, actions, density, data_travel, query_travel[query_travel > 0])
    errors = unprotected_error(sketch, size)
    place = int(np.argmin(errors))
    return Proposal("sampled", sketch.at(place), float(errors[place]), ROUNDS)
