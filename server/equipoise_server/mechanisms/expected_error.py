"""The mean error that a plan expects, from public facts alone: what `auto` compares mechanisms by.

Exact for noise. For fits and hypotheses a formula whose constants were measured on public tables; no promise rests
on it. `benchmarks/expectations.py` prints each expectation beside what was measured on tables that judge no choice,
and `docs/regimes.md` says how well they predict. `benchmarks/regret.py` does so on those that judge.

The constants of fits here and in `residuals.expected_error`, `pooled.tables_plan` and `prior.forecast` are those
that `benchmarks/constants.py` fits to 30 to 90 rounds each, on tables that judge no choice: five attributes of
Adult that are not among the seven, and made-up ones, at 2,000, 50,000 and 2,000,000 records. The mean distance of
the logarithms of what was measured and expected is least. `docs/regimes.md` says by what factor they are off.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from equipoise.model.rounds import Share
from equipoise_server.mechanisms.interface import PublicParameters
from equipoise_server.mechanisms.noise_calibration import NoiseDistribution
from equipoise_server.randomness.discrete_laplace import DiscreteLaplace

# Of a fit to `m` tables of `c` cells each, with noise of deviation s: FIT m^TABLES_POWER (c s)^CELLS_POWER.
FIT = 0.681
TABLES_POWER = -0.117
CELLS_POWER = -0.105
# Of a fit to k predicates: PREDICATE_FIT k^PREDICATES_POWER d^NOISE_POWER, where noise has the mean error d, and no
# more than STOPPED, as a fit stops before it reaches noise that is so small.
PREDICATE_FIT, PREDICATES_POWER, NOISE_POWER = 1.51, -0.374, -0.254
STOPPED = 1.25
FIT_ERROR = 7e-5  # of predicates, by a fit to tables, however small their noise
UNIFORM = 0.15  # what the uniform distribution errs by, of predicates on Adult
# A predicate is taken to cover a quarter of what it is asked of: a half of the categories of two attributes.
COVERED = 0.25


def stated(predicted: float) -> float:
    """Return an error or a time as plans state it: to six digits, which another machine's floats give as well.

    A replay compares plans exactly, and powers of floats differ in their last digits between machines.
    """
    return float(f"{predicted:.6g}")


def mean_deviation(law: NoiseDistribution) -> float:
    """Return `E |Z|` of integer noise: exact for the Laplace law, that of continuous noise for the Gaussian one."""
    if isinstance(law, DiscreteLaplace):
        # P(|Z| = z) is proportional to e^(-r z), which gives 2 q / (1 - q^2) with q = e^-r.
        return 1 / math.sinh(float(law.rate))
    return gaussian_mean(float(law.variance))


def gaussian_mean(variance: float) -> float:
    """Return `E |Z|` of a Gaussian number of this variance."""
    return math.sqrt(2 * variance / math.pi)


def noisy_answers_error(law: NoiseDistribution, records: int) -> float:
    """Return the mean error of counts with independent noise, as a fraction of the records."""
    return mean_deviation(law) / records


def mean_over_queries(setting: PublicParameters, error: Callable[[Share], float]) -> float:
    """Return the mean over all declared queries of `error`, the mean error of one share's answers."""
    return sum(share.queries * error(share) for share in setting.shares) / setting.queries


def only_predicates(share: Share) -> bool:
    """Return whether a share holds no more queries than statements, so that each statement is a predicate."""
    return share.queries == share.statements


def hypothesis_error(setting: PublicParameters, error: float) -> float:
    """Return the mean error over all declared queries of a hypothesis that errs by `error` on predicates.

    Of tables it is at most what their mean cell holds, as a hypothesis learns what errs most in counts.
    """
    return mean_over_queries(
        setting, lambda share: error if only_predicates(share) else min(error, share.statements / share.queries)
    )


def at_most(error: float, most: float) -> float:
    """Return about `error` where it is far below `most`, which the fit's start errs by and noise never exceeds.

    Args:
        error: the error that noise alone would leave.
        most: the error that is not exceeded, above 0; both as fractions of the records.
    """
    return error / (1 + error / most)


def holds_conditions(share: Share) -> bool:
    """Return whether a share has fewer queries than two a statement: some of its statements must be conditions."""
    return share.queries < 2 * share.statements


def cells_of_a_table(share: Share) -> float:
    """Return how many cells a statement has that is no condition, at least two: the share's mean.

    Of a share that must hold conditions nothing tells how many tables there are. Then it counts as one table.
    """
    if holds_conditions(share):
        return max(2.0, share.queries - share.statements + 1.0)
    return share.queries / share.statements


def mixed_error(share: Share, condition: float, cell: float) -> float:
    """Return the mean error of a share's answers, given those of a condition's and of a table cell's.

    Of a share that must hold conditions, all statements count as such, and what is left of its queries as cells.

    Args:
        share: whose answers are meant.
        condition: the mean error of a condition's answer.
        cell: that of a table's cell; both as fractions of the records.
    """
    part = share.statements / share.queries if holds_conditions(share) else 0.0
    return part * condition + (1 - part) * cell


def fitted_error(deviation: float, share: Share) -> float:
    """Return the mean error of a fit to one share's noisy answers, as a fraction of the records.

    `deviation`: the standard deviation of each answer's noise, as a fraction of the records.
    """
    noise = gaussian_mean(deviation**2)
    predicate = min(UNIFORM, noise * predicates_part(noise, share.queries))
    if only_predicates(share):
        return predicate
    tables = share.queries / cells_of_a_table(share)
    return mixed_error(share, predicate, min(1.0, noise) * fitted_part(deviation, tables, share.queries))


def predicates_part(noise: float, predicates: int) -> float:
    """Return the part of the noise that a fit to so many predicates leaves.

    Args:
        noise: its mean error, as a fraction of the records.
        predicates: how many are measured.
    """
    if not noise:
        return STOPPED
    part = PREDICATE_FIT * math.pow(predicates, PREDICATES_POWER) * math.pow(noise, NOISE_POWER)
    return min(STOPPED, part)


def fitted_part(deviation: float, tables: float, cells: float) -> float:
    """Return the part of the noise that a fit to tables leaves; above 1 where it stops before it reaches the noise.

    Args:
        deviation: of the noise on one cell, as a fraction of the records.
        tables: how many are measured.
        cells: how many they have together.
    """
    return FIT * math.pow(tables, TABLES_POWER) * math.pow(cells / tables * deviation, CELLS_POWER)


def part_of_dense(share: Share, universe: int) -> float:
    """Return the noise of a share's predicates as a part of that of a dense one, which covers a quarter.

    They are taken to cover a quarter of the universe, or the declared support where that is less. As of sums over
    cells that err alike, the error of a part `c` is that of `sqrt(c (1 - c))`.
    """
    part = min(COVERED, share.support / universe) if share.support else COVERED
    return math.sqrt(part * (1 - part) / (COVERED * (1 - COVERED)))


def covered_by_predicate(share: Share, universe: int) -> float:
    """Return how many records of the universe a share's predicate covers.

    A quarter of them, or half of the declared support where that is less.
    """
    return min(COVERED * universe, (share.support or universe) / 2)
