"""Divides a statement into its clauses, and WHERE into its conditions, before they are parsed one by one.

Parsing is what takes longest. Statements differ in how they are put together more than in their parts, so that most
parts were parsed before. A statement that cannot be divided without doubt is read whole, and so is one of which a
part is refused: what is said of a refusal is said of the statement as it was written.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import NamedTuple

from sqlglot import exp

from equipoise.questions.sql_codes import WORDS
from equipoise.questions.sql_text import SqlStatement
from equipoise.questions.sql_tree import SqlTree, tree_of

_ORDER = ("SELECT", "FROM", "WHERE", "GROUP", "HAVING", "ORDER", "LIMIT")
_FIRST, _LATER = "SELECT ", "SELECT 1 , "  # what stands only after SELECT, as DISTINCT, is looked for there only
_STARTS = {WORDS[word]: word for word in _ORDER}
_BY, _BETWEEN, _NOT = WORDS["BY"], WORDS["BETWEEN"], WORDS["NOT"]
_AND, _OR, _AS = WORDS["AND"], WORDS["OR"], WORDS["AS"]
_CASE, _END = WORDS["CASE"], WORDS["END"]
_BRACKET = re.compile(f"[(){_CASE}{_END}]")
_INNERMOST = re.compile(f"\\([^(){_CASE}{_END}]*\\)|{_CASE}[^(){_CASE}{_END}]*{_END}")
_FIRST_WORD = re.compile(f"[{''.join(_STARTS)}]")
_ENCLOSED = re.compile(f"{re.escape(_NOT)}?\\[_*\\]")
_JOINING = re.compile(f"[{_BETWEEN}{_AND}{_OR}]")
_IN_THEIR_OWN_WAY = WORDS["XOR"]  # words that bind otherwise than others
_ARGUMENTS = {word: f"{word.lower()}_" if word == "FROM" else word.lower() for word in _ORDER[1:]}


class Part(NamedTuple):
    """An expression of SELECT, or a condition of WHERE: a run of tokens, which are parsed when they are needed.

    `key`: what all parts have in common that mean the same; nothing for a part of a whole statement. `argument`:
    which clause they belong to. `before`: what they are parsed after. `node`: their tree, if it is known.
    """

    key: str
    statement: SqlStatement
    span: tuple[int, int]
    argument: str
    before: str = ""
    node: exp.Expression | None = None

    @property
    def tree(self) -> SqlTree:
        """What it is parsed to. Raises `UndividedError`, or `InvalidArgument`."""
        if self.node is not None:
            return SqlTree(self.statement, self.node)
        run = self.statement.run(*self.span, self.before)
        if not run.tokens:
            raise UndividedError
        tree = tree_of(run)
        if not isinstance(tree.root, exp.Select) or tree.repair is not None:
            raise UndividedError
        found, known = tree.root.args.get(self.argument), {"expressions", self.argument}
        if not found or any(value for name, value in tree.root.args.items() if name not in known):
            raise UndividedError
        if self.argument != "expressions":
            return SqlTree(run, found)
        if len(found) != (2 if self.before == _LATER else 1):
            raise UndividedError
        return SqlTree(run, found[-1])


class Joined(NamedTuple):
    """Conditions that AND or OR joins, or one that NOT stands before."""

    word: str
    parts: tuple[Joined | Part, ...]


Where = Joined | Part


@dataclass(eq=False)
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
    _check_order(tree, statement)
    span = 0, len(statement.tokens)
    parts = {
        word: Part("", statement, span, name, node=select.args[name])
        for word, name in _ARGUMENTS.items()
        if select.args.get(name) is not None
    }
    items = tuple(Part("", statement, span, "expressions", node=each) for each in select.expressions)
    return Clauses(statement, items, parts.pop("WHERE", None), parts)


def _check_order(tree: SqlTree, statement: SqlStatement) -> None:
    """Refuse clauses in another order, or twice, as the parser does not."""
    with suppress(UndividedError):
        words = [word for word in _Division(statement).words() if word != "FROM"]  # IS DISTINCT FROM has it, too
        if words != [word for word in _ORDER if word in words]:
            tree.refuse(tree.root, f"clauses come once each, in this order: {', '.join(_ORDER)}")


def divided(statement: SqlStatement) -> Clauses:
    """Divides a statement, without parsing it. Raises `UndividedError` where it cannot be without doubt."""
    return _Division(statement).clauses()


class _Division:
    """The division of one statement. `_flat`: its codes, but for what is in brackets (`_flattened`)."""

    def __init__(self, statement: SqlStatement) -> None:
        self._statement, self._codes = statement, statement.codes
        if _IN_THEIR_OWN_WAY in self._codes:
            raise UndividedError
        self._flat = _flattened(self._codes)

    def clauses(self) -> Clauses:
        starts = list(self._starts())
        words = [word for _, word in starts]
        known = [word for word in _ORDER if word in words]
        if words[:2] != ["SELECT", "FROM"] or starts[0][0] != 0 or words != known:
            raise UndividedError
        items: tuple[Part, ...] = ()
        parts: dict[str, Part] = {}
        where: Where | None = None
        stops = [*(first for first, _ in starts[1:]), len(self._codes)]
        for (first, word), stop in zip(starts, stops, strict=True):
            if word == "SELECT":
                items = tuple(self._items(first + 1, stop))
            elif word == "WHERE":
                where = self._where(first + 1, self._flat[first + 1 : stop])
            else:
                parts[word] = self._part(first, stop, _ARGUMENTS[word], "SELECT 1 ")
        return Clauses(self._statement, items, where, parts)

    def words(self) -> list[str]:
        """The first words of all clauses, as they were written."""
        return [word for _, word in self._starts()]

    def _part(self, first: int, stop: int, argument: str, before: str) -> Part:
        key = before + " ".join(self._statement.tokens[first:stop])
        return Part(key, self._statement, (first, stop), argument, before)

    def _starts(self) -> Iterator[tuple[int, str]]:
        """Where each clause begins, with its first word."""
        for found in _FIRST_WORD.finditer(self._flat):
            word = _STARTS[found[0]]
            if word not in ("GROUP", "ORDER") or self._codes.startswith(_BY, found.end()):
                yield found.start(), word

    def _items(self, first: int, stop: int) -> Iterator[Part]:
        """The expressions of SELECT."""
        before = _FIRST
        for flat in self._flat[first:stop].split(","):
            yield self._item(first, first + len(flat), before)
            first, before = first + len(flat) + 1, _LATER

    def _item(self, first: int, stop: int, before: str) -> Part:
        # Parsed alone, a last AS would be left out; before FROM it is none.
        if self._codes.endswith(_AS, first, stop):
            raise UndividedError
        return self._part(first, stop, "expressions", before)

    def _where(self, start: int, flat: str) -> Where:
        """A condition: those that OR joins, each of those that AND joins. BETWEEN takes the next AND."""
        alternatives: list[list[Where]] = [[]]
        betweens = first = 0
        for found in _JOINING.finditer(flat):
            code = found[0]
            if code == _BETWEEN:
                betweens += 1
            elif code == _AND and betweens:
                betweens -= 1
            else:
                alternatives[-1].append(self._condition(start + first, flat[first : found.start()]))
                first = found.end()
                if code == _OR:
                    alternatives.append([])
                    betweens = 0
        alternatives[-1].append(self._condition(start + first, flat[first:]))
        return _joined("OR", [_joined("AND", each) for each in alternatives])

    def _condition(self, first: int, flat: str) -> Where:
        """What is in parentheses or follows NOT; else a condition that is parsed."""
        stop, negated = first + len(flat), flat.startswith(_NOT)
        if _ENCLOSED.fullmatch(flat) and self._codes.startswith("(", first + negated):
            inner = first + negated + 1
            part = self._where(inner, _flattened(self._codes[inner : stop - 1]))
            return Joined("NOT", (part,)) if negated else part
        return self._part(first, stop, "where", "SELECT 1 WHERE ")


def _joined(word: str, parts: list[Where]) -> Where:
    return parts[0] if len(parts) == 1 else Joined(word, tuple(parts))


def _flattened(codes: str) -> str:
    """The codes with `[` and `]` for brackets, CASE and END, and `_` for each within. Raises `UndividedError`."""
    found = 1
    while found:
        codes, found = _INNERMOST.subn(_hidden, codes)
    if _BRACKET.search(codes):
        raise UndividedError
    return codes


def _hidden(brackets: re.Match[str]) -> str:
    first, stop = brackets.span()
    return f"[{'_' * (stop - first - 2)}]"
