"""The sparse vector's numeric variant, and the three variants of 001 (slide 24) that are not private.

Each is found out twice: by its exact law on two neighbours, and by an audit of the shipped code with the fault
switched on. The audits raise a false alarm with probability at most 1e-6 in all.
"""

from __future__ import annotations

import math
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from harness.audit_size import SIZES, AuditSize
from harness.exact_game import Law, hockey_stick
from numpy.typing import NDArray
from statistical.exact_sparse_vector import NEGATIVE, POSITIVE, at_least, exact_law, mass

from equipoise.accounting import laplace_rho, sparse_vector_rho
from equipoise_lab.audit.clopper_pearson import Certificate, Outcome, certify, power
from equipoise_server.mechanisms import sparse_vector
from equipoise_server.mechanisms.sparse_vector import (
    NumericSparseVector,
    SequentialSparseVector,
    SparseVector,
)
from equipoise_server.randomness.discrete_laplace import DiscreteLaplace
from equipoise_server.randomness.stream import KeyedStream

LEVEL = 1e-6 / 6
Scores = tuple[int, ...]

# No stop and no noise on the scores: the threshold lies between two of them, which tells either side apart.
STEPS: tuple[Scores, Scores] = ((*range(-4, 4), *range(-3, 5)), (*range(-3, 5), *range(-4, 4)))
# No stop: every further test tells as much again.
HALVES: tuple[Scores, Scores] = ((0,) * 100 + (1,) * 100, (1,) * 100 + (0,) * 100)
# The noisy score told: a low one says that the threshold was lower still, as all that was tested before heard.
LAST: tuple[Scores, Scores] = ((-1,) * 6 + (0,), (0,) * 6 + (-1,))
LOW = 0  # noisy scores up to this one, in the last variant


def one_place(epsilon: int, threshold: int = 0) -> SparseVector:
    """Scores of sensitivity 1, one positive: epsilon-DP as it is shipped."""
    return SparseVector(Fraction(epsilon), 1, threshold, 1)


def numeric_law(numeric: NumericSparseVector, scores: Scores) -> Law:
    """The law of the signs and of every answer, as the guarantee has it: fresh noise for each positive."""
    law: Law = {}
    for signs, chance in exact_law(numeric.detection, scores, numeric.detection.cut_off).items():
        outcomes: Law = {(): 1.0}
        for sign, score in zip(signs, scores, strict=True):
            if sign == POSITIVE:
                outcomes = {
                    (*told, score + z): part * float(one)
                    for told, part in outcomes.items()
                    for z, one in numeric.answer_noise.law().items()
                    if one > 1e-12
                }
        law |= {(*signs, *told): chance * part for told, part in outcomes.items()}
    return law


def reach(noise: DiscreteLaplace) -> range:
    """All noise that has any weight."""
    most = math.ceil(40 / float(noise.rate))
    return range(-most, most + 1)


def law_without_stop(vector: SparseVector, scores: Scores, noisy: bool) -> Law:
    """The law of the positives in the first and the second half, where one noisy threshold serves all tests."""
    half, law = len(scores) // 2, Law()
    for z in reach(vector.threshold_noise):
        sides = []
        for side in (scores[:half], scores[half:]):
            hits = np.ones(1)
            for score in side:
                needed = vector.threshold + z - score
                above = at_least(vector.test_noise, needed) if noisy else float(needed <= 0)
                hits = np.convolve(hits, [1 - above, above])
            sides.append(hits)
        joint = mass(vector.threshold_noise, z) * np.multiply.outer(*sides)
        for first, second in zip(*np.nonzero(joint), strict=True):
            outcome = (int(first), int(second))
            law[outcome] = law.get(outcome, 0.0) + float(joint[first, second])
    return law


def law_of_told_score(vector: SparseVector, scores: Scores) -> Law:
    """The law of the noisy score that is told where the last of `scores` is the only positive."""
    law = Law()
    for z in reach(vector.threshold_noise):
        level = vector.threshold + z
        chance = mass(vector.threshold_noise, z)
        for score in scores[:-1]:
            chance *= 1 - at_least(vector.test_noise, level - score)
        for noise in reach(vector.test_noise):
            if scores[-1] + noise >= level:
                told = (scores[-1] + noise,)
                law[told] = law.get(told, 0.0) + chance * mass(vector.test_noise, noise)
    return law


