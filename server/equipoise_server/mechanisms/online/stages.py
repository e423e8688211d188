"""The stages of a session of `online`: each ends with an update."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import groupby

from equipoise.accounting import PrivacyEvent, PureDpEvent
from equipoise.records.codec import COUNT, FRACTION, INTEGER, canonical_object, key
from equipoise_server.mechanisms.interface import PublicParameters
from equipoise_server.mechanisms.noise_calibration import MAX_MOVED, NOISE, NOISE_HALF_WIDTHS, AnswerNoise
from equipoise_server.mechanisms.online.interface import session_length
from equipoise_server.mechanisms.repair.statement_repair import SCORE_BITS
from equipoise_server.mechanisms.sparse_vector import SparseVector


@canonical_object
class Stage:
    """Public: the tests until one update, and the statement that is answered afresh for it.

    `test_epsilon`: of one AboveThreshold; `threshold`: a score in units of 2^-16 records. `noise`: of the statement
    answered afresh. `reach`: in units of 2^-40, how far its fractions may be from the truth. `certified_half_width`
    of answers from the hypothesis and `noise_half_widths` of the answer with noise, by how much the statement's
    counts move (1: predicates, 2: marginals), in units of 2^-40.
    """

    test_epsilon: Fraction = key("test_epsilon", FRACTION)
    threshold: int = key("threshold", INTEGER)
    noise: AnswerNoise = key("noise", NOISE)
    reach: int = key("reach", COUNT)
    certified_half_width: int = key("certified_half_width", COUNT)
    noise_half_widths: tuple[int, int] = key("noise_half_widths", NOISE_HALF_WIDTHS)

    @property
    def vector(self) -> SparseVector:
        """The sparse vector that tests the hypothesis."""
        return SparseVector(self.test_epsilon, 1 << SCORE_BITS, self.threshold, 1)

    @property
    def promise(self) -> int:
        """The largest half-width of an answer of this stage, in units of 2^-40."""
        return max(self.certified_half_width, *self.noise_half_widths)


def stage_events(stages: Sequence[Stage]) -> list[PrivacyEvent]:
    """Return what all stages cost the people in the table, whether or not they end.

    Each is one AboveThreshold (`accounting.sparse_vector_rho`) and one statement answered afresh.
    """
    events: list[PrivacyEvent] = []
    for stage, alike in groupby(stages):
        updates = len(list(alike))
        events += [PureDpEvent("detection", stage.test_epsilon, updates), stage.noise.part(updates)]
    return events


def stage_truncation(setting: PublicParameters, stages: Sequence[Stage]) -> Fraction:
    """Return the total variation of all samplers of a session: every test may be in any stage, and every answer."""
    thresholds = sum((stage.vector.threshold_noise.truncation_delta() for stage in stages), Fraction(0))
    tests = max(stage.vector.test_noise.truncation_delta() for stage in stages)
    answers = max(stage.noise.law(MAX_MOVED).truncation_delta() for stage in stages)
    return thresholds + session_length(setting, slotted=False) * tests + setting.queries * answers
