"""Predicted running times: what the steps of a fit depend on."""

from __future__ import annotations

import pytest

from equipoise_server.mechanisms.running_time import fitting_steps


@pytest.mark.parametrize(
    ("deviation", "queries", "seen"),
    [(1.01e-3, 14_955, 47), (1.01e-3, 427, 31), (1.71e-3, 1_525, 37), (4.5e-4, 57, 42), (4.5e-4, 8, 23)],
)
def test_steps_of_fits_are_predicted_as_they_were_seen_on_adult(deviation: float, queries: int, seen: int) -> None:
    assert seen / 1.5 <= fitting_steps(deviation, queries) <= 1.5 * seen
