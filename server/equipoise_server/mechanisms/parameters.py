"""The public parameters of a run as a plan keeps them: canonical JSON, each under its declared key."""

from __future__ import annotations

from typing import Self

from equipoise.records.codec import codec_of


class Parameters:
    """Base of every mechanism's parameters, each a `canonical_object`; fractions are `numerator/denominator`."""

    def to_json(self) -> str:
        """Write all parameters as canonical JSON."""
        return codec_of(type(self)).to_text(self)

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Read what `to_json` wrote. Raises `VerificationFailed` for anything else."""
        return codec_of(cls).from_text(text, "the plan")
