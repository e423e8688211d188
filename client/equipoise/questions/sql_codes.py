"""The tokens of SQL, and a letter for each that says what it is."""

from __future__ import annotations

import itertools
import re

TEXT, QUOTED, NAME, NUMBER, WORD = "t", "q", "n", "u", "w"
NAMES = QUOTED + NAME
SPACE, _SIGN, _KEYWORD, UNREADABLE, EXPLAIN = " ", "s", "k", "x", "E"
_CLAUSES = {"SELECT": "S", "FROM": "F", "WHERE": "W", "GROUP": "G", "HAVING": "H", "ORDER": "O", "LIMIT": "L"}
_OTHERS = {
    "BY": "b",
    "AND": "&",
    "OR": "|",
    "NOT": "!",
    "BETWEEN": "~",
    "CASE": "c",
    "END": "e",
    "AS": "a",
    "IS": "i",
}
WORDS = {**_CLAUSES, **_OTHERS, "EXPLAIN": EXPLAIN, "XOR": "X", "OPERATOR": "X"}
"""The codes of keywords by which statements are divided."""
_RESERVED_WORDS = (
    "ALL ANALYSE ANALYZE AND ANY ARRAY AS ASC ASYMMETRIC AT BETWEEN BOTH BY CASE CAST CHECK COLLATE COLUMN "
    "CONSTRAINT CREATE CROSS DEFAULT DEFERRABLE DESC DESCRIBE DISTINCT DO ELSE END EXCEPT EXISTS EXPLAIN FALSE "
    "FETCH FILTER FOR FOREIGN FROM FULL GLOB GROUP HAVING ILIKE IN INITIALLY INNER INTERSECT INTO IS ISNULL "
    "JOIN LAMBDA LATERAL LEADING LEFT LIKE LIMIT NATURAL NOT NOTNULL NULL OFFSET ON ONLY OR ORDER OUTER "
    "OVERLAPS PIVOT PLACING POSITIONAL PRIMARY QUALIFY REFERENCES RETURNING RIGHT SELECT SEMI SHOW SIMILAR "
    "SOME SUMMARIZE SYMMETRIC TABLE TABLESAMPLE THEN TO TRAILING TRUE UNION UNIQUE UNPIVOT USING VARIADIC WHEN "
    "WHERE WINDOW WITH "
)
RESERVED = frozenset(_RESERVED_WORDS.split())
"""Words of SQL, in capitals, that name nothing unless they stand in double quotes."""

_KINDS = {
    SPACE: r"[^\S\x1c-\x1f]+|--[^\r\n]*|/\*[^*/]*(?:(?:\*(?!/)|/(?!\*))[^*/]*)*\*/",
    WORD: r"[^\W\d]\w*",
    TEXT: r"'(?:[^']|'')*'",
    QUOTED: r'"(?:[^"]|"")+"',
    NUMBER: r"(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?",
    _SIGN: r"<=|>=|<>|!=|/(?!\*)|[-+*%(),.<>=]",
    UNREADABLE: r"/\*|.",
}
TOKEN = re.compile("|".join(_KINDS.values()), re.DOTALL)
_KIND = re.compile("|".join(f"({pattern})" for pattern in _KINDS.values()), re.DOTALL)
STATEMENT = re.compile(f"(?:[^;'\"/-]++|{_KINDS[TEXT]}|{_KINDS[QUOTED]}|{_KINDS[SPACE]}|[^;])++", re.DOTALL)


class Codes(dict[str, str]):
    """The codes of tokens: what a token is does not depend on where it stands, so it is found once.

    `names`: words that name an attribute, and `keywords`: words that mean something of their own, in capitals.
    """

    def __init__(self, names: frozenset[str], keywords: frozenset[str]) -> None:
        super().__init__()
        self._names, self._keywords = names, keywords

    def __missing__(self, token: str) -> str:
        code = self[token] = self._code_of(token)
        return code

    def _code_of(self, token: str) -> str:
        found = _KIND.match(token)
        code = [*_KINDS][found.lastindex - 1] if found and found.lastindex else UNREADABLE
        if code == WORD:
            word = token.upper()
            if word in self._names:
                return NAME
            if not token.isascii():
                return UNREADABLE if word.isascii() else WORD  # its capitals may be those of a keyword
            return WORDS.get(word) or (_KEYWORD if word in self._keywords else WORD)
        return token if token in "()," else code


class Pieces(dict[str, str]):
    """The codes of what stands between two spaces, which is looked at once: statements have most of it in common.

    A piece that may mean something else beside its neighbours has the code `UNREADABLE` alone: one with a part of a
    text, a comment or a NUL. `tokens`: those of each piece, without spaces. `known`: the codes of tokens.
    """

    def __init__(self, known: Codes) -> None:
        super().__init__()
        self.tokens: dict[str, list[str]] = {}
        self._known = known

    def __missing__(self, piece: str) -> str:
        written = TOKEN.findall(piece)
        codes = "".join(map(self._known.__getitem__, written))
        if "\0" in piece or any(is_space(token) and not token.isspace() for token in written):
            codes = UNREADABLE
        self.tokens[piece] = without_spaces(written, codes)
        self[piece] = UNREADABLE if UNREADABLE in codes else codes
        return self[piece]


def without_spaces(tokens: list[str], codes: str) -> list[str]:
    """Returns the tokens that are neither spaces nor comments.

    Args:
        tokens: of a text, in order.
        codes: a letter for each.
    """
    return [*itertools.compress(tokens, map(SPACE.__ne__, codes))]


def is_space(token: str) -> bool:
    """Returns whether a token is a comment, or spaces."""
    return token[0].isspace() or (len(token) > 1 and token.startswith(("--", "/*")) and token != "/*")
