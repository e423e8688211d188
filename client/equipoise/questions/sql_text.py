"""Divides SQL text into statements, before any of it is parsed.

Comments are left out, and literals and names are replaced by their places, so that what differs in these only is
parsed once. Nothing but words, names, literals and a few signs may stand outside of quotes: what means something
else in another dialect is refused here. Lengths and depths are limited, as parsers are recursive.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NoReturn

from equipoise.errors import InvalidArgument
from equipoise.questions.sql_codes import (
    EXPLAIN,
    NAME,
    NAMES,
    NUMBER,
    SPACE,
    STATEMENT,
    TEXT,
    TOKEN,
    UNREADABLE,
    WORD,
    Codes,
    Pieces,
    is_space,
    without_spaces,
)

MAX_TEXT = 1 << 26  # characters of all statements together
MAX_STATEMENT = 1 << 16  # characters of one
MAX_TOKENS = 4_000  # of one
MAX_NESTED = 16  # parentheses and CASEs within one another

FIRST_NUMBER = 9_000_000_000  # how the parser is shown numbers: by their place, as numbers that nobody writes
MARK = "@"  # how the parser is shown texts and names: by their place, after a sign that stands for nothing else

_QUOTES = dict.fromkeys("\u2018\u2019\u00b4", "'text'") | dict.fromkeys("`[]\u201c\u201d\u201e", '"name"')
_GLUED = re.compile(r"[^ s(),][^ s(),]")  # texts, names, numbers and words need something between them
_NAMED = re.compile("(?<=a)w")  # what AS gives
_CALLED = re.compile(r"n(?=[(t])")  # a function's name after all, or that of a type
_BRACKETS = re.compile("[()ce]")
_NEIGHBOURS = {
    re.compile(r"[(,S],|,\)"): "a comma stands between two things",
    re.compile(r"[ut][ut]"): "two values stand side by side: AND, THEN or a comma is missing",
    re.compile("!i"): "NOT stands before IS; write IS NOT, or NOT before the whole condition",
    re.compile("nn"): "two names stand side by side: AS or a comma is missing",
}
_NEIGHBOUR = re.compile("|".join(each.pattern for each in _NEIGHBOURS))


@dataclass(eq=False)
class SqlStatement:
    """One statement of a text, or a run of its tokens.

    Attributes:
        text: the whole text.
        start: where the statement begins in the text, or spaces or comments before it do.
        explain: whether `EXPLAIN` stood before the statement.
        codes: a letter for each token, which says what it is. A word for an attribute is a `NAME`.
        tokens: as they were written.
        skipped: how many tokens of the statement stand before these.
        before: what the parser is shown before them, such as `SELECT 1 WHERE `.
    """

    text: str
    start: int
    explain: bool
    codes: str
    tokens: list[str]
    skipped: int = 0
    before: str = ""

    @cached_property
    def template(self) -> str:
        """What is parsed: the tokens with a space between them, literals and names as their places."""
        return self.before + " ".join(self.shown())

    def run(self, first: int, stop: int, before: str) -> SqlStatement:
        """Returns some of the tokens, to be parsed after `before`."""
        codes, tokens = self.codes[first:stop], self.tokens[first:stop]
        return replace(self, codes=codes, tokens=tokens, skipped=self.skipped + first, before=before)

    def said(self, place: int) -> str:
        """Returns what the literal or name at a place says: without its quotes; a number as it was written."""
        token = self.tokens[place]
        quote = token[0]
        return token[1:-1].replace(quote * 2, quote) if quote in "'\"" else token

    def refuse(self, offset: int, problem: str) -> NoReturn:
        """Raises `InvalidArgument` that names the line and column of what stands at `offset` of the template."""
        ends = itertools.accumulate(len(shown) + 1 for shown in self.shown())
        place = sum(end <= offset - len(self.before) for end in ends)
        wanted = self.skipped + self.explain + max(0, min(place, len(self.tokens) - 1))
        positions = (match.start() for match in TOKEN.finditer(self.text, self.start) if not is_space(match[0]))
        refuse(self.text, next(itertools.islice(positions, wanted, None)), problem)

    def shown(self) -> Iterator[str]:
        """Yields the tokens as the parser is shown them."""
        for place, (code, token) in enumerate(zip(self.codes, self.tokens, strict=True)):
            if code == NUMBER:
                yield str(FIRST_NUMBER + place)
            elif code == TEXT:
                yield f"'{MARK}{place}'"
            else:
                yield f'"{MARK}{place}"' if code in NAMES else token


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
    known = Codes(names, keywords)
    pieces = Pieces(known)
    for match in STATEMENT.finditer(text):
        start, stop = match.span()
        if stop - start > MAX_TOKENS:
            _check_size(text, start, stop)
        written = text[start:stop].split(" ")
        codes = " ".join(map(pieces.__getitem__, written))
        tokens = [*itertools.chain.from_iterable(map(pieces.tokens.__getitem__, written))]
        if UNREADABLE in codes or _GLUED.search(codes):
            tokens, codes = _read_tokens(text, start, stop, known)
        codes = _CALLED.sub(WORD, _NAMED.sub(NAME, codes.replace(SPACE, "")))
        explain = codes.startswith(EXPLAIN)
        statement = SqlStatement(text, start, explain, codes[explain:], tokens[explain:])
        if statement.tokens:
            _check_depth(statement)
            _check_neighbours(statement)
            yield statement


def _check_neighbours(statement: SqlStatement) -> None:
    """Raises `InvalidArgument` for what the parser leaves out, or adds, between two tokens."""
    if _NEIGHBOUR.search(statement.codes) is None:
        return
    for pattern, problem in _NEIGHBOURS.items():
        if (found := pattern.search(statement.codes)) is not None:
            offset = sum(len(shown) + 1 for shown in itertools.islice(statement.shown(), found.end() - 1))
            statement.refuse(offset, problem)


def _check_size(text: str, start: int, stop: int) -> None:
    """Raises `InvalidArgument` for a statement that is too long, before its tokens are kept."""
    first = None
    count = 0
    for match in TOKEN.finditer(text, start, stop):
        if is_space(match[0]):
            continue
        first = match.start() if first is None else first
        count += 1
        if match.end() - first > MAX_STATEMENT:
            refuse(text, match.start(), f"a statement is longer than {MAX_STATEMENT:,} characters; ask several")
        if count > MAX_TOKENS:
            refuse(text, match.start(), f"a statement has more than {MAX_TOKENS:,} words and signs; ask several")


def _read_tokens(text: str, start: int, stop: int, known: Codes) -> tuple[list[str], str]:
    """The tokens of a statement but spaces, and the codes of all, found one after another.

    Raises `InvalidArgument` for what stands for nothing, and for words and literals without a space between.
    """
    written = TOKEN.findall(text, start, stop)
    codes = "".join(map(known.__getitem__, written))
    if UNREADABLE in codes:
        place = codes.index(UNREADABLE)
        refuse(text, _position(start, written, place), _unreadable(written[place]))
    glued = _GLUED.search(codes)
    if glued:
        place = glued.start() + 1
        refuse(text, _position(start, written, place), f"a space is missing before {written[place][:20]}")
    for place, token in enumerate(written):
        if "\0" in token and codes[place] != SPACE:  # within quotes
            refuse(text, _position(start, written, place) + token.index("\0"), _unreadable("\0"))
    return without_spaces(written, codes), codes


def _check_depth(statement: SqlStatement) -> None:
    """Raises `InvalidArgument` where parentheses and CASEs are nested too deeply."""
    if statement.codes.count("(") + statement.codes.count("c") <= MAX_NESTED:
        return
    depth = 0
    for match in _BRACKETS.finditer(statement.codes):
        depth = depth + 1 if match[0] in "(c" else max(0, depth - 1)
        if depth > MAX_NESTED:
            before = statement.run(0, match.start(), "").template
            statement.refuse(len(before) + 1, f"is nested deeper than {MAX_NESTED} levels; write it flat")


def _position(start: int, written: list[str], place: int) -> int:
    return start + sum(map(len, written[:place]))


def _unreadable(token: str) -> str:
    sign = token[0]
    if sign in "'\"":
        return f"the quote {sign} is never closed"
    if sign == "/":
        return "the comment is never closed, or holds another one"
    if sign == "\0":
        return "is a NUL, which no SQL holds"
    if sign in _QUOTES:
        return f"{sign} is no quote of SQL; write {_QUOTES[sign]}"
    return f"{sign!r} stands for nothing outside of quotes here; docs/sql.md lists what can be asked"
