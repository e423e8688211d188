"""What `sqlglot` makes of a statement, read so that nothing of it is passed over.

Whoever reads a node says which of its arguments it understands (`SqlTree.take`). Anything else that the parser has
put there is refused, so that a clause which this version does not know is never dropped in silence.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NoReturn

from sqlglot import exp
from sqlglot.dialects.dialect import Dialect
from sqlglot.errors import SqlglotError

from equipoise.errors import InvalidArgument
from equipoise.questions.sql_codes import NAMES, NUMBER, RESERVED, TEXT, TOKEN
from equipoise.questions.sql_instead import CLASSES, INSTEAD, SIGNS
from equipoise.questions.sql_repairs import Repair, repair_of
from equipoise.questions.sql_text import FIRST_NUMBER, MARK, SqlStatement

DIALECT = Dialect.get_or_raise("duckdb")
KEYWORDS = frozenset(word for keywords in DIALECT.tokenizer_class.KEYWORDS for word in keywords.upper().split()) | {
    "FIRST",
    "IGNORE",
    "LAST",
    "NULLS",
    "RESPECT",
    "WITHIN",
}
"""Words that the parser may understand as something else than names."""
_BEGINNINGS = ("SELECT ", "FROM ", "WITH ", "( ")


@dataclass(frozen=True, eq=False)
class SqlTree:
    """The tree of one statement, or of a part of it, with what is needed to refuse a part of it.

    `repair`: what the parser has made of the text that does not stand there; None for nothing.
    """

    statement: SqlStatement
    root: exp.Expression
    repair: Repair | None = None

    def check_unrepaired(self) -> None:
        """Raises `InvalidArgument` where the parser has read something else than what was written."""
        if self.repair is None:
            return
        word, added = self.repair
        if added:
            self.statement.refuse(0, f"cannot be read as SQL; maybe {word} is missing")
        place = self.statement.template.upper().find(word)
        shown = "this" if MARK in word or word.isdecimal() else word
        self.statement.refuse(max(0, place), f"{shown} means nothing where it stands; leave it out")

    def take(self, node: exp.Expression, *understood: str) -> None:
        """Raises `InvalidArgument` where the node has an argument that is not understood."""
        for name, value in node.args.items():
            if name not in understood and value not in (None, False) and value != []:
                words = self._words_present(_called(name))
                at = _first(value) or node
                self.refuse(at, INSTEAD.get(name, f"{words or 'this'} cannot be answered here"), words)

    def literal(self, node: exp.Expression) -> str | None:
        """Returns what a literal of this statement says; None where the node is none."""
        place = self._place(node)
        return None if place is None else self.statement.said(place)

    def number(self, node: exp.Expression) -> float | None:
        """Returns a number, also with a sign before it; None where the node is none."""
        if isinstance(node, exp.Paren):
            self.take(node, "this")
            return self.number(node.this)
        if isinstance(node, exp.Neg):
            self.take(node, "this")
            inner = self.number(node.this)
            return None if inner is None else -inner
        place = self._place(node)
        if place is None or self.statement.codes[place] != NUMBER:
            return None
        return float(self.statement.tokens[place])

    def name(self, node: exp.Expression) -> str:
        """Returns the name that an identifier is. Raises `InvalidArgument` for a literal in its place."""
        self.take(node, "this", "quoted")
        shown = str(node.this)
        if shown.startswith(MARK) and self._is(shown.removeprefix(MARK), 0, NAMES):
            return self.statement.said(int(shown.removeprefix(MARK)))
        if shown.startswith(MARK) or shown.isdecimal():  # which the parser has taken a literal's place for
            self.refuse(node, "a name is a word, or stands in double quotes")
        if shown.upper() in RESERVED and not node.args.get("quoted"):
            self.refuse(node, f'{shown} is a word of SQL; as a name it stands in double quotes: "{shown}"')
        return shown

    def column(self, node: exp.Expression) -> str | None:
        """Returns the name of a column that stands without its table; None of anything else."""
        if not isinstance(node, exp.Column) or not isinstance(node.this, exp.Identifier) or node.args.get("table"):
            return None
        return self.name(node.this)

    def refuse(self, node: Any, problem: str, words: str = "") -> NoReturn:
        """Raises `InvalidArgument` that names where the node stands, or else the words that it is written with."""
        offset = None if isinstance(node, exp.SetOperation) else _offset(node)
        if offset is None and isinstance(node, exp.Expr):
            offset = self._place_of(words or (node.key if isinstance(node, exp.SetOperation) else node.sql()))
        self.statement.refuse(offset or 0, problem)

    def unknown(self, node: Any, where: str) -> NoReturn:
        """Raises `InvalidArgument` for a node of a class that cannot stand where it does."""
        said = CLASSES.get(type(node).__name__)
        self.refuse(node, said or f"{self._word(node) or 'this'} cannot be answered in {where}")

    def _word(self, node: Any) -> str:
        """What a node is called in the statement: its sign, its function's name or its words; empty for neither."""
        if type(node) in SIGNS:
            return SIGNS[type(node)]
        if isinstance(node, exp.Func) and "start" in node.meta:
            written = TOKEN.findall(self.statement.template, int(node.meta["start"]))
            if written[0][0].isalpha() and [each for each in written[1:3] if each != " "][:1] == ["("]:
                return str(written[0].upper())
        return self._words_present(_called(type(node).__name__))

    def _words_present(self, words: str) -> str:
        """Words, if all of them stand in the statement; else none."""
        tokens = {token.upper() for token in self.statement.tokens}
        return words if all(word in tokens for word in words.split()) else ""

    def _place_of(self, text: str) -> int | None:
        """Where the first word or sign of a text stands in the template."""
        first = next((token.upper() for token in TOKEN.findall(text) if token != " "), "")
        matches = TOKEN.finditer(self.statement.template, len(self.statement.before))
        return next((match.start() for match in matches if match[0].upper() == first), None)

    def _place(self, node: exp.Expression) -> int | None:
        """The place of a literal; None for what the statement does not hold, also if the parser has made it up."""
        if not isinstance(node, exp.Literal):
            return None
        self.take(node, "this", "is_string")
        shown, text = str(node.this), bool(node.args.get("is_string"))
        digits = shown.removeprefix(MARK) if text else shown
        if text and digits == shown:
            return None
        first, codes = (0, TEXT) if text else (FIRST_NUMBER, NUMBER)
        return int(digits) - first if self._is(digits, first, codes) else None

    def _is(self, digits: str, first: int, codes: str) -> bool:
        """Whether what the parser was shown stands for a token that has one of these codes."""
        if not digits.isdecimal():
            return False
        place = int(digits) - first
        return 0 <= place < len(self.statement.codes) and self.statement.codes[place] in codes


