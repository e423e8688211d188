"""A simple model of accounts, and of the rounds that charge them."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from dp_accounting.rdp.rdp_privacy_accountant import compute_epsilon

from equipoise.accounting import DELTA_UNIT, RHO_UNIT, Cost, charge_at, events_from_json
from equipoise.model.rounds import MechanismPlan
from equipoise_server.conversion import epsilon_for
from equipoise_server.ledger.caps import Cap


@dataclass
class Account:
    """The model of an account: what each round has on it."""

    sums: bool
    cap: Cap
    reserved: dict[str, Cost] = field(default_factory=dict)
    spent: dict[str, Cost] = field(default_factory=dict)

    def total(self, costs: list[Cost]) -> Cost:
        """All costs together, or the one with the largest epsilon."""
        if self.sums:
            return sum(costs, Cost())
        return max(costs, key=lambda cost: (self.epsilon(cost), cost.delta), default=Cost())

    def epsilon(self, total: Cost) -> float:
        """Epsilon at the cap's delta: at the account's order, or of one round by itself."""
        if self.cap.order is None:
            return epsilon_for(total, self.cap.delta)
        left = self.cap.delta - total.delta / DELTA_UNIT
        return float(compute_epsilon([self.cap.order], [total.divergence / RHO_UNIT], left)[0])

    @property
    def committed(self) -> Cost:
        """What counts against the cap."""
        return self.total([*self.spent.values(), *self.reserved.values()])

    def takes(self, costs: list[Cost]) -> bool:
        """Whether all of these charges could be added, one after the other."""
        return self.holds(sum(costs, self.committed)) if self.sums else all(map(self.holds, costs))

    def holds(self, total: Cost) -> bool:
        """Whether a total, or one round by itself, is within the cap; a total in each of the cap's halves."""
        if self.cap.order is None:
            return self.epsilon(total) <= self.cap.epsilon
        half = self.cap.delta / 2
        counted = replace(total, delta=round(half * DELTA_UNIT))
        return total.delta <= half * DELTA_UNIT and self.epsilon(counted) <= self.cap.epsilon


def analyst_charges(plan: MechanismPlan, unit: str, order: float) -> dict[str, Cost]:
    """What a plan costs each analyst, by the unit that an account counts; `order`: of accounts of analysts."""
    charges = {"query": plan.charged_analyst_cost}
    if unit == "analyst":
        charges["analyst"] = charge_at(events_from_json(plan.analyst_events), order)
    return charges


@dataclass
class Round:
    """The model of a round."""

    costs: dict[str, Cost]
    state: str = "open"
    complete: bool = False
    withdrawn: bool = False
