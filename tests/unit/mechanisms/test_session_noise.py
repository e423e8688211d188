"""Noise of sessions: its scale, its streams, and the rounding that their half-widths cover."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from harness.statistics_session import MECHANISM as LOW_SENSITIVITY
from harness.statistics_session import setting as statistics_setting

from equipoise.queries.fixed_point import on_grid
from equipoise_server.mechanisms.epochs.epochs import EpochParameters, Epochs
from equipoise_server.mechanisms.epochs.question import Scale
from equipoise_server.mechanisms.interface import GRID_BITS
from equipoise_server.mechanisms.low_sensitivity.parameters import LowSensitivityParameters, sizes
from equipoise_server.mechanisms.noise_calibration import GaussianNoise
from equipoise_server.randomness.discrete_gaussian import DiscreteGaussian
from equipoise_server.randomness.stream import KeyedStream

SEED = bytes(range(32))
EPOCHS = EpochParameters(
    scale=Scale(1000, 3),
    epochs=2,
    target=10**6,
    cap=2 * 10**6,
    ending_epsilon=Fraction(1, 2),
    records=8,
    step=1,
    threshold=0,
    test_epsilon=Fraction(1, 2),
    noise=GaussianNoise(Fraction(7)),
    guard=0,
    certified_half_width=1,
    noise_half_widths=(1, 1),
)


@pytest.fixture
def streams(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, ...]]:
    """The labels of every stream that is derived while a test runs."""
    seen: list[tuple[str, ...]] = []
    derive = KeyedStream.derive

    def spy(seed: bytes, *labels: str) -> KeyedStream:
        seen.append(labels)
        return derive(seed, *labels)

    monkeypatch.setattr(KeyedStream, "derive", spy)
    return seen


@pytest.mark.parametrize("sensitivity", [1, 3, 1024])
@pytest.mark.parametrize("l1_sensitivity", [1, 2])
def test_a_session_s_answers_cost_what_is_charged_on_every_scale(sensitivity: int, l1_sensitivity: int) -> None:
    """So many cells move by the scale's sensitivity each: their squared moves over twice the variance."""
    law = replace(EPOCHS, scale=Scale(10**6, sensitivity)).answer_noise(l1_sensitivity)
    assert isinstance(law, DiscreteGaussian)
    assert l1_sensitivity * sensitivity**2 / (2 * law.variance) <= EPOCHS.noise.rho(1)


def test_every_slot_s_count_noise_is_its_own(streams: list[tuple[str, ...]]) -> None:
    """Over more slots than are drawn for at a time."""
    Epochs(EPOCHS, 4, 700, SEED).finish()
    assert len(streams) == len(set(streams))
    assert len([labels for labels in streams if labels[0] == "epochs/counts"]) == 3


def test_a_statistic_s_bound_covers_that_it_is_rounded_to_the_scale() -> None:
    """The values that lose most by it, with noise that reaches just as far as it may."""
    case = statistics_setting()
    parameters = LowSensitivityParameters.from_json(LOW_SENSITIVITY.plan(case).parameters).epochs
    units, one = parameters.scale.units, 1 << GRID_BITS
    reach = parameters.answer_noise(1).quantile(Fraction(case.beta) / 8 / sizes(case, 21).cells)
    for stands_for in range(units // 2, units // 2 + 50):
        value = -(-(stands_for + 1) * one // units) - 1
        assert value * units >> GRID_BITS == stands_for
        told = int(on_grid(np.array([stands_for - reach], dtype=np.int64), units)[0])
        assert value - told <= parameters.noise_half_widths[0]
