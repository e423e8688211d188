"""The exact laws of what `pooled` releases on a tiny instance: the noisy demand, the tables, and what others see.

Everything calls the code that is shipped; only the samplers are replaced, by every outcome of their laws in turn.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from unittest.mock import patch

import numpy as np
from harness.answers import half_widths, misses_shortened
from harness.exact_game import Law
from numpy.typing import NDArray
from statistical.exact_pipeline import SEED, Pair

from equipoise.model.accounts import Budget
from equipoise.model.rounds import MechanismPlan, Share
from equipoise.queries.marginal_tables import Axes
from equipoise.queries.schema import Schema
from equipoise.queries.statements import Marginal, Statement
from equipoise.queries.workload_compiler import CompiledWorkload, compile_workload
from equipoise_server.datasets.dense_counts import DenseCounts
from equipoise_server.mechanisms.interface import PublicParameters
from equipoise_server.mechanisms.pooled import mechanism
from equipoise_server.mechanisms.pooled.measured import measure
from equipoise_server.mechanisms.pooled.plan import PooledParameters
from equipoise_server.randomness.discrete_gaussian import DiscreteGaussian
from equipoise_server.randomness.discrete_laplace import DiscreteLaplace

SCHEMA = Schema.from_json('{"x": 2, "y": 2}')
ASKS: dict[str, Statement] = {name: Marginal((name,)) for name in SCHEMA.names}
OPTIONS: dict[str, object] = {"ways": 1, "synopsis": 16, "floor": 0.3, "residuals": 0}
NEGLIGIBLE = 1e-7  # chances below it are left out, and their sum is added to delta


def asking(names: str) -> CompiledWorkload:
    """A workload of the tables over single attributes: "xy" asks for two; "" is an empty one."""
    return compile_workload([ASKS[name] for name in names], SCHEMA)


def tiny(unit: str, shares: Mapping[str, int], records: int, data: Budget, analyst: Budget) -> PublicParameters:
    """Two attributes of two categories, and the family of their two tables."""
    return PublicParameters(
        records=records,
        universe_size=4,
        shares=tuple(Share(name, count, 2 * count) for name, count in shares.items()),
        unit=unit,
        data_budget=data,
        analyst_budget=analyst,
        beta=0.1,
        options=OPTIONS,
        attributes=SCHEMA.sizes,
    )


def noise_law(noise: DiscreteLaplace | DiscreteGaussian, least: float) -> dict[int, float]:
    """The chance of every integer that has at least the chance `least`."""
    if isinstance(noise, DiscreteGaussian):
        reach = math.ceil(8 * math.sqrt(noise.variance)) + 1
        masses = {z: math.exp(-z * z / 2 / float(noise.variance)) for z in range(-reach, reach + 1)}
    else:
        reach = math.ceil(30 / noise.rate)
        masses = {z: math.exp(-abs(z) * float(noise.rate)) for z in range(-reach, reach + 1)}
    total = sum(masses.values())
    return {z: mass / total for z, mass in masses.items() if mass / total >= least}


@contextmanager
def drawn(*noises: Sequence[int]) -> Iterator[None]:
    """Every draw gives the next of `noises`, whatever its law; zeros when they are used up."""
    left = list(noises)

    def draw(_: object, count: int, __: object) -> NDArray[np.int64]:
        given = left.pop(0) if left else [0] * count
        assert len(given) == count
        return np.array(given, dtype=np.int64)

    with patch.object(DiscreteLaplace, "draw", draw), patch.object(DiscreteGaussian, "draw", draw):
        yield


@dataclass(frozen=True)
class Round:
    """A planned round and its private inputs."""

    setting: PublicParameters
    plan: MechanismPlan
    histogram: NDArray[np.int64]
    workloads: Mapping[str, CompiledWorkload]

    @property
    def parameters(self) -> PooledParameters:
        """The plan's."""
        return PooledParameters.from_json(self.plan.parameters)

    def demand_law(self, least: float = NEGLIGIBLE) -> Law:
        """The law of the noisy votes."""
        parameters, law = self.parameters, Law()
        for noise, chance in self.demand_noises(least):
            with drawn(noise):
                counts = mechanism.noisy_demand(parameters, self.setting, self.workloads, SEED)
            law[tuple(counts.tolist())] = law.get(tuple(counts.tolist()), 0.0) + chance
        return law

    def demand_noises(self, least: float) -> Iterator[tuple[tuple[int, ...], float]]:
        """Every noise on all votes, and its chance."""
        demand = self.parameters.demand
        assert demand.noise is not None
        law = noise_law(demand.noise.law(demand.l1_sensitivity), least)  # type: ignore[arg-type]
        for noise in itertools.product(law, repeat=len(self.parameters.family.sets)):
            yield noise, math.prod(law[z] for z in noise)

    def tables_law(self, rhos: Mapping[Axes, Fraction]) -> list[Law]:
        """The law of every measured table, given the demand: independent, as they read different streams."""
        laws = []
        for axes, rho in rhos.items():
            variance = measure(DenseCounts(self.histogram, SCHEMA.sizes), {axes: rho}, SEED)[0].variance
            noise, law = noise_law(DiscreteGaussian(variance), 1e-5), Law()
            for pair in itertools.product(noise, repeat=2):
                with drawn(pair):
                    (table,) = measure(DenseCounts(self.histogram, SCHEMA.sizes), {axes: rho}, SEED)
                law[tuple(table.counts.tolist())] = noise[pair[0]] * noise[pair[1]]
            laws.append(law)
        return laws

    def seen_law(self, viewers: Sequence[str], least: float) -> Law:
        """The law of synopsis and viewers' answers, without the tables' noise, whose law the demand fixes."""
        law = Law()
        for noise, chance in self.demand_noises(least):
            with drawn(noise):
                outcome = mechanism.Pooled().run(
                    self.setting,
                    self.plan,
                    DenseCounts(self.histogram, self.setting.attributes),
                    self.workloads,
                    SEED,
                    lambda *_: None,
                )
            seen = [outcome.synopsis.cells, *(outcome.answers[name].values for name in viewers)]
            seen += [end for name in viewers for end in (outcome.answers[name].lows, outcome.answers[name].highs)]
            key = tuple(np.concatenate(seen).tolist())
            law[key] = law.get(key, 0.0) + chance
        return law


