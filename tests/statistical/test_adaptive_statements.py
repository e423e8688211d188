"""Sessions let whoever asks choose each statement by all that was answered before. That gains nothing.

Every way of choosing among neighbouring scores is enumerated, with the exact law of each; and the code that
sessions run has that law where the next score is chosen by the signs before it.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping
from fractions import Fraction
from functools import partial
from itertools import product

import numpy as np
import pytest
from harness.exact_game import Law, hockey_stick
from numpy.typing import NDArray
from statistical.exact_sparse_vector import NEGATIVE, POSITIVE, UNTESTED, at_least, mass

from equipoise_server.mechanisms.sparse_vector import SequentialSparseVector, SparseVector
from equipoise_server.randomness.stream import KeyedStream

Signs = tuple[int, ...]
Strategy = Mapping[
    Signs, tuple[int, int]
]  # by the signs so far: the next score on either of two neighbouring tables

LENGTH = 3
VECTOR = SparseVector(Fraction(1), 1, 1, 2)
PAIRS = ((0, 1), (1, 0), (2, 1))
HISTORIES = [signs for length in range(LENGTH) for signs in product((NEGATIVE, POSITIVE), repeat=length)]
# Goes after what it has seen: the same again after a positive, the other way round after none.
CHASING: Strategy = {signs: (0, 1) if not signs or signs[-1] == POSITIVE else (1, 0) for signs in HISTORIES}
RUNS = 3_000
REACH = math.ceil(40 / float(VECTOR.threshold_noise.rate))
FRESH = np.array([mass(VECTOR.threshold_noise, noise) for noise in range(-REACH, REACH + 1)])


def above(score: int) -> NDArray[np.float64]:
    """P(positive) at each noise of the threshold."""
    levels = range(VECTOR.threshold - REACH, VECTOR.threshold + REACH + 1)
    return np.array([at_least(VECTOR.test_noise, level - score) for level in levels])


ABOVE = {score: above(score) for score in range(3)}


def law_of(strategy: Strategy, side: int, signs: Signs = (), weights: NDArray[np.float64] = FRESH) -> Law:
    """The law of all signs, where the scores are those of one table. `weights`: of the threshold's noise by now."""
    if signs.count(POSITIVE) == VECTOR.cut_off:
        return {signs + (UNTESTED,) * (LENGTH - len(signs)): float(weights.sum())}
    if len(signs) == LENGTH:
        return {signs: float(weights.sum())}
    positive = weights * ABOVE[strategy[signs][side]]
    return law_of(strategy, side, (*signs, POSITIVE), positive.sum() * FRESH) | law_of(
        strategy, side, (*signs, NEGATIVE), weights - positive
    )


def run(strategy: Strategy, side: int, number: int) -> Signs:
    """What the code of sessions tells whoever chooses so."""
    vector = SequentialSparseVector(
        [VECTOR] * VECTOR.cut_off, partial(KeyedStream.derive, number.to_bytes(32, "big")), "test"
    )
    signs: Signs = ()
    for slot in range(LENGTH):
        if vector.used_up:
            return signs + (UNTESTED,) * (LENGTH - len(signs))
        signs = (*signs, POSITIVE if vector.positive(slot, strategy[signs][side]) else NEGATIVE)
    return signs


def has_the_law(strategy: Strategy, side: int) -> bool:
    """Whether played sessions have the enumerated law, but for what chance allows with a probability of 1e-6."""
    law = law_of(strategy, side)
    seen = Counter(run(strategy, side, number) for number in range(RUNS))
    allowed = math.sqrt(math.log(2 * len(law) / 1e-6) / (2 * RUNS))
    return set(seen) <= set(law) and all(abs(seen[signs] / RUNS - law[signs]) <= allowed for signs in law)


def test_no_way_of_choosing_statements_by_earlier_answers_shows_more_than_is_charged() -> None:
    epsilon = float(VECTOR.cut_off * VECTOR.epsilon)
    reachable = [signs for signs in HISTORIES if signs.count(POSITIVE) < VECTOR.cut_off]
    worst = 0.0
    for chosen in product(PAIRS[:2], repeat=len(reachable)):
        strategy = dict(zip(reachable, chosen, strict=True))
        one, other = law_of(strategy, 0), law_of(strategy, 1)
        assert math.fsum(one.values()) == pytest.approx(1, abs=1e-9)
        assert max(hockey_stick(one, other, epsilon), hockey_stick(other, one, epsilon)) <= 1e-9
        worst = max(worst, *(abs(math.log(one[signs] / other[signs])) for signs in one))
    # Who chooses by the signs gets further than who asks the same whatever is answered.
    fixed = [{signs: pairs[len(signs)] for signs in reachable} for pairs in product(PAIRS[:2], repeat=LENGTH)]
    laws = [(law_of(strategy, 0), law_of(strategy, 1)) for strategy in fixed]
    assert worst >= max(abs(math.log(one[signs] / other[signs])) for one, other in laws for signs in one)
    assert 0.25 * epsilon < worst <= epsilon


@pytest.mark.full
@pytest.mark.parametrize("side", [0, 1])
def test_sessions_whose_statements_are_chosen_by_earlier_answers_have_the_enumerated_law(side: int) -> None:
    assert has_the_law(CHASING, side)


def _one_noise(derive: Callable[..., object]) -> Callable[..., object]:
    return lambda vector, purpose, place: derive(vector, purpose, 0)


@pytest.mark.full
def test_noise_that_is_used_again_for_a_later_statement_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = SequentialSparseVector._stream
    monkeypatch.setattr(SequentialSparseVector, "_stream", _one_noise(stream))
    assert not has_the_law(CHASING, 0)
