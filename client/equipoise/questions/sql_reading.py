"""Reads the parts of SELECTs about one table. Parts that come again in one text are read once."""

from __future__ import annotations

from dataclasses import dataclass, field

from sqlglot import exp

from equipoise.queries.schema import Schema
from equipoise.questions.conditions import Both, Condition, Either, Negated, RecordSet
from equipoise.questions.expressions import Expression, measures_of
from equipoise.questions.measures import Key
from equipoise.questions.sql_cases import buckets_of
from equipoise.questions.sql_conditions import ConditionReader
from equipoise.questions.sql_division import Joined, Part, Where
from equipoise.questions.sql_numbers import NumberReader
from equipoise.questions.sql_tree import SqlTree
from equipoise.questions.sql_values import ValueReader

Named = tuple[SqlTree, str]
"""An expression of SELECT, and the name that AS gives it; empty for none."""


@dataclass(frozen=True, eq=False)
class PartReader:
    """Reads parts about the table of a schema, whose attributes may stand behind `names`."""

    schema: Schema
    names: tuple[str, ...]
    _selected: dict[str, Named] = field(default_factory=dict)
    _conditions: dict[str, Condition] = field(default_factory=dict)
    _records: dict[Condition, RecordSet] = field(default_factory=dict)
    _numbers: dict[str, Expression] = field(default_factory=dict)

    def conditions(self, tree: SqlTree) -> ConditionReader:
        """Returns the reader of the conditions of one part."""
        return ConditionReader(tree, self.schema, self.names)

    def selected(self, item: Part) -> Named:
        """Returns an expression of SELECT, and the name that AS gives it. Raises `InvalidArgument`."""
        known = self._selected.get(item.key)
        if known is None:
            tree, alias = item.tree, ""
            if isinstance(tree.root, exp.Alias):
                tree.take(tree.root, "this", "alias")
                tree, alias = SqlTree(tree.statement, tree.root.this), tree.name(tree.root.args["alias"])
            known = tree, alias
            if item.key:
                self._selected[item.key] = known
        return known

    def where(self, where: Where | None) -> RecordSet:
        """Returns the records for which WHERE is true; all without it. Raises `InvalidArgument`."""
        if where is None:
            return True
        condition = self._condition(where)
        known = self._records.get(condition)
        if known is None:
            first = where
            while isinstance(first, Joined):
                first = first.parts[0]
            known = self.conditions(first.tree).records_of(condition, first.tree.root)
            self._records[condition] = known
        return known

    def _condition(self, where: Where) -> Condition:
        if isinstance(where, Joined):
            parts = tuple(map(self._condition, where.parts))
            return Negated(parts[0]) if where.word == "NOT" else (Both if where.word == "AND" else Either)(parts)
        known = self._conditions.get(where.key)
        if known is None:
            tree = where.tree
            tree.take(tree.root, "this")
            known = self.conditions(tree).read(tree.root.this)
            if where.key:
                self._conditions[where.key] = known
        return known

    def key(self, tree: SqlTree) -> Key:
        """Returns what groups are made by: an attribute, or a CASE. Raises `InvalidArgument`."""
        if isinstance(tree.root, exp.Case):
            return Key(buckets=buckets_of(tree.root, self.conditions(tree)))
        return Key(self.conditions(tree).attribute(tree.root).name)

    def number(self, item: Part, numbers: Numbers) -> Expression:
        """Returns the number that an expression of SELECT is. Raises `InvalidArgument`."""
        known = self._numbers.get(item.key)
        if known is None:
            tree, _ = self.selected(item)
            known = numbers.reader(tree).read(tree.root)
            # What is added up may be refused because of WHERE and GROUP BY.
            if item.key and not any(each.added or each.parted for each in measures_of(known)):
                self._numbers[item.key] = known
        return known


@dataclass(frozen=True)
class Numbers:
    """What numbers are read with: the records of WHERE, the attributes of GROUP BY, and what SELECT names."""

    parts: PartReader
    records: RecordSet
    grouped: frozenset[str]
    named: dict[str, Expression]

    def reader(self, tree: SqlTree) -> NumberReader:
        """Returns the reader of one part."""
        conditions = self.parts.conditions(tree)
        return NumberReader(conditions, ValueReader(conditions, self.records, self.grouped), self.named)