def planned(setting: PublicParameters, counts: Sequence[int], asked: Mapping[str, str]) -> Round:
    """A round on so many records in each of the four cells, of analysts who ask for these tables."""
    histogram = np.array(counts, dtype=np.int64)
    workloads = {name: asking(own) for name, own in asked.items()}
    return Round(setting, mechanism.Pooled().plan(setting), histogram, workloads)


def rounds_missed(played: Round, rounds: int, part: float) -> tuple[int, int]:
    """In how many rounds a truth lies outside an interval, and outside what `part` of its length leaves of it.

    Args:
        played: the round; every answer must be certified, with a half-width of at most what its plan promises.
        rounds: how many are played, each with a seed of its own.
        part: more than 0, less than 1.

    Returns:
        The number of rounds with a truth outside an interval, and the number with one outside a shortened interval.
    """
    missed, missed_shortened = 0, 0
    records = played.setting.records
    truths = {name: asked.counts(played.histogram) / records for name, asked in played.workloads.items()}
    table = DenseCounts(played.histogram, played.setting.attributes)
    for number in range(rounds):
        outcome = mechanism.Pooled().run(
            played.setting, played.plan, table, played.workloads, number.to_bytes(32), lambda *_: None
        )
        for answers in outcome.answers.values():
            assert answers.certified.all()
            assert half_widths(answers).max() <= played.plan.max_half_width
        missed += any(answers.misses(truths[name]).any() for name, answers in outcome.answers.items())
        missed_shortened += any(
            misses_shortened(answers, truths[name], part).any() for name, answers in outcome.answers.items()
        )
    return missed, missed_shortened


def delta_between(law: Law, other: Law, epsilon: float) -> float:
    """The hockey-stick divergence, at least: the mass that was left out is added."""
    return Pair.of(law, other).delta(epsilon) + max(0.0, 1 - sum(law.values()), 1 - sum(other.values()))


def tables_epsilon(one: Round, other: Round, rhos: Mapping[Axes, Fraction], delta: float) -> float:
    """The epsilon at `delta` between the laws of all tables together, on two data sets, given the demand."""
    losses, chances = np.zeros(1), np.ones(1)
    for ours, theirs in zip(one.tables_law(rhos), other.tables_law(rhos), strict=True):
        keys = [key for key in ours if key in theirs]
        loss = np.array([math.log(ours[key] / theirs[key]) for key in keys])
        chance = np.array([ours[key] for key in keys])
        losses = np.add.outer(losses, loss).reshape(-1)
        chances = np.multiply.outer(chances, chance).reshape(-1)
        # Equal losses are taken together, which loses nothing.
        losses, places = np.unique(np.round(losses, 9), return_inverse=True)
        together = np.zeros(len(losses))
        np.add.at(together, places.reshape(-1), chances)
        chances = together
    left_out = 1 - float(chances.sum())
    low, high = 0.0, 64.0
    while high - low > 1e-4 * high:
        middle = (low + high) / 2
        divergence = float((chances * np.maximum(0, -np.expm1(middle - losses))).sum())
        low, high = (low, middle) if divergence + left_out <= delta else (middle, high)
    return high
