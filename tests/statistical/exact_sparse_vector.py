"""The exact law of a sparse vector whose noise is far too wide to be summed value by value.

Scores of the shipped repair are in units of 2^-16 records, so noise spreads over millions of integers. Between two
neighbouring scores every probability is a sum of exponentials in the threshold's noise, and so is their product:
each stretch of noise sums in closed form.
"""

from __future__ import annotations

import math

from harness.exact_game import Law

from equipoise_server.mechanisms.sparse_vector import SparseVector
from equipoise_server.randomness.discrete_laplace import DiscreteLaplace

POSITIVE, NEGATIVE, UNTESTED = 1, 0, 2
Pattern = tuple[int, ...]
Exponentials = dict[float, float]  # m -> coefficient of exp(-m rate j), j counted from the stretch's own start


def pattern_law(vector: SparseVector, scores: tuple[int, ...], places: int) -> dict[Pattern, float]:
    """The law of POSITIVE, NEGATIVE or UNTESTED for each score, tested in order with `places` left."""
    if not scores or places == 0:
        return {(UNTESTED,) * len(scores): 1.0}
    law: dict[Pattern, float] = {}
    for first, chance in enumerate(first_positive_law(vector, scores)):
        if first == len(scores):
            law[(NEGATIVE,) * first] = chance
            continue
        head = (NEGATIVE,) * first + (POSITIVE,)
        for tail, further in pattern_law(vector, scores[first + 1 :], places - 1).items():
            law[head + tail] = law.get(head + tail, 0.0) + chance * further
    return law


def first_positive_law(vector: SparseVector, scores: tuple[int, ...]) -> list[float]:
    """P(the first positive is score i), and last P(no positive), for one AboveThreshold."""
    rate = float(vector.test_noise.rate)
    # Where the noise passes 0 or a score, a probability changes its form.
    starts = sorted({0, *(score - vector.threshold + 1 for score in scores)})
    law = [0.0] * (len(scores) + 1)
    for start, stop in zip([None, *starts], [*starts, None], strict=True):
        length = math.inf if start is None or stop is None else stop - start
        at, direction = (stop - 1, -1) if start is None and stop is not None else (start or 0, 1)
        reached = threshold_mass(vector, at, direction)
        for index, score in enumerate(scores):
            above = reaches(rate, vector.threshold + at - score, direction)
            law[index] += total(times(reached, above), rate, length)
            below = {power: -factor for power, factor in above.items()}
            below[0.0] = below.get(0.0, 0.0) + 1
            reached = times(reached, below)
        law[-1] += total(reached, rate, length)
    return law


def threshold_mass(vector: SparseVector, at: int, direction: int) -> Exponentials:
    """P(threshold noise = at + direction j)."""
    rate = float(vector.threshold_noise.rate)
    power = rate / float(vector.test_noise.rate)
    falling = (at >= 0) == (direction > 0)
    return {power if falling else -power: math.tanh(rate / 2) * math.exp(-rate * abs(at))}


def reaches(rate: float, needed: int, direction: int) -> Exponentials:
    """P(test noise >= needed + direction j)."""
    ratio = math.exp(-rate)
    if needed > 0:
        return {float(direction): math.exp(-rate * needed) / (1 + ratio)}
    return {0.0: 1.0, -float(direction): -math.exp(-rate * (1 - needed)) / (1 + ratio)}


def times(one: Exponentials, other: Exponentials) -> Exponentials:
    """The product of two sums of exponentials."""
    product: Exponentials = {}
    for power, factor in one.items():
        for further, part in other.items():
            product[power + further] = product.get(power + further, 0.0) + factor * part
    return product


def total(terms: Exponentials, rate: float, length: float) -> float:
    """The sum over j = 0, 1, ..., length - 1."""
    parts = []
    for power, factor in terms.items():
        exponent = -rate * power
        if exponent == 0:
            parts.append(factor * length)
        else:
            counted = -1.0 if length == math.inf else math.expm1(exponent * length)
            parts.append(factor * counted / math.expm1(exponent))
    return math.fsum(parts)


def at_least(noise: DiscreteLaplace, z: int) -> float:
    """P(Z >= z)."""
    p = math.exp(-float(noise.rate))
    return p**z / (1 + p) if z > 0 else 1 - p ** (1 - z) / (1 + p)


def mass(noise: DiscreteLaplace, z: int) -> float:
    """P(Z = z)."""
    p = math.exp(-float(noise.rate))
    return (1 - p) / (1 + p) * p ** abs(z)


def stretch_law(vector: SparseVector, scores: tuple[int, ...]) -> list[float]:
    """P(the first positive is statement i), and last P(no positive), for one AboveThreshold."""
    reach = math.ceil(40 / float(vector.threshold_noise.rate))
    law = [0.0] * (len(scores) + 1)
    for noise in range(-reach, reach + 1):
        chance = mass(vector.threshold_noise, noise)
        for index, value in enumerate(scores):
            above = at_least(vector.test_noise, vector.threshold + noise - value)
            law[index] += chance * above
            chance *= 1 - above
        law[-1] += chance
    return law


def exact_law(vector: SparseVector, scores: tuple[int, ...], places: int) -> Law:
    """The law of the outcome, one of POSITIVE, NEGATIVE, UNTESTED for each statement, in order."""
    if not scores or places == 0:
        return {(UNTESTED,) * len(scores): 1.0}
    law: Law = {}
    for first, chance in enumerate(stretch_law(vector, scores)):
        if first == len(scores):
            law[(NEGATIVE,) * first] = chance
            continue
        head = (NEGATIVE,) * first + (POSITIVE,)
        for tail, further in exact_law(vector, scores[first + 1 :], places - 1).items():
            law[head + tail] = law.get(head + tail, 0.0) + chance * further
    return law
