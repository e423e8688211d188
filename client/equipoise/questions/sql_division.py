"""Divides a statement into its clauses, and WHERE into its conditions, before they are parsed one by one.

Parsing is what takes longest. Statements differ in how they are put together more than in their parts, so that most
parts were parsed before. A statement that cannot be divided without doubt is read whole, and so is one of which a
part is refused: what is said of a refusal is said of the statement as it was written.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from sqlglot import exp

from equipoise.questions.sql_text import SqlStatement
from equipoise.questions.sql_tree import SqlTree, tree_of

_ORDER = ("SELECT", "FROM", "WHERE", "GROUP", "HAVING", "ORDER", "LIMIT")
_FIRST, _LATER = "SELECT ", "SELECT 1 , "  # what stands only after SELECT, as DISTINCT, is looked for there only
_NOT = (["NOT"], ["not"], ["Not"])
_BY = (["BY"], ["by"], ["By"])
_ARGUMENTS = {word: f"{word.lower()}_" if word == "FROM" else word.lower() for word in _ORDER[1:]}


@dataclass(frozen=True)
class Part:
    """An expression of SELECT, or a condition of WHERE: its tokens, which are parsed when they are needed.

    `argument`: which clause they belong to. `node`: what they were parsed to; None before.
    """

    statement: SqlStatement
    argument: str
    node: exp.Expression | None = None

    @cached_property
    def key(self) -> str:
        """What all parts have in common that mean the same; nothing for a part of a whole statement."""
        return "" if self.node is not None else self.statement.before + " ".join(self.statement.tokens)

    @cached_property
    def tree(self) -> SqlTree:
        """What it is parsed to. Raises `UndividedError`, or `InvalidArgument`."""
        if self.node is not None:
            return SqlTree(self.statement, self.node)
        if not self.statement.tokens:
            raise UndividedError
        tree = tree_of(self.statement)
        if not isinstance(tree.root, exp.Select):
            raise UndividedError
        found, known = tree.root.args.get(self.argument), {"expressions", self.argument}
        if not found or any(value for name, value in tree.root.args.items() if name not in known):
            raise UndividedError
        if self.argument != "expressions":
            return SqlTree(self.statement, found)
        if len(found) != (2 if self.statement.before == _LATER else 1):
            raise UndividedError
        return SqlTree(self.statement, found[-1])


@dataclass(frozen=True)
class Joined:
    """Conditions that AND or OR joins, or one that NOT stands before."""

    word: str
    parts: tuple[Joined | Part, ...]


Where = Joined | Part


@dataclass(frozen=True)
class Clauses:
    """A SELECT: its expressions, WHERE, and the other clauses by their first word, if they were written."""

    statement: SqlStatement
    items: tuple[Part, ...]
    where: Where | None
    others: dict[str, Part]


class UndividedError(Exception):
    """A statement that has to be read whole."""


def whole(statement: SqlStatement) -> Clauses:
    """Parses a statement. Raises `InvalidArgument` for what is no SELECT, with its place."""
    tree = tree_of(statement)
    select = tree.root
    if not isinstance(select, exp.Select):
        tree.unknown(select, "this place, which takes SELECT")
    tree.take(select, "expressions", *_ARGUMENTS.values())
    parts = {
        word: Part(statement, name, select.args[name])
        for word, name in _ARGUMENTS.items()
        if select.args.get(name) is not None
    }
    items = tuple(Part(statement, "expressions", each) for each in select.expressions)
    return Clauses(statement, items, parts.pop("WHERE", None), parts)


def divided(statement: SqlStatement) -> Clauses:
    """Divides a statement, without parsing it. Raises `UndividedError` where it cannot be without doubt."""
    starts = list(_starts(statement))
    words = [word for _, word in starts]
    if words[:2] != ["SELECT", "FROM"] or starts[0][0] != 0 or words != [word for word in _ORDER if word in words]:
        raise UndividedError
    items: tuple[Part, ...] = ()
    parts: dict[str, Part] = {}
    where: Where | None = None
    stops = [*(first for first, _ in starts[1:]), len(statement.tokens)]
    for (first, word), stop in zip(starts, stops, strict=True):
        if word == "SELECT":
            spans = _between(statement, first + 1, stop, ",")
            items = tuple(
                Part(statement.run(*span, _LATER if place else _FIRST), "expressions")
                for place, span in enumerate(spans)
            )
        elif word == "WHERE":
            where = _where(statement, first + 1, stop)
        else:
            parts[word] = Part(statement.run(first, stop, "SELECT 1 "), _ARGUMENTS[word])
    return Clauses(statement, items, where, parts)


def _starts(statement: SqlStatement) -> Iterator[tuple[int, str]]:
    """Where each clause begins, with its first word."""
    depth = 0
    for place, (kind, token) in enumerate(zip(statement.kinds, statement.tokens, strict=True)):
        if kind == "sign":
            depth += (token == "(") - (token == ")")
        elif kind == "word":
            word = token.upper()
            depth += (word == "CASE") - (word == "END")
            following = statement.tokens[place + 1 : place + 2]
            if depth == 0 and word in _ORDER and (word not in ("GROUP", "ORDER") or following in _BY):
                yield place, word


def _where(statement: SqlStatement, first: int, stop: int) -> Where:
    """A condition: those that OR joins, else those that AND joins, else what is in parentheses or follows NOT."""
    for word in ("OR", "AND"):
        spans = list(_between(statement, first, stop, word))
        if len(spans) > 1:
            return Joined(word, tuple(_where(statement, *span) for span in spans))
    if statement.tokens[first : first + 1] in _NOT and _enclosed(statement, first + 1, stop):
        return Joined("NOT", (_where(statement, first + 2, stop - 1),))
    if _enclosed(statement, first, stop):
        return _where(statement, first + 1, stop - 1)
    return Part(statement.run(first, stop, "SELECT 1 WHERE "), "where")


def _enclosed(statement: SqlStatement, first: int, stop: int) -> bool:
    """Whether the first token is a parenthesis that the last one closes."""
    if first >= stop or statement.tokens[first] != "(" or statement.tokens[stop - 1] != ")":
        return False
    depth = 0
    for place in range(first, stop - 1):
        depth += (statement.tokens[place] == "(") - (statement.tokens[place] == ")")
        if depth == 0:
            return False
    return True


def _between(statement: SqlStatement, first: int, stop: int, mark: str) -> Iterator[tuple[int, int]]:
    """The spans between the marks that stand outside of parentheses and CASE. BETWEEN takes the next AND."""
    depth, betweens, start = 0, 0, first
    for place in range(first, stop):
        kind, token = statement.kinds[place], statement.tokens[place]
        if kind not in ("word", "sign"):
            continue
        word = token.upper()
        depth += (word in ("(", "CASE")) - (word in (")", "END"))
        if depth:
            continue
        if word in ("XOR", "OPERATOR"):
            raise UndividedError  # they bind in ways of their own
        betweens += word == "BETWEEN"
        if word == "AND" and betweens:
            betweens -= 1
        elif word == mark:
            yield start, place
            start = place + 1
    yield start, stop
