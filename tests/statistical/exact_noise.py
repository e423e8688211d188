"""The exact law of what a mechanism of plain noise delivers: its run, once for every outcome of its noise."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from harness.answers import flat
from harness.exact_game import Law
from numpy.typing import NDArray
from scipy.special import logsumexp
from statistical.exact_pipeline import SEED, Choices, Pair, enumerated, every_run

from equipoise.accounting import DELTA_UNIT, RHO_UNIT, Cost
from equipoise.model.rounds import MechanismPlan
from equipoise.queries.workload_compiler import CompiledWorkload
from equipoise_server.datasets.dense_counts import DenseCounts
from equipoise_server.mechanisms.interface import Mechanism, PublicParameters

ORDERS = (1.5, 2.0, 4.0, 16.0)
TINY = 1e-9  # far above what doubles, and tails that are taken together, can do here


def noise_law(
    mechanism: Mechanism,
    setting: PublicParameters,
    plan: MechanismPlan,
    histogram: NDArray[np.int64],
    workloads: Mapping[str, CompiledWorkload],
    viewers: Sequence[str],
    reach: int,
) -> Law:
    """The law of the viewers' values, methods and intervals. Noise beyond `reach` is taken together there."""

    def program(choices: Choices) -> tuple[int, ...]:
        with enumerated(choices, reach):
            outcome = mechanism.run(
                setting, plan, DenseCounts(histogram, setting.attributes), workloads, SEED, lambda *_: None
            )
        told = (outcome.answers[name] for name in viewers)
        return tuple(number for each in told for number in flat(each))

    law: Law = {}
    for outcome, chance in every_run(program):
        law[outcome] = law.get(outcome, 0.0) + chance
    return law


def renyi(pair: Pair, order: float) -> float:
    """The larger of both Renyi divergences."""
    seen = (pair.ours > 0) & (pair.theirs > 0)
    ours, theirs = np.log(pair.ours[seen]), np.log(pair.theirs[seen])
    both = ((ours, theirs), (theirs, ours))
    return max(float(logsumexp(order * one + (1 - order) * other)) for one, other in both) / (order - 1)


def keeps_to(pair: Pair, cost: Cost) -> bool:
    """Whether two laws are as close as a charge says that is a rho alone, or a pure epsilon alone."""
    if cost.epsilon:
        return not cost.rho and pair.delta(cost.epsilon / RHO_UNIT) <= cost.delta / DELTA_UNIT + TINY
    return all(renyi(pair, order) <= order * cost.rho / RHO_UNIT * (1 + TINY) for order in ORDERS)


def use_of(pair: Pair, cost: Cost) -> float:
    """What part of such a charge the two laws use: of its epsilon, or of its rho at the best order."""
    if cost.epsilon:
        return pair.epsilon(TINY) / (cost.epsilon / RHO_UNIT)
    return max(renyi(pair, order) / order for order in ORDERS) / (cost.rho / RHO_UNIT)
