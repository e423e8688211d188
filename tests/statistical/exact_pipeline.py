"""The exact law of what the whole `equilibrium` releases on a tiny instance: the synopsis, and everybody's answers.

The game's law comes from `exact_game`. All that follows is the shipped repair, run once for every outcome of its
random choices: only the samplers are replaced, each by the exact law of what it draws.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeVar
from unittest.mock import patch

import numpy as np
from harness.exact_game import Law, released_law
from numpy.typing import NDArray
from statistical.exact_sparse_vector import POSITIVE, UNTESTED, pattern_law

from equipoise.model.results import Answers
from equipoise.model.rounds import MechanismPlan
from equipoise.queries.fixed_point import on_grid
from equipoise.queries.joined_workloads import concatenate
from equipoise.queries.workload_compiler import CompiledWorkload
from equipoise_server.game.equilibrium import Game
from equipoise_server.mechanisms import answers as answers_module
from equipoise_server.mechanisms.equilibrium.mechanism import units_of
from equipoise_server.mechanisms.equilibrium.parameters import EquilibriumParameters
from equipoise_server.mechanisms.interface import PublicParameters
from equipoise_server.mechanisms.repair.statement_repair import RepairParameters, SynopsisCounts, repair
from equipoise_server.mechanisms.sparse_vector import SparseVector
from equipoise_server.randomness.discrete_gaussian import DiscreteGaussian
from equipoise_server.randomness.discrete_laplace import DiscreteLaplace
from equipoise_server.randomness.stream import KeyedStream

Result = TypeVar("Result")
Workloads = Mapping[str, CompiledWorkload]
Histogram = NDArray[np.int64]
SEED = bytes(32)  # never read: every sampler is replaced


class Choices:
    """The random choices of one run: those that `script` knows are given, each further one is its law's first."""

    def __init__(self, script: list[int]) -> None:
        self.script, self.lengths, self.probability = script, list[int](), 1.0

    def choose(self, law: Sequence[float]) -> int:
        """The index of one outcome, out of those with the given probabilities."""
        if len(self.lengths) == len(self.script):
            self.script.append(0)
        chosen = self.script[len(self.lengths)]
        self.lengths.append(len(law))
        self.probability *= law[chosen]
        return chosen


def every_run(program: Callable[[Choices], Result]) -> Iterator[tuple[Result, float]]:
    """What a program gives for every outcome of its choices, and how probable that is."""
    script: list[int] = []
    while True:
        choices = Choices(script)
        yield program(choices), choices.probability
        while script and script[-1] + 1 == choices.lengths[len(script) - 1]:
            script.pop()
        if not script:
            return
        script[-1] += 1


class ChosenStream:
    """In place of a keyed stream: whatever else reads from it would fail."""

    def __init__(self, choices: Choices) -> None:
        self._choices = choices

    def permutation(self, size: int) -> NDArray[np.int64]:
        """A permutation, all equally probable."""
        orders = list(itertools.permutations(range(size)))
        return np.array(orders[self._choices.choose([1 / len(orders)] * len(orders))], dtype=np.int64)


@contextmanager
def enumerated(choices: Choices, records: int) -> Iterator[None]:
    """Replaces the samplers of repair by their laws, and cuts answers: what lies beyond either end is one outcome.

    Counts are between 0 and `records`.
    """

    def detect(
        vector: SparseVector, scores: NDArray[np.int64], order: NDArray[np.int64], _: object
    ) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        law = pattern_law(vector, tuple(scores[order].tolist()), vector.cut_off)
        pattern = np.empty(len(scores), dtype=np.int64)
        pattern[order] = list(law)[choices.choose(list(law.values()))]
        return pattern == POSITIVE, pattern != UNTESTED

    def draw(noise: DiscreteLaplace | DiscreteGaussian, count: int, _: object) -> NDArray[np.int64]:
        values, law = clipped_noise(noise, records)
        return np.array([values[choices.choose(law)] for _ in range(count)], dtype=np.int64)

    with (
        patch.object(KeyedStream, "derive", lambda *_: ChosenStream(choices)),
        patch.object(SparseVector, "detect", detect),
        patch.object(DiscreteLaplace, "draw", draw),
        patch.object(DiscreteGaussian, "draw", draw),
        patch.object(answers_module, "on_grid", lambda counts, total: on_grid(np.clip(counts, 0, total), total)),
    ):
        yield


