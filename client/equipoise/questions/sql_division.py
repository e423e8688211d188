"""Divides a statement into its clauses, and WHERE into its conditions, before they are parsed one by one.

Parsing is what takes longest. Statements differ in how they are put together more than in their parts, so that most
parts were parsed before. A statement that cannot be divided without doubt is parsed whole.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from sqlglot import exp

from equipoise.errors import InvalidArgument
from equipoise.questions.sql_text import SqlStatement
from equipoise.questions.sql_tree import SqlTree, tree_of

_ORDER = ("SELECT", "FROM", "WHERE", "GROUP", "HAVING", "ORDER", "LIMIT")
_NOT = (["NOT"], ["not"], ["Not"])
_BY = (["BY"], ["by"], ["By"])
_ARGUMENTS = {word: f"{word.lower()}_" if word == "FROM" else word.lower() for word in _ORDER[1:]}


@dataclass(frozen=True)
class Joined:
    """Conditions that AND or OR joins, or one that NOT stands before."""

    word: str
    parts: tuple[Joined | SqlTree, ...]


Where = Joined | SqlTree


@dataclass(frozen=True)
class Clauses:
    """A SELECT. `whole` is what stands for all of it in a refusal; what was not written is not there."""

    whole: SqlTree
    items: tuple[SqlTree, ...]
    others: dict[str, SqlTree]
    where: Where | None


class _UndividedError(Exception):
    """A statement that has to be parsed whole."""


def clauses_of(statement: SqlStatement) -> Clauses:
    """Parses a statement. Raises `InvalidArgument` for what is no SELECT, with its place."""
    try:
        return _divided(statement)
    except (
        _UndividedError,
        InvalidArgument,
    ):  # what is refused of a part is refused, in better words, of the whole
        return _whole(tree_of(statement))


def _whole(tree: SqlTree) -> Clauses:
    select = tree.root
    if not isinstance(select, exp.Select):
        tree.unknown(select, "this place, which takes SELECT")
    tree.take(select, "expressions", *_ARGUMENTS.values())
    parts = {
        word: SqlTree(tree.statement, select.args[name])
        for word, name in _ARGUMENTS.items()
        if select.args.get(name) is not None
    }
    where = parts.pop("WHERE", None)
    items = tuple(SqlTree(tree.statement, each) for each in select.expressions)
    return Clauses(tree, items, parts, None if where is None else _condition_of(where))


def _divided(statement: SqlStatement) -> Clauses:
    starts = list(_starts(statement))
    words = [word for _, word in starts]
    if words[:2] != ["SELECT", "FROM"] or starts[0][0] != 0 or words != [word for word in _ORDER if word in words]:
        raise _UndividedError
    items: tuple[SqlTree, ...] = ()
    parts: dict[str, SqlTree] = {}
    where: Where | None = None
    stops = [*(first for first, _ in starts[1:]), len(statement.tokens)]
    for (first, word), stop in zip(starts, stops, strict=True):
        if word == "SELECT":
            items = tuple(_items(statement, first + 1, stop))
        elif word == "WHERE":
            where = _where(statement, first + 1, stop)
        else:
            parts[word] = _part(statement.run(first, stop, "SELECT 1 "), word)
    return Clauses(items[0], items, parts, where)


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


def _items(statement: SqlStatement, first: int, stop: int) -> Iterator[SqlTree]:
    for place, (start, end) in enumerate(_between(statement, first, stop, ",")):
        if start == end:
            raise _UndividedError
        number = int(place > 0)  # what may stand after SELECT only, such as DISTINCT, is looked for there only
        tree = tree_of(statement.run(start, end, "SELECT 1 , " if number else "SELECT "))
        found = tree.root.args.get("expressions") or []
        if not isinstance(tree.root, exp.Select) or len(found) != number + 1 or _others(tree.root, "expressions"):
            raise _UndividedError
        yield SqlTree(tree.statement, found[number])


def _part(part: SqlStatement, word: str) -> SqlTree:
    """One clause, parsed after `SELECT 1`."""
    if not part.tokens:
        raise _UndividedError
    tree, name = tree_of(part), _ARGUMENTS[word]
    found = tree.root.args.get(name)
    if not isinstance(tree.root, exp.Select) or found is None or _others(tree.root, "expressions", name):
        raise _UndividedError
    return SqlTree(tree.statement, found)


def _others(select: exp.Expression, *known: str) -> bool:
    return any(value for name, value in select.args.items() if name not in known)


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
    return _condition_of(_part(statement.run(first, stop, "SELECT 1 WHERE "), "WHERE"))


def _condition_of(where: SqlTree) -> SqlTree:
    where.take(where.root, "this")
    return SqlTree(where.statement, where.root.this)


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
            raise _UndividedError  # they bind in ways of their own
        betweens += word == "BETWEEN"
        if word == "AND" and betweens:
            betweens -= 1
        elif word == mark:
            yield start, place
            start = place + 1
    yield start, stop
