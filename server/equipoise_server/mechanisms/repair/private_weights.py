"""Private multiplicative weights on one workload: select what is served worst, measure it, move towards it.

Hardt, Ligett & McSherry (2012), Figure 1, with three changes: it starts from a public hypothesis instead of the
uniform one; it publishes the mean of the later half of its hypotheses, for which an error can be proven
(`weights_error`); and it ends with a noisy test of the largest error, from which the answers get a half-width that
does not rest on any worst case. Selection is an exact draw from the exponential mechanism; everything that decides
an output is an integer or an elementwise product of doubles.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from equipoise.queries.fixed_point import on_grid
from equipoise.queries.workload_compiler import CompiledWorkload
from equipoise.records.codec import COUNT, FRACTION, canonical_object, key
from equipoise_server.mechanisms.interface import GRID_BITS
from equipoise_server.mechanisms.repair.statement_repair import SCORE_BITS, half_width_on_grid
from equipoise_server.mechanisms.repair.weights_hypothesis import Fit
from equipoise_server.randomness.discrete_laplace import DiscreteLaplace
from equipoise_server.randomness.exponential import UNIT_BITS
from equipoise_server.randomness.stream import KeyedStream
from equipoise_server.randomness.weighted import draw_exponential

MAX_SPREAD = 1 << 14  # nats: what the selection tells apart
SCORE_ROUNDING = 16  # score units that turning an answer into a score may cost, for less than 2^40 records


@canonical_object
class PrivateWeights:
    """Public: rounds, and the epsilons of one selection, of one measurement and of the final test.

    Formal guarantees: `accounting.private_weights_rho`, up to the truncation of the noise.
    """

    rounds: int = key("rounds", COUNT)
    select_epsilon: Fraction = key("select_epsilon", FRACTION)
    measure_epsilon: Fraction = key("measure_epsilon", FRACTION)
    certify_epsilon: Fraction = key("certify_epsilon", FRACTION)
    # An answer's gap in units of 2^-40 that its measurement's noise does not explain.
    guard: int = key("guard", COUNT)

    @property
    def select_step(self) -> int:
        """The exponent of one unit of score, in units of 2^-48."""
        return selection_step(self.select_epsilon)

    @property
    def measure_noise(self) -> DiscreteLaplace:
        """The law of the noise on one measured count."""
        return DiscreteLaplace(self.measure_epsilon)

    @property
    def certify_noise(self) -> DiscreteLaplace:
        """The law of the noise on the largest score of the final answers."""
        return DiscreteLaplace(self.certify_epsilon / (1 << SCORE_BITS))

    def answer(
        self,
        workload: CompiledWorkload,
        counts: NDArray[np.int64],
        records: int,
        start: NDArray[np.float64],
        stream: KeyedStream,
    ) -> tuple[NDArray[np.int64], int]:
        """Answers, int64[k] in units of 2^-40, and the noisy largest score of them.

        `counts`: int64[k], the true counts; `start`: float64[|X|], the public hypothesis, integers above 0.
        """
        fit = Fit(workload, start, self.guard)
        later = np.zeros(len(counts), dtype=np.int64)
        noise = self.measure_noise.draw(self.rounds, stream)
        for turn in range(self.rounds):
            answers = fit.answers()
            if turn >= self.rounds // 2:
                later += answers
            scores = answer_scores(counts, records, answers)
            query = int(draw_exponential(selection_exponents(scores, self.select_step), 1, stream)[0])
            fit.measured(query, measured_answer(int(counts[query]), int(noise[turn]), records))
        mean = later // (self.rounds - self.rounds // 2)
        largest = int(answer_scores(counts, records, mean).max())
        return mean, largest + int(self.certify_noise.draw(1, stream)[0])


def selection_step(epsilon: Fraction) -> int:
    """Return the exponent of one unit of score, in units of 2^-48: epsilon / (2 sensitivity), rounded down."""
    return math.floor(epsilon * (1 << (UNIT_BITS - 1 - SCORE_BITS)))


def selection_exponents(scores: NDArray[np.int64], step: int) -> NDArray[np.int64]:
    """Return a selection's exponents, in units of 2^-48; same shape. `step`: of one unit of score.

    Deficits to the largest score are cut at a public distance: max(score, largest - distance) has
    the sensitivity of the scores.

    Args:
        scores: int64[k], at least 0.
        step: of one unit of score, in units of 2^-48 nats.
    """
    farthest = max(1, (MAX_SPREAD << UNIT_BITS) // max(1, step))
    deficits: NDArray[np.int64] = np.minimum(scores.max() - scores, min(farthest, 2**62))
    return -deficits * step


def answer_scores(counts: NDArray[np.int64], records: int, answers: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return `|K q(D) - round(K answer)|` with `K = records 2^16`, int64[k]: integers of sensitivity 2^16.

    Args:
        counts: int64[k], the true counts.
        records: the public number of records.
        answers: int64[k], in units of 2^-40.
    """
    distance: NDArray[np.int64] = np.abs((counts << SCORE_BITS) - _scaled(answers, records))
    return distance


