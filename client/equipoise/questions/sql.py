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
from equipoise.questions.conditions import Both, Condition, Either, Negated, RecordSet
from equipoise.questions.expressions import Count, Expression, GroupValue
from equipoise.questions.filters import Filter
from equipoise.questions.measures import Key
from equipoise.questions.question import Order, Output, Question, check_columns
from equipoise.questions.sql_cases import buckets_of
from equipoise.questions.sql_clauses import limit_of, place_in_select, table_of
from equipoise.questions.sql_conditions import ConditionReader
from equipoise.questions.sql_division import Clauses, Joined, Where, clauses_of
from equipoise.questions.sql_numbers import NumberReader
from equipoise.questions.sql_text import SqlStatement, statements_of
from equipoise.questions.sql_tree import KEYWORDS, SqlTree
from equipoise.questions.sql_values import ValueReader

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
    questions = tuple(_question(each, schema, table) for each in statements_of(text, names, KEYWORDS))
    if not questions:
        raise InvalidArgument("sql", "holds no statement")
    return questions


def _question(statement: SqlStatement, schema: Schema, table: str) -> Question:
    try:
        return _Select(clauses_of(statement), schema, table).question()
    except RecursionError:
        statement.refuse(0, "is nested too deeply; write it flat")


_Named = tuple[SqlTree, str]
"""An expression of SELECT, and the name that AS gives it; empty for none."""


