"""What the parser left out of a text, or added to it: it repairs some of what is no SQL, without a word.

What it has read is written as SQL again. Both texts must have the same words and signs, each as often, but for
those that say nothing, and for other names of the same functions.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import NamedTuple

from sqlglot import exp

from equipoise.questions.sql_codes import TOKEN

_TYPED = re.compile(r"CAST\(('@[0-9]+') AS ([A-Z]+)\)")  # how DATE '2013-01-31' is written again
_SAME = {
    "!=": "<>",
    "COUNTIF": "COUNT_IF",
    "DATETIME": "TIMESTAMP",
    "TIMESTAMPNTZ": "TIMESTAMP",
    "QUANTILE_CONT": "PERCENTILE_CONT",
    "VAR_POP": "VARIANCE_POP",
}
_SAYING_NOTHING = frozenset({"ASC", "NULLS", "FIRST", "LAST"})  # where they say what holds without them


class Repair(NamedTuple):
    """A word or sign that was left out of what the parser read, or that it has added."""

    word: str
    added: bool


def repair_of(template: str, root: exp.Expression) -> Repair | None:
    """Returns the first word that differs between a text and what the parser made of it; None for none."""
    written, read = _words(template), _words(_TYPED.sub(r"\2 \1", root.sql()))
    for word in written - read:
        return Repair(word, added=False)
    for word in read - written:
        if word != "AS":  # which may be left out
            return Repair(word, added=True)
    return None


def _words(text: str) -> Counter[str]:
    words = [word.upper() for word in TOKEN.findall(text) if word != " "]
    return Counter(_SAME.get(word, word) for word in words if word not in _SAYING_NOTHING)
