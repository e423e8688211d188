"""The encoding of a mechanism's public parameters in its plan: canonical JSON with declared keys."""

from __future__ import annotations

from typing import Self, TypeVar

from equipoise.errors import VerificationFailed
from equipoise.records.canonical import parse_canonical_json
from equipoise.records.codec import codec_of

THE_PLAN = "the plan"  # as errors call what is read


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
        return codec_of(cls).from_text(text, THE_PLAN)


One = TypeVar("One", bound=Parameters)
Other = TypeVar("Other", bound=Parameters)


def read_either(text: str, one: type[One], other: type[Other]) -> One | Other:
    """Read the parameters of a mechanism that has two kinds of plans.

    Args:
        text: what `to_json` wrote.
        one: the parameters of the one kind of plans.
        other: those of the other kind. No two kinds have the same keys.

    Raises:
        VerificationFailed: the text has the keys of neither, or is not what `to_json` writes.
    """
    written = parse_canonical_json(text.encode("utf-8", "surrogatepass"), THE_PLAN)
    for kind in (one, other):
        if isinstance(written, dict) and written.keys() == codec_of(kind).keys.keys():
            return kind.from_json(text)
    raise VerificationFailed(f"{THE_PLAN} has the keys of no parameters of this mechanism")
