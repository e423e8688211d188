"""SQL: from a text to questions. A closed subset: what is not understood is refused, with its place.

>>> from equipoise import Attribute, Schema
>>> schema = Schema((Attribute("origin", ("EWR", "JFK")), Attribute("late", ("no", "yes"))))
>>> question, = questions_from_sql("SELECT origin, COUNT(*) FROM flights WHERE late = 'yes' GROUP BY 1", schema)
>>> question.statements
(Marginal(attributes=('origin',), where=Among(attribute='late', categories=('yes',))),)
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass

from sqlglot import exp

from equipoise.errors import InvalidArgument
from equipoise.queries.schema import Schema
from equipoise.queries.statements.marginal import MAX_CELLS
from equipoise.questions.bulk import all_of_which_stays
from equipoise.questions.expressions import Count, Expression, GroupValue
from equipoise.questions.measures import Key
from equipoise.questions.question import Order, Output, Question, check_columns
from equipoise.questions.sql_clauses import Term, grouped_by, limit_of, ordered_by, table_of
from equipoise.questions.sql_division import Clauses, UndividedError, divided, whole
from equipoise.questions.sql_reading import Named, Numbers, PartReader
from equipoise.questions.sql_text import SqlStatement, statements_of
from equipoise.questions.sql_tree import KEYWORDS, SqlTree, tree_of

MAX_PARTS = 4_096  # statements of one question
_KEYS = exp.Column, exp.Case  # what may stand for a key


def questions_from_sql(text: str, schema: Schema, table: str = "") -> tuple[Question, ...]:
    """Translates the statements of a text, parted by `;`.

    Args:
        text: SQL; `docs/sql.md` says what of it.
        schema: of the table.
        table: what FROM must name; anything, where it is empty.

    Raises:
        InvalidArgument: naming line and column, what cannot be asked, and what to do instead.
    """
    names = frozenset(map(str.upper, schema.names)) - KEYWORDS
    reader = StatementReader(schema, table)
    with all_of_which_stays():
        questions = tuple(map(reader.question, statements_of(text, names, KEYWORDS)))
    if not questions:
        raise InvalidArgument("sql", "holds no statement")
    return questions


class StatementReader:
    """Reads the statements of one text."""

    def __init__(self, schema: Schema, table: str) -> None:
        self._schema, self._table = schema, table
        self._tables: dict[str, tuple[str, tuple[str, ...]]] = {}
        self._parts: dict[tuple[str, ...], PartReader] = {}

    def question(self, statement: SqlStatement) -> Question:
        """Returns what a statement asks. Raises `InvalidArgument`."""
        try:
            return self.read(divided(statement))
        except (UndividedError, InvalidArgument, RecursionError):
            pass
        try:
            question = self.read(whole(statement))
            tree_of(statement).check_unrepaired()  # last, as other refusals say more
            return question
        except RecursionError:
            statement.refuse(0, "is nested too deeply; write it flat")

    def read(self, clauses: Clauses) -> Question:
        """Returns what the clauses ask. Raises `InvalidArgument`, or `UndividedError`."""
        if "FROM" not in clauses.others:
            clauses.statement.refuse(0, "FROM is missing")
        clause = clauses.others["FROM"]
        table, names = self._tables.get(clause.key) or table_of(clause.tree, self._table)
        if clause.key:
            self._tables[clause.key] = table, names
        if names not in self._parts:
            self._parts[names] = PartReader(self._schema, names)
        return _Select(clauses, self._parts[names], table).question()


@dataclass(eq=False)
class _Select:
    """The reading of one SELECT."""

    clauses: Clauses
    parts: PartReader
    table: str

    def question(self) -> Question:
        others, schema = self.clauses.others, self.parts.schema
        records = self.parts.where(self.clauses.where)
        selected = list(map(self.parts.selected, self.clauses.items))
        keys = self._keys(selected)
        grouped = frozenset(key.attribute for key in keys if key.attribute)
        numbers = Numbers(self.parts, records, grouped, {})
        outputs = tuple(self._outputs(selected, keys, numbers))
        if "HAVING" in others or "ORDER" in others:
            self._check_names(outputs, selected)
            numbers = Numbers(
                self.parts, records, grouped, {each.name.lower(): each.expression for each in outputs}
            )
        question = Question(
            self.table,
            schema,
            records,
            keys,
            outputs,
            self.parts.having(others["HAVING"], numbers) if "HAVING" in others else None,
            tuple(self._order(keys, outputs, numbers)),
            self.parts.once(others["LIMIT"], limit_of) if "LIMIT" in others else None,
            self.clauses.statement.explain,
        )
        try:
            check_columns(question)
        except InvalidArgument as error:
            last = self.clauses.items[-1].tree
            last.refuse(last.root, error.problem)
        return question

    def _keys(self, selected: list[Named]) -> tuple[Key, ...]:
        """What GROUP BY names: an attribute or a CASE, itself or as one of the expressions of SELECT."""
        if "GROUP" not in self.clauses.others:
            return ()
        part, schema = self.clauses.others["GROUP"], self.parts.schema
        meant = [self._resolve(each, selected) for each in self.parts.once(part, grouped_by)]
        keys = tuple(dict.fromkeys(map(self.parts.key, meant)))
        parts = math.prod(len(key.buckets) or 1 for key in keys)
        cells = math.prod(schema.attribute(key.attribute).size for key in keys if key.attribute)
        for what, number, most in (("CASEs", parts, MAX_PARTS), ("attributes", cells, MAX_CELLS)):
            if number > most:
                group = part.tree
                group.refuse(group.root, f"the {what} make {number:,} combinations; at most {most:,} can be asked")
        return keys

    def _resolve(self, term: Term, selected: list[Named]) -> SqlTree:
        """What a position, or a name that AS gave, stands for; else the expression itself."""
        place = term.place(len(selected))
        if place is not None:
            return selected[place][0]
        if term.name is not None and term.name.lower() not in self.parts.lowered:
            for expression, alias in selected:
                if alias.lower() == term.name.lower():
                    return expression
        return term.tree

    def _outputs(self, selected: list[Named], keys: tuple[Key, ...], numbers: Numbers) -> Iterator[Output]:
        unnamed = itertools.count()
        for item, (tree, alias) in zip(self.clauses.items, selected, strict=True):
            place = self._place(tree, keys)
            if place is not None:
                yield Output(alias or keys[place].attribute or "bucket", GroupValue(place))
                continue
            if isinstance(tree.root, exp.Column):
                name = self.parts.conditions(tree).attribute(tree.root).name
                tree.refuse(tree.root, f"{name!r} must be in GROUP BY too; single records are never shown")
            expression = self.parts.number(item, numbers)
            number = next(unnamed)
            name = "count" if isinstance(expression, Count) else "value"
            yield Output(alias or (f"{name}_{number + 1}" if number else name), expression)

    def _place(self, tree: SqlTree, keys: tuple[Key, ...]) -> int | None:
        """Which key an expression is, by what it means; None for none."""
        if not isinstance(tree.root, _KEYS):
            return None
        meant = self.parts.key(tree)
        return next((place for place, key in enumerate(keys) if key == meant), None)

    def _check_names(self, outputs: tuple[Output, ...], selected: list[Named]) -> None:
        """Beside HAVING or ORDER BY, which could mean either, AS must not give the name of an attribute."""
        for output, (tree, alias) in zip(outputs, selected, strict=True):
            if alias.lower() in self.parts.lowered and alias.lower() != (tree.column(tree.root) or "").lower():
                tree.refuse(tree.root, f"{alias!r} is the name of an attribute; give {output.name!r} another one")

    def _order(self, keys: tuple[Key, ...], outputs: tuple[Output, ...], numbers: Numbers) -> Iterator[Order]:
        if "ORDER" in self.clauses.others:
            for term in self.parts.once(self.clauses.others["ORDER"], ordered_by):
                yield Order(self._ordered(term, keys, outputs, numbers), term.descending, term.missing_first)

    def _ordered(
        self, term: Term, keys: tuple[Key, ...], outputs: tuple[Output, ...], numbers: Numbers
    ) -> Expression:
        place = term.place(len(outputs))
        if place is not None:
            return outputs[place].expression
        if term.name is not None:
            for output in outputs:
                if output.name.lower() == term.name.lower():
                    return output.expression
        key = self._place(term.tree, keys)
        return numbers.reader(term.tree).read(term.tree.root) if key is None else GroupValue(key)
