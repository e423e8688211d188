"""The exact law of what a session in epochs shows: the shipped session, its draws replaced by all their outcomes.

A session is played again for every sequence of outcomes. Of a test only its sign is an outcome, and of a count
test whether it ends the epoch: their probabilities are sums over the shipped laws, over the target's noise as far
as it is still possible.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from functools import cache

import numpy as np
from harness.exact_game import Law
from harness.exponential_law import exponential_law
from numpy.typing import NDArray
from statistical.exact_sparse_vector import at_least

from equipoise.model.results import Answers
from equipoise_server.mechanisms.epochs.epochs import BLOCK, EpochParameters, Epochs
from equipoise_server.mechanisms.epochs.question import Question
from equipoise_server.mechanisms.noise_calibration import NoiseDistribution
from equipoise_server.randomness.discrete_gaussian import DiscreteGaussian
from equipoise_server.randomness.discrete_laplace import DiscreteLaplace

FAR = 1 << 40  # noise that decides a comparison for certain
LOST = 1e-60  # outcomes that are rarer are left out
BEYOND = 5  # records below 0 and above all of them, from which on all answers with noise are one outcome


class Remembered:
    """A question that works everything out once."""

    def __init__(self, question: Question) -> None:
        self.l1_sensitivity, self._truth, self._question = question.l1_sensitivity, question.truth(), question
        self._held: dict[bytes, NDArray[np.int64]] = {}

    def truth(self) -> NDArray[np.int64]:
        return self._truth

    def multiset_answers(self, multiset: NDArray[np.int64]) -> NDArray[np.int64]:
        key = multiset.tobytes()
        if key not in self._held:
            self._held[key] = self._question.multiset_answers(multiset)
        return self._held[key]

    def prior_answers(self, expected: NDArray[np.int64]) -> Answers | None:
        return self._question.prior_answers(expected)

    def direction(self, signs: NDArray[np.int64]) -> NDArray[np.int64]:
        return self._question.direction(signs)


class Branches:
    """All sequences of choices, one after another; `chance` is that of the present one."""

    def __init__(self) -> None:
        self._path: list[int] = []
        self._sizes: list[int] = []
        self._at, self.chance = 0, 1.0

    def choose(self, chances: Sequence[float], lost: float = LOST) -> int:
        """One of the outcomes with a chance above `lost`."""
        possible = [place for place, chance in enumerate(chances) if chance > lost]
        if self._at == len(self._path):
            self._path.append(0)
            self._sizes.append(len(possible))
        place = possible[self._path[self._at]]
        self._at += 1
        self.chance *= chances[place]
        return place

    def next(self) -> bool:
        """Goes on to the next sequence; false where there is none."""
        while self._path and self._path[-1] + 1 == self._sizes[-1]:
            self._path.pop()
            self._sizes.pop()
        if self._path:
            self._path[-1] += 1
        self._at, self.chance = 0, 1.0
        return bool(self._path)


class EnumeratedEpochs(Epochs):
    """The shipped session with every draw a choice."""

    noisy_target = True

    def __init__(self, parameters: EpochParameters, universe: int, slots: int, branches: Branches) -> None:
        self._branches, self.truth = branches, np.zeros(0, dtype=np.int64)
        self._ends = laplace_law(parameters.count_noise)
        super().__init__(parameters, universe, slots, bytes(32))

    def _positive(self, slot: int, score: int) -> bool:  # noqa: ARG002
        law, needed = self._parameters.test_noise, self._parameters.threshold - score
        chance = at_least(law, needed)
        return self._branches.choose([1 - chance, chance]) == 1

    def _answer_noise(self, slot: int, law: NoiseDistribution, cells: int) -> NDArray[np.int64]:  # noqa: ARG002
        assert isinstance(law, DiscreteGaussian)
        noise = np.zeros(cells, dtype=np.int64)
        for cell, count in enumerate(self.truth.tolist()):
            told = told_law(law, count, self._parameters.scale.units)
            noise[cell] = list(told)[self._branches.choose(list(told.values()), lost=0.0)]
        return noise

    def _drawn_records(self) -> NDArray[np.int64]:
        law = records_law(self._exponents.tobytes())
        return np.array([self._branches.choose(law) for _ in range(self._parameters.records)])

    def _drawn_target(self) -> int:
        self._targets = self._ends if self.noisy_target else {0: 1.0}
        return self._parameters.target

    def _count_noise(self, block: int) -> NDArray[np.int64]:  # noqa: ARG002
        """Noise that ends the epoch after the next slot, or does not."""
        ends = {z: at_least(self._parameters.count_noise, self._target - self._afresh + z) for z in self._targets}
        chance = sum(self._targets[z] * ends[z] for z in ends) if self.tested else 0.0
        ended = self._branches.choose([1 - chance, chance]) == 1
        if not ended:
            self._targets = {z: self._targets[z] * (1 - ends[z] * self.tested) / (1 - chance) for z in ends}
        return np.full(BLOCK, FAR if ended else -FAR)

    def pass_to(self, stop: int) -> None:
        assert stop <= self._next + 1, "slots are passed one by one here"
        super().pass_to(stop)

    @property
    def tested(self) -> bool:
        """Whether the count is tested after the next slot."""
        return True


@cache
def laplace_law(law: DiscreteLaplace) -> dict[int, float]:
    """The probability of each integer, but for the rare ones."""
    return {z: float(chance) for z, chance in law.law().items() if chance > 1e-12}


@cache
def records_law(exponents: bytes) -> list[float]:
    """The law of one record of a hypothesis."""
    return [float(chance) for chance in exponential_law(np.frombuffer(exponents, dtype=np.int64))]


@cache
def told_law(law: DiscreteGaussian, count: int, units: int) -> dict[int, float]:
    """The law of the noise that is told with a count between 0 and `units`.

    Sessions do not cut answers at 0 and `units`. Only those of more than `BEYOND` records beyond either are one
    outcome here, so that neighbouring counts have the same outcomes.
    """
    least, most = -BEYOND, units + BEYOND
    reach = math.ceil(16 * math.sqrt(float(law.variance))) + most - least
    weights = {z: math.exp(-z * z / (2 * float(law.variance))) for z in range(-reach, reach + 1)}
    total = math.fsum(weights.values())
    told: dict[int, float] = defaultdict(float)
    for z, weight in weights.items():
        told[min(max(count + z, least), most) - count] += weight / total
    return told


def session_law(
    parameters: EpochParameters,
    universe: int,
    questions: Sequence[Question | None],
    hidden: int | None = None,
    kind: type[EnumeratedEpochs] = EnumeratedEpochs,
) -> Law:
    """The law of all answers, of every hypothesis, and of when each epoch ended. `questions`: slot by slot.

    `hidden`: the slot whose answer is not seen.
    """
    law: dict[tuple[int, ...], float] = defaultdict(float)
    branches = Branches()
    known = [None if question is None else Remembered(question) for question in questions]
    while True:
        session = kind(parameters, universe, len(questions), branches)
        shown: list[int] = []
        for slot, question in enumerate(known):
            if question is None:
                session.pass_to(slot + 1)
            else:
                session.truth = question.truth()
                answers = session.answer(slot, question)
                if slot != hidden:
                    shown += [*answers.values.tolist(), int(answers.methods[0])]
            shown += [session._epoch, *session._multiset.tolist()]
        law[tuple(shown)] += branches.chance
        if not branches.next():
            return dict(law)