def audit(
    vector: SparseVector, pair: tuple[Scores, Scores], runs: int, numeric: Fraction | None = None
) -> Certificate:
    """What the shipped code's outcomes certify, with numeric answers if they have an epsilon."""

    def sampler(side: int, run: int) -> Outcome:
        scores = np.array(pair[side], dtype=np.int64)
        order, seed = np.arange(len(scores)), (2 * run + side).to_bytes(32)
        tests, answers = (KeyedStream.derive(seed, label) for label in ("tests", "answers"))
        if numeric is None:
            positive, _ = vector.detect(scores, order, tests)
            told: tuple[int, ...] = ()
        else:
            variant = NumericSparseVector(vector, numeric)
            positive, _, answered = variant.answer(scores, scores, order, tests, answers)
            told = tuple(answered.tolist())
        half = len(scores) // 2
        # By how much the halves differ tells most where no test is the last, and else the first positive.
        return int(positive[half:].sum()) - int(positive[:half].sum()), (int(positive.argmax()), told)

    return certify(lambda run: sampler(0, run), lambda run: sampler(1, run), runs, 0.0, LEVEL)


@pytest.mark.full
def test_the_guarantee_is_what_is_enumerated() -> None:
    written = " ".join(str(NumericSparseVector.__doc__).split())
    assert "`cut_off (epsilon + answer_epsilon)`-DP" in written
    assert "`cut_off (epsilon^2 + answer_epsilon^2) / 2`-zCDP" in written
    numeric = NumericSparseVector(SparseVector(Fraction(1), 1, 1, 2), Fraction(2))
    charged = sparse_vector_rho(Fraction(1), 2) + laplace_rho(Fraction(2), 2)
    assert charged == Fraction(2 * (1 + 4), 2)
    worst = 0.0
    for scores, other in (((0, 0, 2), (1, 1, 1)), ((1, 1, 1), (0, 2, 0))):
        one, two = numeric_law(numeric, scores), numeric_law(numeric, other)
        for first, second in ((one, two), (two, one)):
            assert hockey_stick(first, second, 2 * (1 + 2)) <= 1e-6
            worst = max(worst, hockey_stick(first, second, 1.5 * (1 + 2)))
    assert worst > 1e-3


def test_each_slot_is_tested_once_and_slots_ascend() -> None:
    """A slot that is tested again reads the same noise: the two results tell the difference of two scores."""
    tests = SequentialSparseVector(
        [SparseVector(Fraction(1), 1, 1 << 40, 1)],
        lambda *labels: KeyedStream.derive(bytes(32), *labels),
        "test",
    )
    assert not tests.positive(4, 0)
    for slot in (4, 3):
        with pytest.raises(ValueError, match="each slot has one test"):
            tests.positive(slot, 1)
    assert not tests.positive(5, 1)


@pytest.mark.parametrize("sensitivity", [1, 2, 5])
def test_numeric_answers_have_noise_for_what_a_record_moves(sensitivity: int) -> None:
    numeric = NumericSparseVector(SparseVector(Fraction(1), sensitivity, 1, 1), Fraction(1, 2))
    assert numeric.answer_noise.rate * sensitivity == Fraction(1, 2)


def test_the_numeric_sampler_has_the_exact_law() -> None:
    """Within what chance allows with probability 1e-6, over all outcomes that matter."""
    numeric, scores, runs = NumericSparseVector(SparseVector(Fraction(2), 1, 1, 1), Fraction(2)), (0, 2), 4_000
    law, seen = numeric_law(numeric, scores), Counter[tuple[int, ...]]()
    tests, answers = (KeyedStream.derive(bytes(32), label) for label in ("tests", "answers"))
    values = np.array(scores)
    for _ in range(runs):
        positive, tested, told = numeric.answer(values, values, np.arange(2), tests, answers)
        signs = np.where(positive, POSITIVE, np.where(tested, NEGATIVE, 2)).tolist()
        seen[(*signs, *told.tolist())] += 1
    likely = [outcome for outcome, chance in law.items() if chance > 1e-3]
    allowed = math.sqrt(math.log(2 * len(likely) / 1e-6) / (2 * runs))
    assert all(abs(seen[outcome] / runs - law[outcome]) <= allowed for outcome in likely)
    assert math.fsum(law[outcome] for outcome in likely) > 0.97


