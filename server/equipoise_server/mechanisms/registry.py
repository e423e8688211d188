"""The mechanisms by name."""

from __future__ import annotations

from equipoise.errors import InvalidArgument
from equipoise_server.mechanisms.equilibrium.equilibrium import Equilibrium
from equipoise_server.mechanisms.histogram import Histogram
from equipoise_server.mechanisms.independent_noise import GAUSSIAN, LAPLACE
from equipoise_server.mechanisms.interface import Mechanism
from equipoise_server.mechanisms.projection import Projection
from equipoise_server.mechanisms.weights.multiplicative_weights import MultiplicativeWeights

MECHANISMS: dict[str, Mechanism] = {
    "equilibrium": Equilibrium(),
    "laplace": LAPLACE,
    "gaussian": GAUSSIAN,
    "histogram": Histogram(),
    "projection": Projection(),
    "multiplicative_weights": MultiplicativeWeights(),
}


def mechanism(name: str) -> Mechanism:
    """The mechanism called `name`; "auto" takes the one that promises most, today the only one there is."""
    if name == "auto":
        return MECHANISMS["equilibrium"]
    if name not in MECHANISMS:
        raise InvalidArgument("mechanism", f"unknown; there is auto, {', '.join(sorted(MECHANISMS))}")
    return MECHANISMS[name]