@dataclass(frozen=True)
class _Select:
    """The reading of one SELECT."""

    clauses: Clauses
    schema: Schema
    table: str

    def question(self) -> Question:
        whole = self.clauses.whole
        table, names = table_of(whole, self.clauses.others.get("FROM"), self.table)
        where = self.clauses.where
        records: RecordSet = True if where is None else self._records(where, names)
        selected = [_named(each) for each in self.clauses.items]
        keys = self._keys(selected, names)
        grouped = frozenset(key.attribute for key in keys if key.attribute)
        read = _Reading(self.schema, names, records, grouped, {})
        outputs = tuple(self._outputs(selected, keys, read))
        self._check_names(outputs, selected)
        read = replace(read, named={each.name.lower(): each.expression for each in outputs})
        having, limit = self.clauses.others.get("HAVING"), self.clauses.others.get("LIMIT")
        question = Question(
            table,
            self.schema,
            records,
            keys,
            outputs,
            None if having is None else self._having(having, read),
            tuple(self._order(keys, outputs, read)),
            None if limit is None else limit_of(limit),
            whole.statement.explain,
        )
        try:
            check_columns(question)
        except InvalidArgument as error:
            last = self.clauses.items[-1]
            last.refuse(last.root, error.problem)
        return question

    def _records(self, where: Where, names: tuple[str, ...]) -> RecordSet:
        """The records for which WHERE is true."""
        first = where
        while isinstance(first, Joined):
            first = first.parts[0]
        return ConditionReader(first, self.schema, names).records_of(self._condition(where, names), first.root)

    def _condition(self, where: Where, names: tuple[str, ...]) -> Condition:
        if isinstance(where, SqlTree):
            return ConditionReader(where, self.schema, names).read(where.root)
        parts = tuple(self._condition(each, names) for each in where.parts)
        if where.word == "NOT":
            return Negated(parts[0])
        return (Both if where.word == "AND" else Either)(parts)

    def _keys(self, selected: list[_Named], names: tuple[str, ...]) -> tuple[Key, ...]:
        """What GROUP BY names: an attribute or a CASE, itself or as one of the expressions of SELECT."""
        group = self.clauses.others.get("GROUP")
        if group is None:
            return ()
        group.take(group.root, "expressions")
        found = [
            self._key(self._meant(SqlTree(group.statement, each), selected), names)
            for each in group.root.expressions
        ]
        keys = tuple(dict.fromkeys(found))
        parts = math.prod(len(key.buckets) or 1 for key in keys)
        cells = math.prod(self.schema.attribute(key.attribute).size for key in keys if key.attribute)
        for what, number, most in (("CASEs", parts, MAX_PARTS), ("attributes", cells, MAX_CELLS)):
            if number > most:
                group.refuse(group.root, f"the {what} make {number:,} combinations; at most {most:,} can be asked")
        return keys

    def _key(self, tree: SqlTree, names: tuple[str, ...]) -> Key:
        reader = ConditionReader(tree, self.schema, names)
        if isinstance(tree.root, exp.Case):
            return Key(buckets=buckets_of(tree.root, reader))
        return Key(reader.attribute(tree.root).name)

    def _meant(self, tree: SqlTree, selected: list[_Named]) -> SqlTree:
        """What a position, or a name that AS gave, stands for; else the expression itself."""
        place = place_in_select(tree, tree.root, len(selected))
        if place is not None:
            return selected[place][0]
        name = tree.column(tree.root)
        if name is not None:
            attributes = set(map(str.lower, self.schema.names))
            for expression, alias in selected:
                if alias.lower() == name.lower() and alias.lower() not in attributes:
                    return expression
        return tree

    def _outputs(self, selected: list[_Named], keys: tuple[Key, ...], read: _Reading) -> Iterator[Output]:
        unnamed = itertools.count()
        for tree, alias in selected:
            place = self._place(tree, keys, read.names)
            if place is not None:
                yield Output(alias or keys[place].attribute or "bucket", GroupValue(place))
                continue
            numbers = read.numbers(tree)
            if isinstance(tree.root, exp.Column):
                name = numbers.conditions.attribute(tree.root).name
                tree.refuse(tree.root, f"{name!r} must be in GROUP BY too; single records are never shown")
            expression = numbers.read(tree.root)
            number = next(unnamed)
            name = "count" if isinstance(expression, Count) else "value"
            yield Output(alias or (f"{name}_{number + 1}" if number else name), expression)

    def _place(self, tree: SqlTree, keys: tuple[Key, ...], names: tuple[str, ...]) -> int | None:
        """Which key an expression is, by what it means; None for none."""
        if not isinstance(tree.root, exp.Column | exp.Case):
            return None
        meant = self._key(tree, names)
        return next((place for place, key in enumerate(keys) if key == meant), None)

    def _check_names(self, outputs: tuple[Output, ...], selected: list[_Named]) -> None:
        """Names that AS gives must not be those of attributes, as HAVING and ORDER BY could mean either."""
        attributes = set(map(str.lower, self.schema.names))
        for output, (tree, alias) in zip(outputs, selected, strict=True):
            own = alias.lower() in attributes and alias.lower() == (tree.column(tree.root) or "").lower()
            if alias.lower() in attributes and not own:
                tree.refuse(tree.root, f"{alias!r} is the name of an attribute; give {output.name!r} another one")

    def _having(self, having: SqlTree, read: _Reading) -> Filter:
        having.take(having.root, "this")
        return read.numbers(having).filter(having.root.this)

    def _order(self, keys: tuple[Key, ...], outputs: tuple[Output, ...], read: _Reading) -> Iterator[Order]:
        order = self.clauses.others.get("ORDER")
        if order is None:
            return
        order.take(order.root, "expressions")
        for each in order.root.expressions:
            order.take(each, "this", "desc", "nulls_first")
            turned, missing_first = bool(each.args.get("desc")), bool(each.args.get("nulls_first"))
            expression = self._ordered(SqlTree(order.statement, each.this), keys, outputs, read)
            yield Order(expression, turned, missing_first)

    def _ordered(
        self, tree: SqlTree, keys: tuple[Key, ...], outputs: tuple[Output, ...], read: _Reading
    ) -> Expression:
        place = place_in_select(tree, tree.root, len(outputs))
        if place is not None:
            return outputs[place].expression
        name = tree.column(tree.root)
        if name is not None:
            for output in outputs:
                if output.name.lower() == name.lower():
                    return output.expression
        key = self._place(tree, keys, read.names)
        return read.numbers(tree).read(tree.root) if key is None else GroupValue(key)


@dataclass(frozen=True)
class _Reading:
    """What numbers are read with: the table, by its names, the records of WHERE, and what SELECT names."""

    schema: Schema
    names: tuple[str, ...]
    records: RecordSet
    grouped: frozenset[str]
    named: dict[str, Expression]

    def numbers(self, tree: SqlTree) -> NumberReader:
        """Returns the reader of one part of the statement."""
        conditions = ConditionReader(tree, self.schema, self.names)
        return NumberReader(conditions, ValueReader(conditions, self.records, self.grouped), self.named)


def _named(tree: SqlTree) -> _Named:
    node = tree.root
    if not isinstance(node, exp.Alias):
        return tree, ""
    tree.take(node, "this", "alias")
    return SqlTree(tree.statement, node.this), tree.name(node.args["alias"])
