"""How a round, a session or a grant names a measurement that was released before: public facts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from equipoise.errors import VerificationFailed
from equipoise.records.codec import HASH, TEXT, Codec, canonical_object, codec_of, key
from equipoise.residuals.noise import ResidualNoise


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


def measurement_from(value: Mapping[str, Any], sizes: tuple[int, ...], field: str) -> ReleasedMeasurement:
    """Return the measurement that a JSON value names.

    Args:
        value: as `ReleasedMeasurement.as_option` writes it.
        sizes: how many categories each attribute of the table has.
        field: what errors call the value.

    Raises:
        VerificationFailed: it names none, or one of other attributes.
    """
    named = RELEASED.decode(value, field)
    if named.noise.sizes != sizes:
        raise VerificationFailed(f"{field}: names a measurement of other attributes")
    return named
