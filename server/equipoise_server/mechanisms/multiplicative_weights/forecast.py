"""The mean error that `multiplicative_weights` is expected to leave, from public facts alone: no promise.

Of tables of a small universe, those that turns measure are answered with what the fit leaves of their noise,
whatever the fit starts from: it follows what was measured. Conditions err by more than the start does, as turns
measure few of them, with much noise. All other statements are answered as the start does, of which the constants
are those of tables with structure, as people's are: on random cells a prior errs by more.
`benchmarks/expectations.py` measures how well this predicts.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Protocol

from equipoise.model.rounds import Share
from equipoise_server.mechanisms.calibration import least_gaussian, noise_distribution
from equipoise_server.mechanisms.expected_error import (
    at_most,
    fitted_error,
    gaussian_mean,
    holds_conditions,
    mean_over_queries,
)
from equipoise_server.mechanisms.interface import PublicParameters
from equipoise_server.mechanisms.noise_calibration import GaussianNoise
from equipoise_server.mechanisms.prior.forecast import UNIFORM_OF_CELL, expected_mean
from equipoise_server.mechanisms.prior.plan import PriorParameters

TIMES_PROJECTION = 2.5  # times `projection`'s mean error: 1.4 to 9 on five other attributes of Adult, 1 to 3 else
UNLEARNT = 0.023  # of predicates that no round measures: on Adult, of 200 after 24 rounds
LEARNT_PART = 1.0  # of a measured statement's noise
TURNED = 1.3  # times what a prior errs by on conditions, after turns: 0.5 to 2 times, in small universes up to 3.5
SMALL_UNIVERSE = 1 << 14  # records that can exist, below which a fit follows what was measured


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

    Of predicates, those that no round measures err by at least what the hypothesis has not learnt.
    """
    noise, _ = least_gaussian(setting.data_budget)
    law = noise_distribution(noise, sum(share.l1_sensitivity for share in setting.shares))
    deviation = math.sqrt(float(law.variance)) / setting.records

    def of_share(share: Share) -> float:
        fitted = TIMES_PROJECTION * fitted_error(deviation, share)
        if holds_conditions(share):
            return math.hypot(fitted, UNLEARNT * (1 - learnt_share(turns, share)))
        if setting.universe_size < SMALL_UNIVERSE:
            return min(fitted, learnt_error(setting, turns, share))
        return fitted

    return min(1.0, mean_over_queries(setting, of_share))


def expected_from_prior(setting: PublicParameters, turns: Measuring, prior: PriorParameters) -> float:
    """Return the mean error from a prior: what the prior alone errs by, but for tables that turns measure."""

    def of_share(share: Share) -> float:
        prior_error = expected_mean(prior, replace(setting, shares=(share,)))
        if holds_conditions(share):
            return TURNED * prior_error
        if setting.universe_size >= SMALL_UNIVERSE:
            return prior_error
        part = learnt_share(turns, share)
        return part * learnt_error(setting, turns, share) + (1 - part) * prior_error

    return min(1.0, mean_over_queries(setting, of_share))


def learnt_share(turns: Measuring, share: Share) -> float:
    """Return the part of an analyst's statements that turns measure, at most one in each."""
    return min(1.0, turns.rounds / max(1, share.statements))


def learnt_error(setting: PublicParameters, turns: Measuring, share: Share) -> float:
    """Return the mean error of measured tables. Where there are more turns than tables, each is measured again."""
    again = max(1.0, turns.rounds / share.statements)
    variance = float(turns.noise.variance) * share.l1_sensitivity / share.statements / again
    noise = LEARNT_PART * gaussian_mean(variance) / setting.records
    return at_most(noise, UNIFORM_OF_CELL * share.statements / share.queries)
