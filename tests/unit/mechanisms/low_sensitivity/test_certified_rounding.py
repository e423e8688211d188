"""Half-widths of statistics that a hypothesis answers cover what the scale of its tests rounds away, too."""

from __future__ import annotations

from fractions import Fraction

import pytest
from harness.statistics_session import MECHANISM, setting

from equipoise_server.mechanisms.epochs.plan import plan_epochs
from equipoise_server.mechanisms.interface import GRID_BITS
from equipoise_server.mechanisms.low_sensitivity.parameters import LowSensitivityParameters, sizes

CANDIDATES = 21


@pytest.mark.parametrize("sensitivity", ["1/4000", "1/10000"])
def test_all_half_widths_exceed_those_on_the_scale_by_a_unit_of_it_and_one_of_the_grid(sensitivity: str) -> None:
    """A test compares what stands for the value, which is up to so much below it."""
    case = setting(sensitivity=sensitivity)
    told = LowSensitivityParameters.from_json(MECHANISM.plan(case).parameters).epochs
    scaled = plan_epochs(case, sizes(case, CANDIDATES))
    assert told.scale == scaled.scale
    away = Fraction(1 << GRID_BITS, told.scale.units) + 1
    assert told.certified_half_width >= scaled.certified_half_width + away
    for own, other in zip(told.noise_half_widths, scaled.noise_half_widths, strict=True):
        assert own >= other + away
