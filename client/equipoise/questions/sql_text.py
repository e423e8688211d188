"""Divides SQL text into statements, before any of it is parsed.

Comments are left out, and literals are replaced by their numbers, so that statements which differ in literals only
are parsed once. Nothing but words, names, literals and a few signs may stand outside of quotes: what means
something else in another dialect is refused here. Lengths and depths are limited, as parsers are recursive.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NoReturn

from equipoise.errors import InvalidArgument

MAX_TEXT = 1 << 26  # characters of all statements together
MAX_STATEMENT = 1 << 16  # characters of one
MAX_TOKENS = 4_000  # of one
MAX_NESTED = 16  # parentheses and CASEs within one another

FIRST_NUMBER = 9_000_000_000  # how the parser is shown numbers: by their place, as numbers that nobody writes
TEXT_MARK = "@"  # how the parser is shown texts: by their place, after a sign that stands for nothing else

_TOKEN = re.compile(
    r"""(?P<space>\s+|--[^\n]*|/\*[^*/]*(?:(?:\*(?!/)|/(?!\*))[^*/]*)*\*/)
    |(?P<text>'(?:[^']|'')*')
    |(?P<name>"(?:[^"]|"")+")
    |(?P<number>(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)
    |(?P<word>[^\W\d]\w*)
    |(?P<end>;)
    |(?P<sign><=|>=|<>|!=|/(?!\*)|[-+*%(),.<>=])""",
    re.VERBOSE,
)
_QUOTED = ("text", "name")
_GLUED = ("text", "name", "number", "word")  # two of these need something between them


@dataclass(frozen=True)
class SqlStatement:
    """One statement of a text.

    Attributes:
        template: what is parsed: the tokens with a space between them, literals as their numbers.
        literals: what the literals say: a `str` without its quotes, or a number as it was written.
        numeric: whether each literal is a number.
        explain: whether `EXPLAIN` stood before it.
        places: of each token, where it begins in the template and in the text: two ascending lists.
        text: the whole text.
    """

    template: str
    literals: tuple[str, ...]
    numeric: tuple[bool, ...]
    explain: bool
    places: tuple[list[int], list[int]]
    text: str

    def refuse(self, offset: int, problem: str) -> NoReturn:
        """Raises `InvalidArgument` that names the line and column of what stands at `offset` of the template."""
        inside, outside = self.places
        refuse(self.text, outside[max(0, bisect_right(inside, offset) - 1)], problem)


def refuse(text: str, position: int, problem: str) -> NoReturn:
    """Raises `InvalidArgument` that names the line and column of a position in the text.

    Args:
        text: all that was written.
        position: in characters, from 0.
        problem: what is wrong there, and what to do instead.
    """
    line = text.count("\n", 0, position) + 1
    column = position - (text.rfind("\n", 0, position) + 1) + 1
    raise InvalidArgument(f"sql, line {line}, column {column}", problem)


def statements_of(text: str) -> Iterator[SqlStatement]:
    """Yields the statements of a text, which `;` parts.

    Raises:
        InvalidArgument: the text is too long, a statement is too long or too deeply nested, or something in it is
            neither a word, a name, a literal nor a sign of the subset.
    """
    if len(text) > MAX_TEXT:
        raise InvalidArgument("sql", f"is longer than {MAX_TEXT:,} characters")
    position, draft = 0, _Draft(text)
    while position < len(text):
        token = _TOKEN.match(text, position)
        if token is None:
            refuse(text, position, _unreadable(text[position]))
        kind = str(token.lastgroup)
        if kind == "end":
            if draft.tokens:
                yield draft.statement()
            draft = _Draft(text)
        elif kind != "space":
            draft.add(kind, token[0], position)
        position = token.end()
    if draft.tokens:
        yield draft.statement()


def _unreadable(sign: str) -> str:
    if sign in "'\"":
        return f"the quote {sign} is never closed"
    if sign == "/":
        return "the comment is never closed, or holds another one"
    if sign == "\0":
        return "is a NUL, which no SQL holds"
    return f"{sign!r} stands for nothing outside of quotes here; docs/sql.md lists what can be asked"


class _Draft:
    """The tokens of a statement, as they come."""

    def __init__(self, text: str) -> None:
        self.tokens: list[str] = []
        self._text = text
        self._inside: list[int] = []
        self._outside: list[int] = []
        self._length = 0
        self._literals: list[str] = []
        self._numeric: list[bool] = []
        self._nested: list[str] = []
        self._last, self._last_end = "", -1
        self._explain = False

    def add(self, kind: str, token: str, position: int) -> None:
        if position == self._last_end and kind in _GLUED and self._last in _GLUED:
            refuse(self._text, position, f"a space is missing before {token[:20]}")
        if kind in _QUOTED and ("\0" in token):
            refuse(self._text, position + token.index("\0"), _unreadable("\0"))
        self._last, self._last_end = kind, position + len(token)
        if not self.tokens and not self._explain and token.upper() == "EXPLAIN":
            self._explain = True
            return
        if self._outside and self._last_end - self._outside[0] > MAX_STATEMENT:
            refuse(self._text, position, f"a statement is longer than {MAX_STATEMENT:,} characters; ask several")
        if len(self.tokens) == MAX_TOKENS:
            refuse(self._text, position, f"a statement has more than {MAX_TOKENS:,} words and signs; ask several")
        self._nest(token, position)
        self._inside.append(self._length)
        self._outside.append(position)
        shown = self._literal(kind, token) if kind in ("text", "number") else token
        self.tokens.append(shown)
        self._length += len(shown) + 1

    def _nest(self, token: str, position: int) -> None:
        word = token.upper()
        if word in ("(", "CASE"):
            self._nested.append(word)
            if len(self._nested) > MAX_NESTED:
                refuse(self._text, position, f"is nested deeper than {MAX_NESTED} levels; write it flat")
        elif word in (")", "END") and self._nested:
            self._nested.pop()

    def _literal(self, kind: str, token: str) -> str:
        place = len(self._literals)
        self._numeric.append(kind == "number")
        if kind == "number":
            self._literals.append(token)
            return str(FIRST_NUMBER + place)
        self._literals.append(token[1:-1].replace("''", "'"))
        return f"'{TEXT_MARK}{place}'"

    def statement(self) -> SqlStatement:
        literals, places = tuple(self._literals), (self._inside, self._outside)
        template = " ".join(self.tokens)
        return SqlStatement(template, literals, tuple(self._numeric), self._explain, places, self._text)
