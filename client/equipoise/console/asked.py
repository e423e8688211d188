"""What a browser has asked, as the pages read it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from equipoise.errors import InvalidArgument

_NUMBER = re.compile(r"[+-]?[0-9]+(\.[0-9]*)?([eE][+-]?[0-9]{1,3})?|[+-]?\.[0-9]+([eE][+-]?[0-9]{1,3})?", re.ASCII)
_WHOLE = re.compile(r"[0-9]{1,15}", re.ASCII)
MAX_PAGE = 10**7


@dataclass(frozen=True)
class Asked:
    """One request.

    Attributes:
        path: the parts of the path that have names.
        query: what follows the question mark.
        form: the fields of the form, each with all of its values.
        files: the files of the form that are not empty.
    """

    path: Mapping[str, str]
    query: Mapping[str, str] = field(default_factory=dict)
    form: Mapping[str, Sequence[str]] = field(default_factory=dict)
    files: Mapping[str, bytes] = field(default_factory=dict)

    @property
    def page(self) -> int:
        """Which page of a list is asked for, from 1."""
        asked = self.query.get("page", "1")
        if not _WHOLE.fullmatch(asked) or not 1 <= int(asked) <= MAX_PAGE:
            raise InvalidArgument("page", "must be a whole number from 1")
        return int(asked)

    def text(self, name: str) -> str:
        """Returns a field of the form, with the line ends that Python has; empty where it is missing."""
        values = self.form.get(name, ())
        return values[-1].replace("\r\n", "\n") if values else ""

    def texts(self, name: str) -> tuple[str, ...]:
        """Returns all values of a field of which a form has several."""
        return tuple(self.form.get(name, ()))

    def number(self, name: str, otherwise: float | None = None) -> float:
        """Returns a number.

        Args:
            name: of the field.
            otherwise: what an empty field stands for; None: it must not be empty.

        Raises:
            InvalidArgument: it is no number, or is missing.
        """
        text = self.text(name).strip()
        if not text and otherwise is not None:
            return otherwise
        if not _NUMBER.fullmatch(text):
            raise InvalidArgument(_words(name), f"must be a number, not {text!r}" if text else "is missing")
        return float(text)

    def whole(self, name: str, otherwise: int | None = None) -> int:
        """Returns a whole number of at least 0.

        Args:
            name: of the field.
            otherwise: what an empty field stands for; None: it must not be empty.

        Raises:
            InvalidArgument: it is no such number, or is missing.
        """
        text = self.text(name).strip().replace(",", "")
        if not text and otherwise is not None:
            return otherwise
        if not _WHOLE.fullmatch(text):
            raise InvalidArgument(_words(name), f"must be a whole number, not {text!r}" if text else "is missing")
        return int(text)

    def needed(self, name: str) -> str:
        """Returns a text that must not be empty. Raises `InvalidArgument`."""
        text = self.text(name).strip()
        if not text:
            raise InvalidArgument(_words(name), "is missing")
        return text


def _words(name: str) -> str:
    return name.replace("_", " ")
