"""What a round knows of a measurement that was released before: public facts, fixed when it is opened."""

from __future__ import annotations

from hashlib import sha256
from typing import Any

from equipoise.errors import InvalidArgument, VerificationFailed
from equipoise.records.codec import HASH, TEXT, Codec, canonical_object, codec_of, key
from equipoise.residuals.noise import ResidualNoise
from equipoise_server.mechanisms.interface import PublicParameters
from equipoise_server.mechanisms.residuals.measurement import Measured

OPTION = "standing"


@canonical_object
class ReleasedNumbers:
    """Numbers that were released: the round that did so, and the SHA-256 of their bytes."""

    round_id: str = key("round", TEXT)
    digest: bytes = key("digest", HASH)


@canonical_object
class ReleasedMeasurement:
    """A released measurement: its round, the SHA-256 of its numbers' bytes, and the noise in them."""

    round_id: str = key("round", TEXT)
    digest: bytes = key("digest", HASH)
    noise: ResidualNoise = key("noise", codec_of(ResidualNoise))

    @property
    def numbers(self) -> ReleasedNumbers:
        """Which numbers it is, without their noise."""
        return ReleasedNumbers(self.round_id, self.digest)

    def as_option(self) -> Any:
        """Return the JSON value that names the measurement in the terms of a round."""
        return RELEASED.encode(self)


RELEASED: Codec[ReleasedMeasurement] = codec_of(ReleasedMeasurement)


def named_measurement(setting: PublicParameters) -> ReleasedMeasurement:
    """Return the measurement in the options. Raises `InvalidArgument` where there is none, or of another schema."""
    field = f"options.{OPTION}"
    if OPTION not in setting.options:
        raise InvalidArgument(field, "must name a measurement of the dataset")
    try:
        named = RELEASED.decode(setting.options[OPTION], field)
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