def _scaled(answers: NDArray[np.int64], records: int) -> NDArray[np.int64]:
    """`round(K answer)` with `K = records 2^16`, int64[k]."""
    scaled: NDArray[np.int64] = np.rint(answers * (float(records << SCORE_BITS) / 2.0**GRID_BITS)).astype(np.int64)
    return scaled


def least_score(answers: NDArray[np.int64], records: int) -> int:
    """Return what the largest score of these answers is at least, whatever the data: true counts are whole.

    `answers`: int64[k], one at least, in units of 2^-40. `records`: the public number of them.
    """
    beyond = _scaled(answers, records) % (1 << SCORE_BITS)
    return int(np.minimum(beyond, (1 << SCORE_BITS) - beyond).max())


def tested_half_width(noisy: int, margin: int, answers: NDArray[np.int64], records: int) -> int:
    """The half-width that a final test gives, in units of 2^-40; where the test failed 1, which holds without any.

    `noisy`: the largest score of the `answers`, int64[k], over so many `records`, with the test's noise; `margin`:
    what that noise falls short of with a chance of at most `c` on either side.

    Formal guarantee: but for a chance of `c` all answers are within this half-width, and none is told that what is
    published refutes. Proof. Let `S` be the true score. Where the noise is at least `-margin`, and it is not with a
    chance of at most `c`, `S <= noisy + margin`. That holds for small sums too, but as a statement about noise and
    half-width together: of those that are as small, more than `c` may fail. And `S >= least_score`, so a smaller
    sum proves that the noise was beyond its margin: with such sums all half-widths would fail, and none is told. To
    look is free, as `noisy` and `answers` may both be published, and it only takes from what can fail.
    """
    highest = noisy + margin
    if highest < least_score(answers, records):
        return 1 << GRID_BITS
    return half_width_on_grid(highest + SCORE_ROUNDING, records << SCORE_BITS)


def measured_answer(count: int, noise: int, records: int) -> int:
    """Return a noisy count as an answer in units of 2^-40, kept between 0 and 1.

    Args:
        count: the true count.
        noise: whole records.
        records: the public number of records.
    """
    return int(on_grid(np.array([min(max(count + noise, 0), records)], dtype=np.int64), records)[0])


def weights_error(weights: PrivateWeights, records: int, universe: int, queries: int, chance: float) -> float:
    """Return an error that the answers of one run exceed with probability at most `chance`.

    Above 1 it says nothing. Infinite where the guard is below twice the bound on a measurement's noise, as the
    proof then fails.

    Proof. Let `d_t` be the error of the hypothesis before round t at the query selected then, and `v` a bound on
    all measurements' noise and rounding. The potential KL(D || hypothesis) starts at most at log(2|X|), is
    never negative, and falls by at least (d_t^2 - v^2) / 4 with the round's own step (exp z <= 1 + z + z^2 for
    |z| <= 1). Steps of earlier measurements are made only where the gap exceeds 2 v, so d exceeds v and it falls.
    So over the later half, of h rounds, the mean of d_t^2 is at most 4 log(2|X|) / h + v^2 T / h, and the
    mean of |d_t| at most its root. Each round's largest error exceeds |d_t| by at most the selection's slack
    (2 / epsilon) log(k / chance of it) (McSherry & Talwar 2007), and the error of a mean is at most the mean error.

    Args:
        weights: of the plan.
        records: the public number of records.
        universe: how many records can exist.
        queries: how many one run answers.
        chance: in (0, 1).

    Returns:
        A fraction of the records.
    """
    later = weights.rounds - weights.rounds // 2
    noise = measurement_error(weights, records, universe, chance / 2)
    if weights.guard < 2 * noise * 2.0**GRID_BITS:
        return math.inf
    rounding = rounding_error(records, universe)
    nats_a_record = weights.select_step * (1 << SCORE_BITS) / 2.0**UNIT_BITS
    slack = math.log(2 * weights.rounds * queries / chance) / nats_a_record / records
    bulk = 4 * math.log(2 * universe) / later + noise**2 * weights.rounds / later
    return (math.sqrt(bulk) + slack + 2 * rounding) * (1 + 1e-9)


def measurement_error(weights: PrivateWeights, records: int, universe: int, chance: float) -> float:
    """Return what noise and rounding in all measurements of one run exceed with probability at most `chance`.

    Args:
        weights: of the plan.
        records: the public number of records.
        universe: how many records can exist.
        chance: in (0, 1).

    Returns:
        A fraction of the records.
    """
    noise = weights.measure_noise.quantile(chance / 2 / weights.rounds)
    return noise / records + rounding_error(records, universe)


def rounding_error(records: int, universe: int) -> float:
    """Return what rounding a hypothesis's weights, answers and scores may move an answer by, at most.

    2^-38 is four times what `rounded_weights` claims beside |X| 2^-49, and covers its factor 1 + 2^-52.

    Args:
        records: the public number of records.
        universe: how many records can exist.

    Returns:
        A fraction of the records.
    """
    return universe * 2.0**-49 + 2.0**-38 + 2 * SCORE_ROUNDING / 2.0**SCORE_BITS / records
