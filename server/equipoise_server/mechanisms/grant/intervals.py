"""How wide the intervals of a grant's answers are, so that all of them hold together, whatever is asked.

Three kinds of intervals share beta.

**One noise.** The j-th meaning that noise is drawn for has `4 / ((j + 3) (j + 4))` of `SINGLE`; over all j these
add up to it. Its noise is fresh, so given what was seen before an interval that is its law's quantile fails with
no larger probability, however the meaning was chosen. All counts of a statement share it evenly.

**Several noises for one meaning.** What is paid may depend on what came out so far. Let `S` be the sum of the
errors, each times its precision, and `p` the sum of the precisions. For every number t `exp(t S - t^2 p / 2)` is a
supermartingale (each error is sub-Gaussian with the inverse of its precision), and so is its mean over a normal t
of variance `16 / p_1`, which is fixed before anything is drawn: `exp(S^2 / (2 (p + p_1 / 16))) / sqrt(1 + 16 p /
p_1)`. It exceeds `1 / d` with probability d at most, ever (Ville; Robbins 1970). As `p_1 <= p`, the error `S / p`
is within `sqrt(17 / 16 (2 ln(1 / d) + ln(1 + 16 p / p_1)) / p)` all the time. The j-th meaning has the same part
of `TOPPED`.

**Fits.** The error of a fit is the sum over the parts of its table (`queries.own_precision`), and over the noise
that was drawn for the meaning itself. For each of them the same holds, with a t of its own, and the product of the
means is a supermartingale, too. So by the inequality of Cauchy and Schwarz the error of a count of variance v is
within `sqrt(17 / 16 v (2 ln(1 / d) + sum ln(1 + 16 p / p_1)))`. Which sums are asked about may depend on the
noise, so all that could be asked share `FITTED`: d is `2^-bits` of it, where the bits are a code word for the
table's axes, and for the statement (`equipoise.residuals.reach`).

**With a standing measurement.** Its noise was drawn before the grant began, and everybody may have seen it. So a
statement that it tells is chosen by it, and is not bounded as one whose noise is fresh. But the error of just this
statement by the measurement is sub-Gaussian with a variance that is fixed, and is one factor more of the product
above, with `p = p_1`: the product begins before the measurement is made, and all that is paid comes later.

**Fitted together.** The measurement also tells parts of tables (`equipoise.residuals.told_counts`), each with noise
that is independent of that of all other parts, and whose weighted sums are sub-Gaussian with what a table of the
part's precision `m` would have. So it counts as the first table that told these parts: `S` begins with its errors,
each times `m`, and `p_1 = m`, `p = m` are fixed before the grant begins. For every statement the product over its
parts is a supermartingale as before, whatever is paid later, and the bound for fits holds as it stands. The number
of all records has no error, and no factor.

What a statement's answer is made of is the measurement of just this statement with the noise that was drawn for it,
or with a fit of tables; a fit without it; or the parts fitted together. These are different products, and `WAYS`
more bits of the word say which. So all of these intervals hold together, and the narrower ones can be told. The
chance is over the noise of the measurement and of the grant.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from equipoise.queries.compiled_workload import CompiledWorkload
from equipoise.queries.grant_reach import FITTED, TOPPED, reach_of
from equipoise.residuals.reach import log_chance, own_code_lengths

_LOG_2 = math.log(2)


def topped_reach(chance: Fraction, counts: int, grown: float) -> float:
    """Return how many standard deviations the mean of several noises of one meaning may err by.

    Args:
        chance: the meaning's part of beta.
        counts: how many share it.
        grown: `ln(1 + 16 p / p_1)`.
    """
    return reach_of(2 * float(log_chance(float(2 * chance * TOPPED / counts))) + grown)


def fitted_reaches(asked: CompiledWorkload, beta: float, grown: float, ways: int = 0) -> NDArray[np.float64]:
    """Return how many standard deviations each count of a fit may err by: float64[k].

    Args:
        asked: the statement, whose table has few enough cells to be taken apart.
        beta: the probability that any interval fails.
        grown: the sum of `ln(1 + 16 p / p_1)` over all numbers that the fit is made of.
        ways: the bits that say which noises these are, where there are several ways.
    """
    bits = own_code_lengths(asked) + ways
    log = float(log_chance(float(2 * Fraction(beta) * FITTED)))
    lengths, places = np.unique(bits, return_inverse=True)
    reaches = [reach_of(2 * (log + each * _LOG_2) + grown) for each in lengths.tolist()]
    return np.array(reaches)[places.reshape(-1)]
