"""What a round knows of a measurement that was released before: public facts, fixed when it is opened."""

from __future__ import annotations

from hashlib import sha256

from equipoise.errors import InvalidArgument, VerificationFailed
from equipoise.model.rounds import STANDING_OPTION
from equipoise.residuals.noise import ResidualNoise
from equipoise.residuals.released import RELEASED, ReleasedMeasurement, ReleasedNumbers
from equipoise_server.mechanisms.interface import PublicParameters
from equipoise_server.mechanisms.residuals.measurement import Measured


def named_measurement(setting: PublicParameters) -> ReleasedMeasurement:
    """Return the measurement in the options. Raises `InvalidArgument` where there is none, or of another schema."""
    field = f"options.{STANDING_OPTION}"
    if STANDING_OPTION not in setting.options:
        raise InvalidArgument(field, "must name a measurement of the dataset")
    try:
        named = RELEASED.decode(setting.options[STANDING_OPTION], field)
    except VerificationFailed:
        raise InvalidArgument(field, "does not name a released measurement of the dataset") from None
    if named.noise.sizes != setting.attributes:
        raise InvalidArgument(field, "names a measurement of other attributes")
    return named


def released_numbers(setting: PublicParameters, named: ReleasedNumbers, noise: ResidualNoise) -> Measured:
    """Return the released numbers, which come with the setting of a run.

    Raises `ValueError` for other numbers than the plan names: no answer may come from them.
    """
    if sha256(setting.measured).digest() != named.digest:
        raise ValueError("the numbers are not those of the measurement that the plan names")
    return Measured.from_bytes(noise, setting.records, setting.measured)
