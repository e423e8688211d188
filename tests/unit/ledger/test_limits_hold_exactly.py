"""The limits of a cap hold to their last unit: against the conversion's theorem, to fifty digits."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal, localcontext

import pytest

from equipoise.accounting import DELTA_UNIT, RHO_UNIT, Cost
from equipoise_server.conversion import epsilon_of_rho
from equipoise_server.ledger.caps import Cap, at_order, fits, limits

CAPS = [Cap(1.0, 1e-6), Cap(3.0, 1e-9), Cap(0.1, 1e-5), Cap(20.0, 1e-12), Cap(1.0, 0.3)]
COUNTING = [at_order("order", cap) for cap in CAPS] + [Cap(3.0, 1e-6, 9.0), Cap(8.0, 1e-6, 4.0)]
# Of so large an epsilon the last place of a double is more than a unit, and rounds up here.
COUNTING += [Cap(121793.455, 1e-6, 5.0), Cap(586782.082, 1e-8, 2.0)]


def epsilon_of(divergence: int, order: float, delta: Decimal) -> Decimal:
    """Canonne, Kamath & Steinke 2020, Proposition 12: `r + log(1 - 1/a) - log(delta a) / (a - 1)`."""
    exact = Decimal(order)
    lost = (delta * exact).ln() / (exact - 1)
    return Decimal(divergence) / RHO_UNIT + (1 - 1 / exact).ln() - lost


@pytest.mark.parametrize("cap", COUNTING, ids=str)
def test_the_limits_together_never_convert_to_more_than_the_cap(cap: Cap) -> None:
    assert cap.order is not None
    limit = limits(cap)
    with localcontext() as context:
        context.prec = 50
        rest = Decimal(cap.delta) - Decimal(limit.delta) / DELTA_UNIT
        reached = epsilon_of(limit.divergence, cap.order, rest)
        assert reached <= Decimal(cap.epsilon)
        assert reached >= Decimal(cap.epsilon) * (1 - Decimal("4e-9")) - Decimal("1e-11")
    assert limit.rho == limit.epsilon == 0


@pytest.mark.parametrize("cap", COUNTING, ids=str)
@pytest.mark.parametrize("field", ["divergence", "delta"])
def test_each_limit_is_held_for_itself(cap: Cap, field: str) -> None:
    """A unit beyond one is refused, though nothing at all is counted of the other."""
    limit = limits(cap)
    most = getattr(limit, field)
    assert fits(limit, cap, limit)
    assert fits(Cost(**{field: most}), cap, limit)
    assert not fits(Cost(**{field: most + 1}), cap, limit)
    assert not fits(replace(limit, **{field: most + 1}), cap, limit)


def test_half_of_the_cap_s_delta_is_all_that_may_be_lost_of_it() -> None:
    cap = Cap(3.0, 1e-6, 9.0)
    assert limits(cap).delta == 5 * 10**11
    assert not fits(Cost(delta=5 * 10**11 + 1), cap, limits(cap))


@pytest.mark.parametrize("cap", CAPS, ids=str)
def test_one_round_s_rho_and_epsilon_together_stay_within_the_cap_to_a_unit(cap: Cap) -> None:
    """Where rounds do not add: what is left beside a rho is all that its pair may cost, and not a unit more."""
    limit = limits(cap)
    for part in (2, 3, 10):
        rho = limit.rho // part
        left = Decimal(cap.epsilon) - Decimal(epsilon_of_rho(rho / RHO_UNIT, cap.delta))
        most = int(left * RHO_UNIT)
        assert fits(Cost(rho, most - 1), cap, limit)
        assert not fits(Cost(rho, most + 2), cap, limit)


@pytest.mark.parametrize("cap", CAPS, ids=str)
@pytest.mark.parametrize("field", ["epsilon", "delta"])
def test_one_round_s_pair_stays_within_the_cap_to_a_unit(cap: Cap, field: str) -> None:
    most = int(Decimal(repr(getattr(cap, field))) * {"epsilon": RHO_UNIT, "delta": DELTA_UNIT}[field])
    assert fits(Cost(**{field: most}), cap, limits(cap))
    assert not fits(Cost(**{field: most + 1}), cap, limits(cap))
