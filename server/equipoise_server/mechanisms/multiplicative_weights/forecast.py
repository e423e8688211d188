"""The mean error that `multiplicative_weights` is expected to leave, from public facts alone: no promise.

Of a small universe, statements that turns measure are answered with what the fit leaves of their noise, whatever
the fit starts from: it follows what was measured. All other statements are answered as the start does. What a
prior does not know of them is the larger, the fewer records can exist: on a table without structure a predicate's
error is that of a sum of random cells, and only where these are many do they average out.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Protocol

from equipoise.model.rounds import Share
from equipoise_server.mechanisms.calibration import least_gaussian, noise_distribution
from equipoise_server.mechanisms.expected_error import (
    COVERED,
    at_most,
    fitted_error,
    gaussian_mean,
    mean_over_queries,
    only_predicates,
)
from equipoise_server.mechanisms.interface import PublicParameters
from equipoise_server.mechanisms.noise_calibration import GaussianNoise
from equipoise_server.mechanisms.prior.forecast import UNIFORM_OF_CELL, UNTOLD, expected_mean
from equipoise_server.mechanisms.prior.plan import PriorParameters

TIMES_PROJECTION = 1.6  # times `projection`'s mean error: 1.1 to 2.6 on tables of Adult and binary attributes
UNLEARNT = 0.023  # of predicates that no round measures: on Adult, of 200 after 24 rounds
LEARNT_PART = 0.7  # of a measured statement's noise: 0.4 to 1 on made-up tables, `|X|` = 120 and 1,152
STRUCTURED = 1 << 14  # records that can exist, from which on a table is taken to have structure as Adult has


class Measuring(Protocol):
    """What turns measure with."""

    @property
    def rounds(self) -> int:
        """How many turns each analyst has."""
        ...

    @property
    def noise(self) -> GaussianNoise:
        """Of one measured statement."""
        ...


def expected_from_nothing(setting: PublicParameters, turns: Measuring) -> float:
    """Return the mean error without a prior: at most a multiple of what a fit to noise on every statement leaves.

    Of predicates, those that no round measures err by at least what the hypothesis has not learnt. Of a large
    universe that is all, as was measured on Adult and binary attributes.
    """
    noise, _ = least_gaussian(setting.data_budget)
    law = noise_distribution(noise, sum(share.l1_sensitivity for share in setting.shares))
    deviation = math.sqrt(float(law.variance)) / setting.records

    def of_share(share: Share) -> float:
        fitted = TIMES_PROJECTION * fitted_error(deviation, share)
        if setting.universe_size < STRUCTURED:
            fitted = min(fitted, learnt_error(setting, turns, share))
        if not only_predicates(share):
            return fitted
        return math.hypot(fitted, UNLEARNT * (1 - learnt_share(turns, share)))

    return min(1.0, mean_over_queries(setting, of_share))


def expected_from_prior(setting: PublicParameters, turns: Measuring, prior: PriorParameters) -> float:
    """Return the mean error from a prior: of what turns measure, and of what is left to the prior.

    Of a large universe it is what the prior is expected to err by alone, as was measured on Adult.
    """
    if setting.universe_size >= STRUCTURED:
        return expected_mean(prior, setting)

    def of_share(share: Share) -> float:
        told = expected_mean(prior, replace(setting, shares=(share,)))
        part = learnt_share(turns, share)
        return part * learnt_error(setting, turns, share) + (1 - part) * max(told, unstructured(setting, share))

    return min(1.0, mean_over_queries(setting, of_share))


def learnt_share(turns: Measuring, share: Share) -> float:
    """Return the part of an analyst's statements that turns measure, at most one in each."""
    return min(1.0, turns.rounds / max(1, share.statements))


def learnt_error(setting: PublicParameters, turns: Measuring, share: Share) -> float:
    """Return the mean error of measured statements.

    Where there are more turns than tables, each is measured again and again. Of predicates only few are.
    """
    variance = float(turns.noise.variance) * share.l1_sensitivity / max(1, share.statements)
    if only_predicates(share):
        return LEARNT_PART * gaussian_mean(variance) / setting.records
    again = max(1.0, turns.rounds / share.statements)
    noise = LEARNT_PART * gaussian_mean(variance / again) / setting.records
    return at_most(noise, UNIFORM_OF_CELL * share.statements / share.queries)


def unstructured(setting: PublicParameters, share: Share) -> float:
    """Return what pairs do not tell of a query on a table of random cells.

    It follows the deviation of a sum of random cells, and is `UNTOLD` for predicates on `STRUCTURED` records.
    """
    covered = COVERED if only_predicates(share) else share.statements / share.queries
    spread = covered * (1 - covered) / setting.universe_size
    return UNTOLD * math.sqrt(spread * STRUCTURED / (COVERED * (1 - COVERED)))
