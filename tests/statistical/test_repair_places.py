"""The count test that grants repair places: its exact law, from the shipped comparison and the shipped noise.

Neighbours differ in whether one analyst was served badly; what counts is what all others see of it, that is who of
them has a place. Mutants: the stop tested only at positives, a target without noise, the cap left uncharged,
and the data charged for fewer places than the cap.
"""

from __future__ import annotations

import math
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from harness.exact_game import hockey_stick, renyi
from numpy.typing import NDArray
from statistical.exact_repair_places import LOST, largest_delta, neighbours, places_law

from equipoise import accounting
from equipoise_server.mechanisms.repair.repair_places import RepairPlaces
from equipoise_server.randomness.discrete_laplace import DiscreteLaplace
from equipoise_server.randomness.stream import KeyedStream

ENOUGH = 1_000  # a cap that nothing reaches


def only_at_positives(
    places: RepairPlaces, positive: NDArray[np.bool_], target: NDArray[np.int64], slots: NDArray[np.int64]
) -> NDArray[np.bool_]:
    """The mutant whose other slots cannot stop the test."""
    return places.grant(positive, target, np.where(positive, slots, -(10**6)))


def without_target_noise(
    places: RepairPlaces, positive: NDArray[np.bool_], target: NDArray[np.int64], slots: NDArray[np.int64]
) -> NDArray[np.bool_]:
    """The mutant whose target is not noisy."""
    return places.grant(positive, 0 * target, slots)


@pytest.mark.thin(4)
@pytest.mark.parametrize("target", [0, 1, 2])
@pytest.mark.parametrize("epsilon", [Fraction(3, 2), Fraction(2)])
def test_the_count_test_leaks_at_most_epsilon(target: int, epsilon: Fraction) -> None:
    places = RepairPlaces(target, epsilon, ENOUGH)
    assert largest_delta(places, float(epsilon)) <= LOST
    rho = float(accounting.repair_places_rho(epsilon))
    for near, far, seen in neighbours(3):
        law, other = places_law(places, near, seen), places_law(places, far, seen)
        assert sum(law.values()) == pytest.approx(1, abs=1e-4)
        common = {key: chance for key, chance in law.items() if min(chance, other.get(key, 0)) > 1e-4}
        for order in (1.25, 2.0, 8.0):
            assert renyi(common, other, order) <= order * rho + 1e-3


def test_the_charge_is_not_idle() -> None:
    """A little below epsilon there is a delta."""
    assert largest_delta(RepairPlaces(1, Fraction(2), ENOUGH), 1.4) > 0.01


def test_four_slots_leak_no_more_than_three() -> None:
    places = RepairPlaces(1, Fraction(2), ENOUGH)
    near, far, seen = (True, False, True, True), (False, False, True, True), [1, 2, 3]
    for law, other in ((near, far), (far, near)):
        assert hockey_stick(places_law(places, law, seen), places_law(places, other, seen), 2.0) <= LOST


def test_a_stop_tested_only_at_positives_is_caught() -> None:
    places = RepairPlaces(0, Fraction(2), ENOUGH)
    for epsilon in (2.0, 10.0):
        assert largest_delta(places, epsilon, only_at_positives) > 0.1


@pytest.mark.full
def test_a_target_without_noise_is_caught() -> None:
    places = RepairPlaces(0, Fraction(2), ENOUGH)
    assert largest_delta(places, 2.0, without_target_noise, slots=4) > 0.001


@pytest.mark.parametrize("beyond", [0, 1])
def test_the_cap_costs_at_most_its_delta_and_is_not_free(beyond: int) -> None:
    epsilon = Fraction(2)
    places = RepairPlaces(1, epsilon, 1 + beyond)
    leaked = largest_delta(places, 2.0)
    assert LOST < leaked <= accounting.repair_places_delta(epsilon, beyond, 2.0)


@pytest.mark.full
def test_the_tail_of_the_cap_is_the_sum_of_the_law() -> None:
    epsilon = Fraction(3, 2)
    law = DiscreteLaplace(epsilon).law()
    for beyond in (2, 3, 6):
        exact = sum(float(p * q) for z, p in law.items() for w, q in law.items() if z - w > beyond)
        for budget in (0.0, 1.5, 1.6):
            charged = (1 + math.exp(max(budget, 1.5))) * exact
            assert accounting.repair_places_delta(epsilon, beyond, budget) == pytest.approx(charged, rel=1e-6)


def test_the_data_are_charged_for_the_cap() -> None:
    """Everybody is served badly, and each place spends `e`: the law of all that is spent, against both charges."""
    epsilon, places = Fraction(1, 4), RepairPlaces(1, Fraction(1), 3)
    noise = DiscreteLaplace(epsilon)
    masses = {z: float(p) for z, p in noise.law().items()}
    order = 200.0
    one = math.log(sum(p * (p / masses.get(z - 1, p)) ** (order - 1) for z, p in masses.items() if p > 0)) / (
        order - 1
    )
    counted = Counter[int]()
    for (code,), chance in places_law(places, (True,) * 4, [0, 1, 2, 3]).items():
        counted[code.bit_count()] += round(chance * 10**9)
    assert max(counted) == places.cap
    total = sum(counted.values())
    spent = math.log(sum(n / total * math.exp((order - 1) * one * used) for used, n in counted.items())) / (
        order - 1
    )
    charge = float(accounting.pure_rho(epsilon, places.cap))
    assert spent <= order * charge
    # Charging the target, or the mean number of places, would be beaten by a pure bound already: 3 x 1/4.
    assert spent > 0.9 * places.cap * float(epsilon) > places.target * float(epsilon)
    mean = sum(used * n for used, n in counted.items()) / total
    assert spent > mean * one + 0.05


def test_the_sampler_has_the_exact_law() -> None:
    """False alarms: at most 1e-6 (Hoeffding, divided over the outcomes)."""
    places, positive, runs = RepairPlaces(1, Fraction(3, 2), 3), (True, False, True), 3_000
    law = places_law(places, positive, [0, 1, 2])
    stream, seen = KeyedStream.derive(b"\x07" * 32, "test"), Counter[int]()
    for _ in range(runs):
        seen[int(places.granted(np.array(positive), stream) @ (1 << np.arange(3)))] += 1
    allowed = math.sqrt(math.log(2 * len(law) / 1e-6) / (2 * runs))
    for (code,), chance in law.items():
        assert abs(seen[code] / runs - chance) <= allowed


def test_without_a_test_all_or_nobody_has_a_place() -> None:
    positive, stream = np.array([True, False, True]), KeyedStream.derive(b"\x08" * 32, "test")
    assert RepairPlaces(3, Fraction(0), 3).granted(positive, stream).tolist() == [True, False, True]
    assert not RepairPlaces(0, Fraction(0), 0).granted(positive, stream).any()


def test_never_more_places_than_the_cap() -> None:
    places, stream = RepairPlaces(3, Fraction(1, 20), 4), KeyedStream.derive(b"\x09" * 32, "test")
    for _ in range(50):
        assert places.granted(np.ones(30, np.bool_), stream).sum() <= 4
