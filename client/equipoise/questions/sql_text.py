"""Divides SQL text into statements, before any of it is parsed.

Comments are left out, and literals and names are replaced by their places, so that what differs in these only is
parsed once. Nothing but words, names, literals and a few signs may stand outside of quotes: what means something
else in another dialect is refused here. Lengths and depths are limited, as parsers are recursive.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import accumulate
from typing import NoReturn

from equipoise.errors import InvalidArgument

MAX_TEXT = 1 << 26  # characters of all statements together
MAX_STATEMENT = 1 << 16  # characters of one
MAX_TOKENS = 4_000  # of one
MAX_NESTED = 16  # parentheses and CASEs within one another

FIRST_NUMBER = 9_000_000_000  # how the parser is shown numbers: by their place, as numbers that nobody writes
MARK = "@"  # how the parser is shown texts and names: by their place, after a sign that stands for nothing else

_TOKEN = re.compile(
    r"""(?P<space>\s+|--[^\n]*|/\*[^*/]*(?:(?:\*(?!/)|/(?!\*))[^*/]*)*\*/)
    |(?P<text>'(?:[^']|'')*')
    |(?P<name>"(?:[^"]|"")+")
    |(?P<number>(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)
    |(?P<word>[^\W\d]\w*)
    |(?P<end>;)
    |(?P<sign><=|>=|<>|!=|/(?!\*)|[-+*%(),.<>=])
    |(?P<unreadable>.)""",
    re.VERBOSE | re.DOTALL,
)
_QUOTES = dict.fromkeys("\u2018\u2019\u00b4", "'text'") | dict.fromkeys("`[]\u201c\u201d\u201e", '"name"')
_GLUED = frozenset({"text", "name", "number", "word"})  # two of these need something between them


@dataclass(frozen=True)
class SqlStatement:
    """One statement of a text, or a run of its tokens.

    Attributes:
        text: the whole text.
        explain: whether `EXPLAIN` stood before the statement.
        kinds: of each token: `text`, `name`, `number`, `word` or `sign`. A word for an attribute is a `name`.
        tokens: as they were written.
        positions: where each begins in the text.
        before: what the parser is shown before them, such as `SELECT 1 WHERE `.
    """

    text: str
    explain: bool = False
    kinds: list[str] = field(default_factory=list)
    tokens: list[str] = field(default_factory=list)
    positions: list[int] = field(default_factory=list)
    before: str = ""

    @cached_property
    def template(self) -> str:
        """What is parsed: the tokens with a space between them, literals and names as their places."""
        return self.before + " ".join(self._shown())

    def run(self, first: int, stop: int, before: str) -> SqlStatement:
        """Returns some of the tokens, to be parsed after `before`."""
        within = slice(first, stop)
        return SqlStatement(
            self.text, self.explain, self.kinds[within], self.tokens[within], self.positions[within], before
        )

    def said(self, place: int) -> str:
        """Returns what the literal or name at a place says: without its quotes; a number as it was written."""
        token = self.tokens[place]
        quote = token[0]
        return token[1:-1].replace(quote * 2, quote) if quote in "'\"" else token

    def refuse(self, offset: int, problem: str) -> NoReturn:
        """Raises `InvalidArgument` that names the line and column of what stands at `offset` of the template."""
        ends = accumulate(len(shown) + 1 for shown in self._shown())
        place = sum(end <= offset - len(self.before) for end in ends)
        refuse(self.text, self.positions[min(place, len(self.positions) - 1)], problem)

    def _shown(self) -> Iterator[str]:
        for place, (kind, token) in enumerate(zip(self.kinds, self.tokens, strict=True)):
            if kind == "number":
                yield str(FIRST_NUMBER + place)
            elif kind == "text":
                yield f"'{MARK}{place}'"
            else:
                yield f'"{MARK}{place}"' if kind == "name" else token


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


def statements_of(text: str, names: frozenset[str], keywords: frozenset[str]) -> Iterator[SqlStatement]:
    """Yields the statements of a text, which `;` parts.

    Args:
        text: SQL.
        names: words that name an attribute, in capitals, unless `(` or a text follows them.
        keywords: words that mean something of their own, in capitals. Any other one after AS is a name, too.

    Raises:
        InvalidArgument: the text is too long, a statement is too long or too deeply nested, or something in it is
            neither a word, a name, a literal nor a sign of the subset.
    """
    if len(text) > MAX_TEXT:
        raise InvalidArgument("sql", f"is longer than {MAX_TEXT:,} characters")
    draft = _Draft(text, names, keywords)
    for match in _TOKEN.finditer(text):
        kind = match.lastgroup
        if kind == "space":
            continue
        if kind == "end":
            if draft.statement.tokens:
                yield draft.statement
            draft = _Draft(text, names, keywords)
        else:
            draft.add(str(kind), match[0], match.start())
    if draft.statement.tokens:
        yield draft.statement


def _unreadable(sign: str) -> str:
    if sign in "'\"":
        return f"the quote {sign} is never closed"
    if sign == "/":
        return "the comment is never closed, or holds another one"
    if sign == "\0":
        return "is a NUL, which no SQL holds"
    if sign in _QUOTES:
        return f"{sign} is no quote of SQL; write {_QUOTES[sign]}"
    return f"{sign!r} stands for nothing outside of quotes here; docs/sql.md lists what can be asked"


class _Draft:
    """The tokens of a statement, as they come."""

    def __init__(self, text: str, names: frozenset[str], keywords: frozenset[str]) -> None:
        self.statement = SqlStatement(text)
        self._names, self._keywords = names, keywords
        self._nested: list[str] = []
        self._last, self._last_end = "", -1

    def add(self, kind: str, token: str, position: int) -> None:
        statement = self.statement
        if kind == "unreadable":
            refuse(statement.text, position, _unreadable(token))
        if position == self._last_end and kind in _GLUED and self._last in _GLUED:
            refuse(statement.text, position, f"a space is missing before {token[:20]}")
        self._last, self._last_end = kind, position + len(token)
        if kind in ("text", "name"):
            if "\0" in token:
                refuse(statement.text, position + token.index("\0"), _unreadable("\0"))
        elif kind == "word":
            word = token.upper()
            named = statement.tokens and statement.tokens[-1].upper() == "AS" and word not in self._keywords
            if named or word in self._names:
                kind = "name"
            elif not statement.tokens and not statement.explain and word == "EXPLAIN":
                self.statement = replace(statement, explain=True)
                return
            elif word in ("CASE", "END"):
                self._nest(word, position)
        elif token in ("(", ")"):
            self._nest(token, position)
        if statement.kinds and (token == "(" or kind == "text") and statement.kinds[-1] == "name":
            self._no_name()
        statement.kinds.append(kind)
        statement.tokens.append(token)
        statement.positions.append(position)
        if self._last_end - statement.positions[0] > MAX_STATEMENT:
            refuse(
                statement.text, position, f"a statement is longer than {MAX_STATEMENT:,} characters; ask several"
            )
        if len(statement.tokens) > MAX_TOKENS:
            refuse(
                statement.text, position, f"a statement has more than {MAX_TOKENS:,} words and signs; ask several"
            )

    def _nest(self, word: str, position: int) -> None:
        if word in ("(", "CASE"):
            self._nested.append(word)
            if len(self._nested) > MAX_NESTED:
                refuse(self.statement.text, position, f"is nested deeper than {MAX_NESTED} levels; write it flat")
        elif self._nested:
            self._nested.pop()

    def _no_name(self) -> None:
        """What the last token is after all: a function's name, or that of a type."""
        if not self.statement.tokens[-1].startswith('"'):
            self.statement.kinds[-1] = "word"
