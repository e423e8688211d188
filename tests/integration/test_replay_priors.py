"""Replays of rounds from a prior of their own: they agree, and a measurement that was changed is found."""

from __future__ import annotations

import pytest
from harness.released_rounds import Released, measured_wrongly, release

# Where each mechanism measures, and by how many units of 2^-40 a replay's answers may differ.
ROUNDS = {
    "equilibrium": ("equipoise_server.mechanisms.equilibrium.start.measured_for", 0),
    "multiplicative_weights": (
        "equipoise_server.mechanisms.multiplicative_weights.mechanism.measured_for",
        2**20,
    ),
}


@pytest.fixture(scope="module")
def released(tmp_path_factory: pytest.TempPathFactory) -> Released:
    return release(tmp_path_factory.mktemp("released"), ROUNDS, {"prior": "own"})


@pytest.mark.parametrize("name", ROUNDS)
def test_a_round_from_a_prior_is_replayed(released: Released, name: str) -> None:
    found = released.replay(name)
    assert found.difference is None
    assert all(furthest <= tolerance == ROUNDS[name][1] for _, furthest, tolerance in found.ways.values())


@pytest.mark.parametrize("name", ROUNDS)
def test_a_measurement_that_is_not_the_seed_s_is_found(
    released: Released, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ROUNDS[name][0], measured_wrongly)
    assert released.replay(name).failed in ("answers", "synopsis")
