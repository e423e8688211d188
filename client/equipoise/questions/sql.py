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
from dataclasses import dataclass, replace

from sqlglot import exp

from equipoise.errors import InvalidArgument
from equipoise.queries.schema import Schema
from equipoise.queries.statements.marginal import MAX_CELLS
from equipoise.questions.expressions import Count, Expression, GroupValue
from equipoise.questions.filters import Filter
from equipoise.questions.measures import Key
from equipoise.questions.question import Order, Output, Question, check_columns
from equipoise.questions.sql_clauses import limit_of, place_in_select, table_of
from equipoise.questions.sql_division import Clauses, UndividedError, divided, whole
from equipoise.questions.sql_reading import Named, Numbers, PartReader
from equipoise.questions.sql_text import SqlStatement, statements_of
from equipoise.questions.sql_tree import KEYWORDS, SqlTree

MAX_PARTS = 4_096  # statements of one question


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
    questions = tuple(map(reader.question, statements_of(text, names, KEYWORDS)))
    if not questions:
        raise InvalidArgument("sql", "holds no statement")
    return questions


class StatementReader:
    """Reads the statements of one text."""

    def __init__(self, schema: Schema, table: str) -> None:
        self._schema, self._table = schema, table
        self._parts: dict[tuple[str, ...], PartReader] = {}

    def question(self, statement: SqlStatement) -> Question:
        """Returns what a statement asks. Raises `InvalidArgument`."""
        try:
            return self.read(divided(statement))
        except (UndividedError, InvalidArgument, RecursionError):
            pass
        try:
            return self.read(whole(statement))
        except RecursionError:
            statement.refuse(0, "is nested too deeply; write it flat")

    def read(self, clauses: Clauses) -> Question:
        """Returns what the clauses ask. Raises `InvalidArgument`, or `UndividedError`."""
        table, names = table_of(clauses, self._table)
        parts = self._parts.setdefault(names, PartReader(self._schema, names))
        return _Select(clauses, parts, table).question()


@dataclass(frozen=True)
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
        self._check_names(outputs, selected)
        numbers = replace(numbers, named={each.name.lower(): each.expression for each in outputs})
        question = Question(
            self.table,
            schema,
            records,
            keys,
            outputs,
            self._having(others["HAVING"].tree, numbers) if "HAVING" in others else None,
            tuple(self._order(keys, outputs, numbers)),
            limit_of(others["LIMIT"].tree) if "LIMIT" in others else None,
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
        group, schema = self.clauses.others["GROUP"].tree, self.parts.schema
        group.take(group.root, "expressions")
        meant = [self._meant(SqlTree(group.statement, each), selected) for each in group.root.expressions]
        keys = tuple(dict.fromkeys(map(self.parts.key, meant)))
        parts = math.prod(len(key.buckets) or 1 for key in keys)
        cells = math.prod(schema.attribute(key.attribute).size for key in keys if key.attribute)
        for what, number, most in (("CASEs", parts, MAX_PARTS), ("attributes", cells, MAX_CELLS)):
            if number > most:
                group.refuse(group.root, f"the {what} make {number:,} combinations; at most {most:,} can be asked")
        return keys

    def _meant(self, tree: SqlTree, selected: list[Named]) -> SqlTree:
        """What a position, or a name that AS gave, stands for; else the expression itself."""
        place = place_in_select(tree, tree.root, len(selected))
        if place is not None:
            return selected[place][0]
        name = tree.column(tree.root)
        if name is not None:
            attributes = set(map(str.lower, self.parts.schema.names))
            for expression, alias in selected:
                if alias.lower() == name.lower() and alias.lower() not in attributes:
                    return expression
        return tree

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
        if not isinstance(tree.root, exp.Column | exp.Case):
            return None
        meant = self.parts.key(tree)
        return next((place for place, key in enumerate(keys) if key == meant), None)

    def _check_names(self, outputs: tuple[Output, ...], selected: list[Named]) -> None:
        """Names that AS gives must not be those of attributes, as HAVING and ORDER BY could mean either."""
        attributes = set(map(str.lower, self.parts.schema.names))
        for output, (tree, alias) in zip(outputs, selected, strict=True):
            own = alias.lower() in attributes and alias.lower() == (tree.column(tree.root) or "").lower()
            if alias.lower() in attributes and not own:
                tree.refuse(tree.root, f"{alias!r} is the name of an attribute; give {output.name!r} another one")

    def _having(self, having: SqlTree, numbers: Numbers) -> Filter:
        having.take(having.root, "this")
        return numbers.reader(having).filter(having.root.this)

    def _order(self, keys: tuple[Key, ...], outputs: tuple[Output, ...], numbers: Numbers) -> Iterator[Order]:
        if "ORDER" not in self.clauses.others:
            return
        order = self.clauses.others["ORDER"].tree
        order.take(order.root, "expressions")
        for each in order.root.expressions:
            order.take(each, "this", "desc", "nulls_first")
            turned, missing_first = bool(each.args.get("desc")), bool(each.args.get("nulls_first"))
            expression = self._ordered(SqlTree(order.statement, each.this), keys, outputs, numbers)
            yield Order(expression, turned, missing_first)

    def _ordered(
        self, tree: SqlTree, keys: tuple[Key, ...], outputs: tuple[Output, ...], numbers: Numbers
    ) -> Expression:
        place = place_in_select(tree, tree.root, len(outputs))
        if place is not None:
            return outputs[place].expression
        name = tree.column(tree.root)
        if name is not None:
            for output in outputs:
                if output.name.lower() == name.lower():
                    return output.expression
        key = self._place(tree, keys)
        return numbers.reader(tree).read(tree.root) if key is None else GroupValue(key)
