"""Once the count test has stopped nobody gets a place any more, whatever noise later slots draw."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from equipoise_server.mechanisms.repair.repair_places import RepairPlaces

EVERYBODY = np.ones(6, dtype=np.bool_)
NONE = np.zeros(1, dtype=np.int64)


def test_whoever_comes_after_the_stop_gets_no_place_though_later_noise_would_not_stop() -> None:
    """Whoever has the slot of the stop itself still gets one."""
    noise = np.array([-50, -50, 50, -50, -50, -50])
    granted = RepairPlaces(3, Fraction(1, 10), 50).grant(EVERYBODY, NONE, noise)
    assert granted.tolist() == [True, True, True, False, False, False]


def test_no_noise_grants_more_places_than_the_cap() -> None:
    granted = RepairPlaces(2, Fraction(1, 10), 4).grant(EVERYBODY, NONE, np.full(6, -50))
    assert granted.tolist() == [True] * 4 + [False] * 2
