"""Differences between the recorded facts of a round and the expected ones, named one at a time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True)
class Difference:
    """A difference between a recorded or stored value and the expected one; both are empty if `what` says it all.

    `message` is a sequence number, counted from 1; `query` is a number in the analyst's workload, counted from 0.
    """

    what: str
    recorded: str = ""
    expected: str = ""
    analyst: str = ""
    message: int | None = None
    query: int | None = None

    def __str__(self) -> str:
        places = [
            *([f"analyst {self.analyst}"] if self.analyst else []),
            *([] if self.message is None else [f"message {self.message}"]),
            *([] if self.query is None else [f"query {self.query}"]),
        ]
        subject = ", ".join([*places, self.what])
        return f"{subject}: {self.recorded} is there, but it must be {self.expected}" if self.recorded else subject

    def as_json(self) -> dict[str, object]:
        """Return every field, with null for the empty ones."""
        return {name: None if value == "" else value for name, value in asdict(self).items()}


class Differs(Exception):
    """A check has found a difference."""

    def __init__(self, difference: Difference) -> None:
        super().__init__(str(difference))
        self.difference = difference


def same(what: str, recorded: object, expected: object, analyst: str = "") -> None:
    """Raise `Differs` unless the two are equal. Objects are compared field by field, and bytes are shown in hex.

    Args:
        what: names what is compared.
        recorded: what the store or the record has.
        expected: what was computed again.
        analyst: whose it is; empty: nobody's alone.
    """
    if isinstance(recorded, Mapping) and isinstance(expected, Mapping):
        for name in sorted({*recorded, *expected}):
            same(f"{what}.{name}", recorded.get(name), expected.get(name), analyst)
    elif recorded != expected:
        raise Differs(Difference(what, as_text(recorded), as_text(expected), analyst))


def as_text(value: Any) -> str:
    """Return a value as the reader of a difference sees it."""
    if value is None:
        return "nothing"
    return value.hex() if isinstance(value, bytes) else str(value)