def tree_of(statement: SqlStatement) -> SqlTree:
    """Parses a statement. Raises `InvalidArgument`."""
    if not f"{statement.template} ".upper().startswith(_BEGINNINGS):
        statement.refuse(0, "a question begins with SELECT")  # nothing else is given to the parser
    try:
        roots, repair = _parsed(statement.template)
    except SqlglotError as error:
        raise _unparsed(statement, error) from None
    except RecursionError:
        statement.refuse(0, "is nested too deeply; write it flat")
    except Exception as error:  # a parser that fails at nonsense says so in ways of its own
        statement.refuse(0, f"cannot be read as SQL ({type(error).__name__})")
    if len(roots) != 1 or roots[0] is None:
        statement.refuse(0, "cannot be read as one statement")
    return SqlTree(statement, roots[0], repair)


@lru_cache(maxsize=4096)
def _parsed(template: str) -> tuple[list[Any], Repair | None]:
    roots: list[Any] = list(DIALECT.parse(template))
    return roots, repair_of(template, roots[0]) if len(roots) == 1 and roots[0] is not None else None


def _unparsed(statement: SqlStatement, error: SqlglotError) -> InvalidArgument:
    """What to say where the parser gives up: its own words speak of a text that nobody wrote."""
    found: list[dict[str, Any]] = list(getattr(error, "errors", [])) or [{}]
    offset = int(found[0].get("col") or 1) - 1
    try:
        statement.refuse(offset, "cannot be read as SQL from about here on")
    except InvalidArgument as refusal:
        return refusal


def _called(name: str) -> str:
    """The name of a class or argument of the tree, as people write SQL."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])|_", " ", name).strip().upper()


def _first(value: Any) -> exp.Expression | None:
    each = value[0] if isinstance(value, list) else value
    return each if isinstance(each, exp.Expression) else None


def _offset(node: Any) -> int | None:
    """Where the first name or literal of a node, or of some, stands in the template; None without any."""
    nodes = node if isinstance(node, list) else [node]
    parts = (part for each in nodes if isinstance(each, exp.Expr) for part in each.walk())
    return min((int(part.meta["start"]) for part in parts if "start" in part.meta), default=None)
