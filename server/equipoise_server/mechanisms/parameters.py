"""The encoding of a mechanism's public parameters in its plan: canonical JSON with declared keys."""

from __future__ import annotations

from typing import Self

from equipoise.records.codec import codec_of


class Parameters:
    """The base class of every mechanism's parameters. Each subclass is a `canonical_object`.

    Fractions are written as `numerator/denominator`.
    """

    def to_json(self) -> str:
        """Write all parameters as canonical JSON."""
        return codec_of(type(self)).to_text(self)

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Read what `to_json` wrote. Raises `VerificationFailed` for anything else."""
        return codec_of(cls).from_text(text, "the plan")
