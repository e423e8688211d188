"""The parameters of `online`: how a budget may be divided, and how many updates a threshold proves."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from equipoise.records.codec import BOOLEAN, COUNT, FRACTION, INTEGER, canonical_object, key
from equipoise_server.mechanisms.hypothesis import gain_slack
from equipoise_server.mechanisms.interface import GRID_BITS, PublicParameters
from equipoise_server.mechanisms.noise_calibration import NOISE, NOISE_HALF_WIDTHS, AnswerNoise
from equipoise_server.mechanisms.online.stages import Stage
from equipoise_server.mechanisms.parameters import Parameters
from equipoise_server.mechanisms.repair.private_weights import SCORE_ROUNDING, rounding_error
from equipoise_server.mechanisms.repair.statement_repair import SCORE_BITS, half_width_on_grid

UPWARD = 1 + 1e-9


@canonical_object
class OnlineParameters(Parameters):
    """Public parameters of a session.

    `updates`: positives, after which nothing is learnt. `test_epsilon`: of one AboveThreshold; `threshold`: a score
    in units of 2^-16 records. `noise`: of statements answered afresh. `reach`: in units of 2^-40, how far their
    fractions may be from the truth. `certified_half_width` of answers from the hypothesis and `noise_half_widths`
    of answers with noise, by how much the statement's counts move (1: predicates, 2: marginals), hold for all of a
    session at once, in units of 2^-40. `proven`: whether no more updates can happen than there are.
    """

    updates: int = key("updates", COUNT)
    test_epsilon: Fraction = key("test_epsilon", FRACTION)
    threshold: int = key("threshold", INTEGER)
    noise: AnswerNoise = key("noise", NOISE)
    reach: int = key("reach", COUNT)
    certified_half_width: int = key("certified_half_width", COUNT)
    noise_half_widths: tuple[int, int] = key("noise_half_widths", NOISE_HALF_WIDTHS)
    proven: bool = key("proven", BOOLEAN)

    @property
    def stages(self) -> tuple[Stage, ...]:
        """One for each update, all alike."""
        stage = Stage(
            test_epsilon=self.test_epsilon,
            threshold=self.threshold,
            noise=self.noise,
            reach=self.reach,
            certified_half_width=self.certified_half_width,
            noise_half_widths=self.noise_half_widths,
        )
        return (stage,) * self.updates

    @property
    def promise(self) -> int:
        """The largest half-width of a certified answer, in units of 2^-40."""
        return max(self.certified_half_width, *self.noise_half_widths)


@dataclass(frozen=True)
class Division:
    """How the budget of so many updates may be divided between tests and answers, and what that gives.

    `tested`: score units by which the noise of a test and its threshold may deceive, either way.
    """

    updates: int
    test_epsilon: Fraction
    noise: AnswerNoise
    noise_half_widths: tuple[int, int]
    tested: int

    def reach(self, setting: PublicParameters) -> int:
        """How far published fractions may be from the truth, with the rounding of what they are compared with."""
        rounding = math.ceil(rounding_error(setting.records, setting.universe_size) * 2.0**GRID_BITS)
        return min(1 << GRID_BITS, max(self.noise_half_widths) + rounding)

    def with_threshold(self, setting: PublicParameters, length: int, threshold: int) -> OnlineParameters:
        """Return the parameters that have this threshold."""
        reach = self.reach(setting)
        certified = half_width_on_grid(threshold + self.tested + SCORE_ROUNDING, setting.records << SCORE_BITS)
        return OnlineParameters(
            updates=self.updates,
            test_epsilon=self.test_epsilon,
            threshold=threshold,
            noise=self.noise,
            reach=reach,
            certified_half_width=certified,
            noise_half_widths=self.noise_half_widths,
            proven=self.updates >= most_updates(setting, length, threshold - self.tested, reach),
        )


def proving_threshold(setting: PublicParameters, length: int, division: Division) -> int:
    """Return the least threshold for which `most_updates` is not above what there is."""
    if division.updates == length:
        return _even_threshold(setting, division)
    slack = gain_slack(rounding_error(setting.records, setting.universe_size))
    least = math.sqrt((math.log(setting.universe_size) / division.updates + slack) / 2) * UPWARD
    error = least + 2 * division.reach(setting) / 2.0**GRID_BITS + 1 / setting.records
    score = math.ceil(error * UPWARD * (setting.records << SCORE_BITS)) + 2 * SCORE_ROUNDING
    return score + division.tested


def _even_threshold(setting: PublicParameters, division: Division) -> int:
    """Return where both ways of answering promise the same: below 0 where nearly all are to be answered afresh."""
    return int(max(division.noise_half_widths) * (setting.records << SCORE_BITS) >> GRID_BITS) - division.tested


def most_updates(setting: PublicParameters, length: int, least_score: int, reach: int) -> int:
    """At most how many updates there are where each one's true score is at least `least_score`.

    And where all published answers are within `reach`, in units of 2^-40, of the truth; `length` if no less holds.

    Proof. An update's statement has a cell whose error under the hypothesis is at least `e = least_score / K`, less
    the rounding of the score. Its published answer is within `reach` of the truth, so `e - reach` or more from what
    the hypothesis holds: a distance of `d = e - 2 reach` beyond the reach of the measurement, and of sums a record
    less, as they are rounded down to whole ones (`linear_reach`). The update brings it closer to the data by at
    least `2 d^2` less the slack of rounding (`hypothesis`), and to take in again what was measured before takes
    nothing of it. The divergence starts at `log |X|` at most and is never negative, so there are at most
    `log |X| / (2 d^2 - slack)` updates: the B(alpha) of Gupta, Roth & Ullman (2012) for multiplicative weights.
    """
    distance = (least_score - SCORE_ROUNDING) / (setting.records << SCORE_BITS) / UPWARD
    distance -= 2 * reach / 2.0**GRID_BITS + 1 / setting.records
    slack = gain_slack(rounding_error(setting.records, setting.universe_size))
    if distance <= 0 or 2 * distance**2 <= slack * UPWARD:
        return length
    return min(length, math.floor(math.log(setting.universe_size) / (2 * distance**2 - slack) * UPWARD))
