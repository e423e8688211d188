"""How beta is shared by the intervals of a grant's answers, and how far noise that was paid for may err.

The proof is that of the server's `mechanisms.grant.intervals`. What is here depends on what was asked and paid
alone, so that an analyst knows before asking how wide an interval will be.
"""

from __future__ import annotations

import math
from fractions import Fraction
from statistics import NormalDist
from typing import NamedTuple

SINGLE, TOPPED, FITTED = Fraction(8, 10), Fraction(1, 10), Fraction(1, 10)
LATER = 3  # the larger, the more evenly beta is shared by the first meanings
WAYS = 2  # bits: which noises make an answer that a measurement has a part in, so that each way has its word
UNIT = 1 << 20  # squares of reaches are rounded up to units of 2^-20, so that no machine's logarithm changes them


class PaidNoise(NamedTuple):
    """The noise that was drawn for one meaning.

    `place`: which meaning of the grant it is that noise was drawn for, from 1. `first`: the precision of the first
    noise, in rho of a statement that moves by 1. `precision`: of all of them together.
    """

    place: int
    first: Fraction
    precision: Fraction


def part_of(place: int, beta: float) -> Fraction:
    """Return the part of beta of the meaning at a place: all parts add up to it.

    Args:
        place: from 1.
        beta: the probability that any interval fails.
    """
    return Fraction(beta) * (LATER + 1) / ((place + LATER) * (place + LATER + 1))


def grown(ratio: Fraction) -> float:
    """Return `ln(1 + 16 ratio)`: what adaptive payments for a number add to the square of an interval's reach.

    Args:
        ratio: the precision of the number now, over that of the first payment for it.
    """
    return math.log1p(16 * float(ratio))


def reach_of(square: float) -> float:
    """Return how many standard deviations a mixture's bound reaches: `sqrt(17 / 16 square)`, rounded up.

    Args:
        square: twice the logarithm of one over the chance, and what `grown` adds.
    """
    return math.sqrt(17 / 16 * math.ceil(square * (1 + 1e-9) * UNIT) / UNIT)


def joint_reach(bits: int, beta: float, spread: float) -> float:
    """Return how many standard deviations an answer may err by that several independent noises make together.

    Args:
        bits: the length of the statement's code word among all that could be asked.
        beta: the probability that any interval fails.
        spread: what `grown` adds for each of these noises, in sum.
    """
    return reach_of(2 * (-math.log(beta * float(FITTED)) + bits * math.log(2)) + spread)


def paid_reach(noise: PaidNoise, counts: int, beta: float) -> float:
    """Return how many standard deviations of its own noise the interval of a paid statement reaches to either side.

    Args:
        noise: what was drawn for the statement's meaning.
        counts: how many counts share its part of beta.
        beta: the probability that any interval fails.
    """
    chance = part_of(noise.place, beta) / (2 * counts)
    if noise.precision == noise.first:
        return -NormalDist().inv_cdf(float(chance * SINGLE))
    return reach_of(-2 * math.log(2 * float(chance * TOPPED)) + grown(noise.precision / noise.first))
