"""How much larger than what was paid for the noise of a grant may be said to be: as much as rounding makes it."""

from __future__ import annotations

from fractions import Fraction

import pytest

from equipoise.accounting import RHO_UNIT
from equipoise.verification.grant_checks import rounding_of
from equipoise_server.mechanisms.noise_calibration import GaussianNoise


@pytest.mark.parametrize("persons", [1, 4])
@pytest.mark.parametrize("cost", [3, 10**9, 12_936_364_778, 10**12 // 3, 7 * 10**12 + 1])
def test_a_price_that_is_no_round_number_is_no_lie(cost: int, persons: int) -> None:
    law = GaussianNoise.within(Fraction(cost, RHO_UNIT * persons**2)).law(1)
    larger = law.variance / Fraction(RHO_UNIT * persons**2, 2 * cost)
    assert larger >= 1
    assert float(larger) ** 0.5 <= rounding_of([1, cost], persons) * (1 + 1e-15)
    assert rounding_of([cost], persons) < 1 + 1e-5
    assert rounding_of([], persons) == 1