@lru_cache(maxsize=1024)
def clipped_noise(noise: DiscreteLaplace | DiscreteGaussian, records: int) -> tuple[list[int], list[float]]:
    """Noise on a count that is then kept between 0 and `records`: more than that many either way makes no odds."""
    if isinstance(noise, DiscreteGaussian):
        reach = records + math.ceil(40 * math.sqrt(noise.variance))
        masses = np.exp(np.arange(-reach, reach + 1) ** 2 / (-2 * float(noise.variance)))
        masses /= masses.sum()
        ends = reach - records + 1
        law = [masses[:ends].sum(), *masses[ends:-ends], masses[-ends:].sum()]
        return list(range(-records, records + 1)), [float(mass) for mass in law]
    ratio = math.exp(-float(noise.rate))
    inner = [(1 - ratio) / (1 + ratio) * ratio ** abs(value) for value in range(1 - records, records)]
    tail = ratio**records / (1 + ratio)
    return list(range(-records, records + 1)), [tail, *inner, tail]


def repair_law(
    parameters: RepairParameters,
    analyst: str,
    workload: CompiledWorkload,
    counts: NDArray[np.int64],
    records: int,
    synopsis: SynopsisCounts,
) -> Law:
    """The law of one analyst's values and methods, given the synopsis."""

    def program(choices: Choices) -> Answers:
        with enumerated(choices, records):
            return repair(parameters, analyst, workload, counts, records, synopsis, SEED)

    law: Law = {}
    for answers, chance in every_run(program):
        key = (*answers.values.tolist(), *answers.methods.tolist())
        law[key] = law.get(key, 0.0) + chance
    return law


def pipeline_law(
    setting: PublicParameters,
    plan: MechanismPlan,
    histogram: Histogram,
    workloads: Workloads,
    viewers: Sequence[str] | None = None,
) -> Law:
    """The joint law of the synopsis and of what `viewers` (by default everybody) get: values and methods."""
    parameters = EquilibriumParameters.from_json(plan.parameters)
    assert isinstance(parameters.repair, RepairParameters)
    present = {share.analyst: workloads[share.analyst] for share in setting.shares if share.analyst in workloads}
    together = concatenate(list(present.values()))
    units = units_of(setting, together, list(present.values()))
    counts = together.counts(histogram)
    game = Game(parameters.played, together, units, counts, setting.records)
    known: dict[tuple[str, tuple[int, ...]], Law] = {}
    law: Law = {}
    for records, chance in released_law(game, setting.universe_size).items():
        joint: Law = {records: chance}
        on_synopsis, start = together.record_counts(np.array(records)), 0
        for analyst, workload in present.items():
            own = slice(start, start := start + workload.query_count)
            if viewers is not None and analyst not in viewers:
                continue
            key = (analyst, tuple(on_synopsis[own].tolist()))
            if key not in known:
                synopsis = SynopsisCounts(on_synopsis[own], len(records))
                known[key] = repair_law(
                    parameters.repair, analyst, workload, counts[own], setting.records, synopsis
                )
            joint = {
                seen + answers: mass * part for seen, mass in joint.items() for answers, part in known[key].items()
            }
        law |= joint
    return law


@dataclass(frozen=True)
class Pair:
    """Two laws over the same outcomes: float64[outcomes] each."""

    ours: NDArray[np.float64]
    theirs: NDArray[np.float64]

    @staticmethod
    def of(law: Law, other: Law) -> Pair:
        """Both laws in one order of the outcomes."""
        keys = list(law.keys() | other.keys())
        ours, theirs = (np.array([each.get(key, 0.0) for key in keys]) for each in (law, other))
        return Pair(ours, theirs)

    def delta(self, epsilon: float) -> float:
        """The smallest delta for which they are (epsilon, delta)-close both ways: the hockey-stick divergence."""
        grown, both = math.exp(epsilon), ((self.ours, self.theirs), (self.theirs, self.ours))
        return max(float(np.maximum(one - grown * other, 0).sum()) for one, other in both)

    def epsilon(self, delta: float) -> float:
        """The smallest epsilon for which they are (epsilon, delta)-close both ways, to 10^-4 of it."""
        if self.delta(0.0) <= delta:
            return 0.0
        low, high = 0.0, 64.0
        while high - low > 1e-4 * high:
            middle = (low + high) / 2
            low, high = (low, middle) if self.delta(middle) <= delta else (middle, high)
        return low
