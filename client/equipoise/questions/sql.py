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
from equipoise.questions.conditions import RecordSet
from equipoise.questions.expressions import Count, Expression, GroupValue
from equipoise.questions.filters import Filter
from equipoise.questions.measures import Key
from equipoise.questions.question import Order, Output, Question, check_columns
from equipoise.questions.sql_cases import buckets_of
from equipoise.questions.sql_clauses import limit_of, place_in_select, table_of
from equipoise.questions.sql_conditions import ConditionReader
from equipoise.questions.sql_numbers import NumberReader
from equipoise.questions.sql_text import SqlStatement, statements_of
from equipoise.questions.sql_tree import SqlTree, tree_of
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
    questions = tuple(_question(statement, schema, table) for statement in statements_of(text))
    if not questions:
        raise InvalidArgument("sql", "holds no statement")
    return questions


def _question(statement: SqlStatement, schema: Schema, table: str) -> Question:
    tree = tree_of(statement)
    try:
        return _Select(tree, schema, table).question()
    except RecursionError:
        statement.refuse(0, "is nested too deeply; write it flat")


@dataclass(frozen=True)
class _Select:
    """The reading of one SELECT."""

    tree: SqlTree
    schema: Schema
    table: str

    def question(self) -> Question:
        tree, select = self.tree, self.tree.root
        if not isinstance(select, exp.Select):
            tree.unknown(select, "this place, which takes SELECT")
        tree.take(select, "expressions", "from_", "where", "group", "having", "order", "limit")
        table, names = table_of(tree, select, self.table)
        conditions = ConditionReader(tree, self.schema, names)
        where = select.args.get("where")
        records: RecordSet = True
        if where is not None:
            tree.take(where, "this")
            records = conditions.records(where.this)
        selected = [self._alias(each) for each in select.expressions]
        keys = self._keys(select, selected, conditions)
        grouped = frozenset(key.attribute for key, _ in keys if key.attribute)
        values = ValueReader(conditions, records, grouped)
        outputs = tuple(self._outputs(selected, keys, NumberReader(conditions, values, {})))
        self._check_names(outputs, selected)
        numbers = NumberReader(conditions, values, {each.name.lower(): each.expression for each in outputs})
        question = Question(
            table,
            self.schema,
            records,
            tuple(key for key, _ in keys),
            outputs,
            self._having(select, numbers),
            tuple(self._order(select, keys, outputs, numbers)),
            limit_of(tree, select),
            tree.statement.explain,
        )
        try:
            check_columns(question)
        except InvalidArgument as error:
            tree.refuse(select.expressions[-1], error.problem)
        return question

    def _alias(self, node: exp.Expression) -> tuple[exp.Expression, str]:
        """An expression of SELECT, and the name that AS gives it; empty for none."""
        if not isinstance(node, exp.Alias):
            return node, ""
        self.tree.take(node, "this", "alias")
        return node.this, self.tree.name(node.args["alias"])

    def _keys(
        self, select: exp.Expression, selected: list[tuple[exp.Expression, str]], conditions: ConditionReader
    ) -> list[tuple[Key, exp.Expression]]:
        """What GROUP BY names, with the expression that it stands for: itself, or one of SELECT."""
        group = select.args.get("group")
        if group is None:
            return []
        self.tree.take(group, "expressions")
        keys: list[tuple[Key, exp.Expression]] = []
        for each in group.expressions:
            node = self._meant(each, selected)
            key = self._key(node, conditions)
            if all(key != other for other, _ in keys):
                keys.append((key, node))
        parts = math.prod(len(key.buckets) or 1 for key, _ in keys)
        cells = math.prod(self.schema.attribute(key.attribute).size for key, _ in keys if key.attribute)
        for what, number, most in (("CASEs", parts, MAX_PARTS), ("attributes", cells, MAX_CELLS)):
            if number > most:
                self.tree.refuse(group, f"the {what} make {number:,} combinations; at most {most:,} can be asked")
        return keys

    def _key(self, node: exp.Expression, conditions: ConditionReader) -> Key:
        if isinstance(node, exp.Case):
            return Key(buckets=buckets_of(node, conditions))
        return Key(conditions.attribute(node).name)

    def _meant(self, node: exp.Expression, selected: list[tuple[exp.Expression, str]]) -> exp.Expression:
        """What a position, or a name that AS gave, stands for; else the node itself."""
        place = place_in_select(self.tree, node, len(selected))
        if place is not None:
            return selected[place][0]
        if isinstance(node, exp.Column) and node.args.get("table") is None:
            attributes = set(map(str.lower, self.schema.names))
            for expression, alias in selected:
                if alias.lower() == node.name.lower() and alias.lower() not in attributes:
                    return expression
        return node

    def _outputs(
        self,
        selected: list[tuple[exp.Expression, str]],
        keys: list[tuple[Key, exp.Expression]],
        numbers: NumberReader,
    ) -> Iterator[Output]:
        conditions, unnamed = numbers.conditions, itertools.count()
        for node, alias in selected:
            place = self._place(node, keys, conditions)
            if place is not None:
                yield Output(alias or keys[place][0].attribute or "bucket", GroupValue(place))
                continue
            if isinstance(node, exp.Column):
                name = conditions.attribute(node).name
                self.tree.refuse(node, f"{name!r} must be in GROUP BY too; single records are never shown")
            expression = numbers.read(node)
            number = next(unnamed)
            name = "count" if isinstance(expression, Count) else "value"
            yield Output(alias or (f"{name}_{number + 1}" if number else name), expression)

    def _place(
        self, node: exp.Expression, keys: list[tuple[Key, exp.Expression]], conditions: ConditionReader
    ) -> int | None:
        """Which key an expression is, by what it means; None for none."""
        if not isinstance(node, exp.Column | exp.Case):
            return None
        meant = self._key(node, conditions)
        return next((place for place, (key, _) in enumerate(keys) if key == meant), None)

    def _check_names(self, outputs: tuple[Output, ...], selected: list[tuple[exp.Expression, str]]) -> None:
        """Names that AS gives must not be those of attributes, as HAVING and ORDER BY could mean either."""
        attributes = set(map(str.lower, self.schema.names))
        for output, (node, alias) in zip(outputs, selected, strict=True):
            own = isinstance(node, exp.Column) and alias.lower() == node.name.lower()
            if alias.lower() in attributes and not own:
                self.tree.refuse(node, f"{alias!r} is the name of an attribute; give {output.name!r} another one")

    def _having(self, select: exp.Expression, numbers: NumberReader) -> Filter | None:
        having = select.args.get("having")
        if having is None:
            return None
        self.tree.take(having, "this")
        return numbers.filter(having.this)

    def _order(
        self,
        select: exp.Expression,
        keys: list[tuple[Key, exp.Expression]],
        outputs: tuple[Output, ...],
        numbers: NumberReader,
    ) -> Iterator[Order]:
        order = select.args.get("order")
        if order is None:
            return
        self.tree.take(order, "expressions")
        for each in order.expressions:
            self.tree.take(each, "this", "desc", "nulls_first")
            turned, missing_first = bool(each.args.get("desc")), bool(each.args.get("nulls_first"))
            yield Order(self._ordered(each.this, keys, outputs, numbers), turned, missing_first)

    def _ordered(
        self,
        node: exp.Expression,
        keys: list[tuple[Key, exp.Expression]],
        outputs: tuple[Output, ...],
        numbers: NumberReader,
    ) -> Expression:
        place = place_in_select(self.tree, node, len(outputs))
        if place is not None:
            return outputs[place].expression
        if isinstance(node, exp.Column) and node.args.get("table") is None:
            for output in outputs:
                if output.name.lower() == node.name.lower():
                    return output.expression
        key = self._place(node, keys, numbers.conditions)
        return numbers.read(node) if key is None else GroupValue(key)