def test_answers_and_tests_read_two_streams() -> None:
    """As many words whatever is found, and an answer's noise is not the test's."""
    numeric = NumericSparseVector(SparseVector(Fraction(1), 1, 0, 3), Fraction(1))
    scores, order = np.array([100, -100, 100, -100]), np.arange(4)
    tests, answers = (KeyedStream.derive(bytes(32), label) for label in ("tests", "answers"))
    positive, tested, told = numeric.answer(scores, 2 * scores, order, tests, answers)
    assert positive.tolist() == [True, False, True, False]
    assert tested.all()
    noise = numeric.answer_noise.draw(3, KeyedStream.derive(bytes(32), "answers"))
    assert told.tolist() == [200 + int(noise[0]), 200 + int(noise[1])]


def test_without_stop_and_noise_no_epsilon_holds() -> None:
    vector, claim = one_place(1), 1.0
    one, two = (law_without_stop(vector, scores, noisy=False) for scores in STEPS)
    # A threshold between two scores: seen on the one, impossible on the other, whatever epsilon is claimed.
    assert hockey_stick(one, two, 30.0) > 0.8
    assert shows_no_more(vector, STEPS, claim)


@pytest.mark.full
def test_without_stop_noise_does_not_save_it() -> None:
    vector, claim = one_place(1), 1.0
    one, two = (law_without_stop(vector, scores, noisy=True) for scores in HALVES)
    assert math.fsum(one.values()) == pytest.approx(1)
    assert hockey_stick(one, two, 3 * claim) > 0.1
    # And grows with the tests.
    few = [law_without_stop(vector, (scores[0], scores[-1]), noisy=True) for scores in HALVES]
    assert hockey_stick(few[0], few[1], claim) == 0
    assert shows_no_more(vector, (HALVES[0][90:110], HALVES[1][90:110]), claim)


def test_telling_the_noisy_score_costs_more_the_more_was_tested() -> None:
    vector, claim = one_place(4), 4.0
    one, two = (law_of_told_score(vector, scores) for scores in LAST)
    assert hockey_stick(one, two, claim) > 0.02
    # A quarter of the claim for each test, six negative ones and the last.
    assert math.log(one[LOW,] / two[LOW,]) == pytest.approx(claim / 4 * len(LAST[0]), abs=1e-3)
    assert shows_no_more(vector, LAST, claim)
    # The audit would see it, too: its power, exactly.
    chances = [math.fsum(chance for (told,), chance in law.items() if told <= LOW) for law in (one, two)]
    assert power(chances[0], chances[1], SIZES["nightly"].runs, 0.0, LEVEL, claim) > 0.99


def shows_no_more(vector: SparseVector, pair: tuple[Scores, Scores], claim: float) -> bool:
    """Whether the signs of the sparse vector as it is shipped keep to the claim on the same two inputs."""
    one, two = (exact_law(vector, scores, vector.cut_off) for scores in pair)
    return max(hockey_stick(one, two, claim), hockey_stick(two, one, claim)) <= 1e-9


def without_stop(patches: pytest.MonkeyPatch) -> None:
    """One noisy threshold for all tests, none of which is the last."""

    def all_of_them(
        noisy: NDArray[np.int64], order: NDArray[np.int64], thresholds: list[int]
    ) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        return noisy >= thresholds[0], np.ones(len(order), dtype=np.bool_)

    patches.setattr(sparse_vector, "first_positives", all_of_them)


def without_noise(patches: pytest.MonkeyPatch) -> None:
    """Next to no noise on the scores: so high a rate that none is drawn."""
    patches.setattr(SparseVector, "test_noise", property(lambda vector: DiscreteLaplace(Fraction(1000))))


@pytest.mark.full
@pytest.mark.parametrize(
    ("pair", "switches"),
    [(STEPS, (without_stop, without_noise)), (HALVES, (without_stop,))],
    ids=["no stop and no noise", "no stop"],
)
def test_the_audit_catches_a_sparse_vector_without_stop(
    pair: tuple[Scores, Scores], switches: tuple[object, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    vector, runs = one_place(1), SIZES["fast"].runs
    assert audit(vector, pair, runs).epsilon <= 1
    for switch in switches:
        switch(monkeypatch)  # type: ignore[operator]
    assert audit(vector, pair, runs).epsilon > 1


def test_the_audit_passes_numeric_answers_with_fresh_noise(audit_size: AuditSize) -> None:
    assert audit(one_place(1), LAST, audit_size.runs, numeric=Fraction(1)).epsilon <= 2
