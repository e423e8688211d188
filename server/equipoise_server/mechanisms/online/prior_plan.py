"""The plan of `online` from a prior: a measurement, and stages whose tests become coarser with every update.

A good prior errs little, so few updates are expected, and nearly all statements that the measurement does not tell
are answered in the first stage. So that one has the largest part of the budget: every stage gets half of what the
stage before it got, and its threshold and the noise of its tests are larger by a root of 2. A table on which the
prior errs much thus passes through the stages until thresholds exceed its errors, and each update teaches something
on the way. It never uses up all updates at the price of the first.
"""

from __future__ import annotations

import math
from fractions import Fraction

from equipoise.accounting import RHO_UNIT, PrivacyEvent
from equipoise.errors import BudgetExhausted
from equipoise.records.codec import COUNT, FRACTION, canonical_object, codec_of, key, list_of
from equipoise_server.mechanisms.budget_rounding import MIN_EPSILON, epsilon_within, usable_rho, with_samplers
from equipoise_server.mechanisms.interface import GRID_BITS, PublicParameters
from equipoise_server.mechanisms.online.interface import session_length
from equipoise_server.mechanisms.online.plan import fresh_error
from equipoise_server.mechanisms.online.stages import Stage, stage_events, stage_truncation
from equipoise_server.mechanisms.options import real, whole
from equipoise_server.mechanisms.parameters import Parameters
from equipoise_server.mechanisms.prior.choice import STANDING
from equipoise_server.mechanisms.prior.forecast import expected_largest, expected_of_session
from equipoise_server.mechanisms.prior.known_answers import measured_half_width
from equipoise_server.mechanisms.prior.plan import PriorParameters, plan_prior, standing_prior
from equipoise_server.mechanisms.prior.support import support_size
from equipoise_server.mechanisms.repair.private_weights import SCORE_ROUNDING, rounding_error
from equipoise_server.mechanisms.repair.statement_repair import SCORE_BITS, half_width_on_grid
from equipoise_server.mechanisms.repair.statement_repair_plan import choose_noise
from equipoise_server.mechanisms.sparse_vector import SparseVector

PRIOR_SHARE = Fraction(1, 2)  # of the budget
MAX_STAGES = 64
MAX_USEFUL_WIDTH = 1 / 4  # the largest half-width that is worth a test
FADING = Fraction(1, 2)  # of a stage's budget: what the next one gets
FALSE_POSITIVES = Fraction(1, 4)  # expected in the first stage where the hypothesis is right
PASSED = 0.5  # of the largest error that is expected: stages with smaller thresholds are passed through
TEST_SHARES = tuple(1 - Fraction(1, 2**power) for power in range(2, 7))  # of a stage's budget


@canonical_object
class PriorOnlineParameters(Parameters):
    """Public parameters of a session that starts from a prior.

    `prior`: what is measured. `chance`: that any interval of the measurement misses its truth.
    `measured_half_width`: of the single cells that it holds, at most, in units of 2^-40.
    `stages`: one for each update.
    """

    prior: PriorParameters = key("prior", codec_of(PriorParameters))
    chance: Fraction = key("chance", FRACTION)
    measured_half_width: int = key("told_half_width", COUNT)
    stages: tuple[Stage, ...] = key("stages", list_of(codec_of(Stage)))

    @property
    def promise(self) -> int:
        """The largest half-width of a certified answer, in units of 2^-40."""
        return max(self.measured_half_width, *(stage.promise for stage in self.stages))

    def widest_measured(self, stage: Stage | None) -> int:
        """Return up to which half-width the measurement answers: what a test would say, after all updates anything.

        `stage`: the one in force; None after the last update.
        """
        return self.promise if stage is None else max(self.measured_half_width, stage.certified_half_width)


