"""What the parser left out of a text, or added to it: it repairs some of what is no SQL, without a word.

What it has read is written as SQL again. Both texts must have the same words and signs, each as often, but for
those that say nothing, and for other names of the same functions.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

from sqlglot import exp

from equipoise.questions.sql_codes import RESERVED, TOKEN

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
_NEEDLESS = frozenset({"AS", "(", ")"})  # which may be left out where SQL is the same without them
_ENDING = frozenset({"END", "NULL", "TRUE", "FALSE"})  # words that a value ends in


class Repair(NamedTuple):
    """A word or sign that was left out of what the parser read, or that it has added."""

    word: str
    added: bool


def repair_of(template: str, root: exp.Expr) -> Repair | None:
    """Returns the first word that differs between a text and what the parser made of it; None for none."""
    written = Counter(_words(template))
    read = Counter(_words(_TYPED.sub(r"\2 \1", root.sql())))
    for word in written - read:
        return Repair(word, added=False)
    for word in read - written:
        if word not in _NEEDLESS:
            return Repair(word, added=True)
    return None


def _words(text: str) -> Iterator[str]:
    """The words and signs that say something. A plus before a number says nothing."""
    tokens = [word.upper() for word in TOKEN.findall(text) if word != " "]
    for before, word, after in zip(["(", *tokens], tokens, [*tokens[1:], ""], strict=False):
        value = before[0].isalnum() and (before not in RESERVED or before in _ENDING)
        positive = word == "+" and after[:1].isdecimal() and not value and before[0] not in "'\")@"
        if not positive and word not in _SAYING_NOTHING:
            yield _SAME.get(word, word)
