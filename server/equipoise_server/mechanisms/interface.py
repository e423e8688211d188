"""The interface of every round mechanism: a plan from public facts, and a run on private data.

Public facts are fields (`PublicParameters`, `MechanismPlan`); private facts are arguments of `run`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Protocol

from equipoise.model.accounts import Budget
from equipoise.model.results import Answers
from equipoise.model.rounds import MechanismPlan, Share
from equipoise.model.synopsis import Synopsis
from equipoise.queries import fixed_point
from equipoise.queries.workload_compiler import CompiledWorkload
from equipoise_server.datasets.counts import Counts
from equipoise_server.datasets.universe import is_enumerable

GRID_BITS = fixed_point.GRID_BITS  # answers and intervals are published in units of 2^-40

OnStep = Callable[[str, int, int], None]  # phase, steps done, steps in all


def unfollowed(phase: str, done: int, total: int) -> None:
    """Report to nobody that `done` of `total` steps of a `phase` are done."""


@dataclass(frozen=True)
class PublicParameters:
    """The public parameters of a round; a plan depends on nothing else.

    Attributes:
        records: `n`, the number of records in the table: those of all persons.
        universe_size: `|X|`, the number of possible records, of any size.
        shares: each analyst's declared share.
        unit: what the analysts' guarantee protects, "query" or "analyst".
        data_budget: the round's budget of data privacy.
        analyst_budget: the budget of analyst privacy. An infinite epsilon drops the analysts' protection:
            simulations may do that, rounds never do.
        beta: the probability with which any truth may lie outside its interval.
        options: what the operator forces, by the option's name.
        attributes: the number of categories of each attribute, in the schema's order. Empty where only the
            universe's size is known; a mechanism that measures tables of attributes cannot be planned then.
        ordered: the places of attributes whose categories have an order, ascending.
        measured: of a run that answers from a measurement made before: the numbers that were released of it. No
            plan depends on them; the options have their digest.
        person_records: how many records every person in the table has. Mechanisms plan for one; `persons` plans for
            more.
        sums: whether statements are expected to be sums: errors are those of sums then, where they differ.
    """

    records: int
    universe_size: int
    shares: tuple[Share, ...]
    unit: str
    data_budget: Budget
    analyst_budget: Budget
    beta: float
    options: Mapping[str, object]
    attributes: tuple[int, ...] = ()
    ordered: tuple[int, ...] = ()
    measured: bytes = b""
    person_records: int = 1
    sums: bool = False

    @property
    def protects_analysts(self) -> bool:
        """Whether the analysts are protected: their budget is finite."""
        return math.isfinite(self.analyst_budget.epsilon)

    @property
    def axes(self) -> tuple[int, ...]:
        """The sizes of all axes of the universe: of its attributes, or of one axis where these are not known."""
        return self.attributes or (self.universe_size,)

    @property
    def enumerable(self) -> bool:
        """Whether a list of all possible records can be held."""
        return is_enumerable(self.attributes, self.universe_size)

    @cached_property
    def queries(self) -> int:
        """`k`: the queries of all shares. Cached, because plans need it often and there may be many shares."""
        return sum(share.queries for share in self.shares)

    @cached_property
    def statements(self) -> int:
        """The statements of all shares."""
        return sum(share.statements for share in self.shares)

    @cached_property
    def largest_share(self) -> int:
        """The queries of the largest share."""
        return max(share.queries for share in self.shares)

    @cached_property
    def largest_support(self) -> int:
        """The largest support of any share, at most half of the universe; an undeclared support counts as half."""
        half = self.universe_size // 2
        return max(min(share.support or half, half) for share in self.shares)


@dataclass(frozen=True)
class Outcome:
    """The result of a run: the answers of every analyst, and the synopsis, which is empty where there is none.

    `measured`: the numbers of a measurement, for later rounds (`Measured.to_bytes`); empty of any other round.
    """

    answers: Mapping[str, Answers]
    synopsis: Synopsis = field(default_factory=Synopsis)
    measured: bytes = b""


class Mechanism(Protocol):
    """A mechanism that answers rounds. Stateless: it depends on its arguments alone."""

    @property
    def name(self) -> str:
        """The name by which operators choose the mechanism."""
        ...

    @property
    def fitted(self) -> bool:
        """Whether answers come from a distribution that is fitted to noisy measurements in floating point.

        The last digits of floats differ between versions of libraries, so such answers are replayed to a tolerance.
        """
        ...

    def plan(self, setting: PublicParameters) -> MechanismPlan:
        """Plan a round: compute parameters, costs and half-widths from public facts alone.

        Raises:
            InvalidArgument: the mechanism cannot serve this setting, or does not have an option.
            BudgetExhausted: a budget is too small.
        """
        ...

    def run(
        self,
        setting: PublicParameters,
        plan: MechanismPlan,
        data: Counts,
        workloads: Mapping[str, CompiledWorkload],
        seed: bytes,
        progress: OnStep,
    ) -> Outcome:
        """Return the answers. A pure function: the same arguments give the same answers.

        Args:
            setting: the public parameters of the plan.
            plan: what `plan` returned for that setting.
            data: the table's counts.
            workloads: one entry for each share whose analyst submitted; other analysts get no answers.
            seed: the round's secret seed, from which all noise is drawn.
            progress: called with the phase, the steps done, and the steps in all.

        Raises:
            ValueError: the data or a workload are not what was planned for.
        """
        ...