def plan_from_prior(setting: PublicParameters, prior: str) -> PriorOnlineParameters:
    """Plan the measurement and as many stages as have useful half-widths.

    Args:
        setting: the public parameters.
        prior: `OWN`, measured with a part of the budget, or `STANDING`, which leaves all of it to the stages.

    Raises:
        InvalidArgument: there is nothing that a prior could be made of (`plan_prior`, `standing_prior`).
        BudgetExhausted: the budget is too small for the measurement, or for one update.
    """
    length = session_length(setting, slotted=False)
    rho, chance = Fraction(usable_rho(setting.data_budget), RHO_UNIT), Fraction(setting.beta) / 4
    measured = standing_prior(setting) if prior == STANDING else plan_prior(setting, PRIOR_SHARE * rho)
    left = rho - measured.rho
    forced = min(length, whole(setting.options, "updates", 0))
    best: tuple[Stage, ...] = ()
    for count in [forced] if forced else range(1, min(length, MAX_STAGES) + 1):
        stages = _stages(setting, length, left, count)
        if not stages or (best and stages[-1].promise > MAX_USEFUL_WIDTH * 2**GRID_BITS):
            break
        best = stages
    if not best:
        raise BudgetExhausted("data_budget: is too small for a prior and so many updates; raise it")
    return PriorOnlineParameters(measured, chance, measured_half_width(measured, chance, setting.records), best)


def prior_events(setting: PublicParameters, parameters: PriorOnlineParameters) -> list[PrivacyEvent]:
    """Return what a session costs the people in the table: a measurement of its own, and all stages."""
    events = [*parameters.prior.events(), *stage_events(parameters.stages)]
    truncated = parameters.prior.truncation() + stage_truncation(setting, parameters.stages)
    return with_samplers(events, truncated, setting.data_budget.epsilon)


def expected_error(setting: PublicParameters, parameters: PriorOnlineParameters) -> float:
    """Return the mean error over all declared queries that is expected, as a fraction of the records.

    Statements that meet a stage whose threshold is small beside what the prior errs by are answered with that
    stage's noise, one for each such stage; all others as the prior answers them. On Adult, sessions of 1, 5, 12 and
    35 three-way tables are expected to err by 0.0008, 0.0015, 0.0005 and 0.0003, and do by 0.0008, 0.0011, 0.0004
    and 0.0003.
    """
    length = session_length(setting, slotted=False)
    prior_error = expected_of_session(parameters.prior, setting)
    tested = PASSED * expected_largest(parameters.prior, setting) * (setting.records << SCORE_BITS)
    passed = [stage for stage in parameters.stages if stage.threshold < tested][:length]
    fresh_errors = [fresh_error(setting, stage.noise) for stage in passed]
    return math.fsum([*fresh_errors, (length - len(fresh_errors)) * prior_error]) / length


def _stages(setting: PublicParameters, length: int, rho: Fraction, count: int) -> tuple[Stage, ...]:
    """Divide `rho` among so many stages; none where a stage gets less than samplers can draw."""
    first = rho * (1 - FADING) / (1 - FADING**count)
    stages = []
    for place in range(count):
        tried = [_stage(setting, length, first * FADING**place, share, place, count) for share in TEST_SHARES]
        possible = [stage for stage in tried if stage]
        if not possible:
            return ()
        stages.append(min(possible, key=lambda each: each.promise))
    return tuple(stages)


def _stage(
    setting: PublicParameters, length: int, rho: Fraction, share: Fraction, place: int, count: int
) -> Stage | None:
    """Make a stage that costs `rho`, of which its tests get a share.

    A quarter of beta is the measurement's; the tests, the thresholds and the answers of all stages have a quarter
    each.
    """
    epsilon, scale = epsilon_within(share * rho), setting.records << SCORE_BITS
    if min(epsilon, epsilon_within((1 - share) * rho)) < MIN_EPSILON:
        return None
    part = Fraction(setting.beta) / 4
    vector = SparseVector(epsilon, 1 << SCORE_BITS, 0, 1)
    deceived = vector.test_noise.quantile(part / length) + vector.threshold_noise.quantile(part / count)
    threshold = vector.test_noise.quantile(FALSE_POSITIVES / length)
    if "threshold" in setting.options:
        threshold = math.floor(real(setting.options, "threshold", 0.0) * scale / math.sqrt(FADING) ** place)
    noise, half_widths = choose_noise(setting, (1 - share) * rho, float(part / setting.queries))
    rounding = math.ceil(rounding_error(setting.records, support_size(setting.axes)) * 2.0**GRID_BITS)
    return Stage(
        test_epsilon=epsilon,
        threshold=threshold,
        noise=noise,
        reach=min(1 << GRID_BITS, max(half_widths) + rounding),
        certified_half_width=half_width_on_grid(threshold + deceived + SCORE_ROUNDING, scale),
        noise_half_widths=half_widths,
    )
