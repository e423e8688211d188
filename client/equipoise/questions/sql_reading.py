"""Reads the parts of SELECTs about one table. Parts that come again in one text are read once."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, TypeVar

from sqlglot import exp

from equipoise.errors import InvalidArgument
from equipoise.queries.schema import Schema
from equipoise.questions.conditions import Both, Condition, Either, Negated, RecordSet
from equipoise.questions.expressions import Expression, measures_of
from equipoise.questions.filters import Filter, filter_measures
from equipoise.questions.measures import Key, Measure
from equipoise.questions.record_sets import RecordSets
from equipoise.questions.sql_cases import buckets_of
from equipoise.questions.sql_conditions import ConditionReader
from equipoise.questions.sql_division import Joined, Part, Where
from equipoise.questions.sql_numbers import NumberReader
from equipoise.questions.sql_tree import SqlTree
from equipoise.questions.sql_values import ValueReader

Named = tuple[SqlTree, str]
"""An expression of SELECT, and the name that AS gives it; empty for none."""
Kept = TypeVar("Kept")


class PartReader:
    """Reads parts about the table of a schema, whose attributes may stand behind `names`.

    `lowered`: the attributes' names in small letters.
    """

    def __init__(self, schema: Schema, names: tuple[str, ...]) -> None:
        self.schema, self.names = schema, names
        self.lowered = frozenset(map(str.lower, schema.names))
        self._sets = RecordSets(schema)
        self._joined: dict[tuple[str, tuple[Condition, ...]], Condition] = {}
        self._numbers: dict[str, tuple[Expression, frozenset[str]]] = {}
        self._having: dict[str, Filter] = {}
        self._read: dict[str, Any] = {}
        self._keys: dict[SqlTree, Key] = {}

    def conditions(self, tree: SqlTree) -> ConditionReader:
        """Returns the reader of the conditions of one part."""
        return ConditionReader(tree, self._sets, self.names)

    def once(self, part: Part, read: Callable[[SqlTree], Kept]) -> Kept:
        """Returns what a part is read as, whatever else is in its statement: one `read` for each clause."""
        if not part.key:
            return read(part.tree)
        known: Kept | None = self._read.get(part.key)
        if known is None:
            known = self._read[part.key] = read(part.tree)
        return known

    def selected(self, item: Part) -> Named:
        """Returns an expression of SELECT, and the name that AS gives it. Raises `InvalidArgument`."""
        return self.once(item, _split_name)

    def where(self, where: Where | None) -> RecordSet:
        """Returns the records for which WHERE is true; all without it. Raises `InvalidArgument`."""
        if where is None:
            return True
        condition = self._condition(where)
        try:
            return self._sets.of(condition)
        except InvalidArgument:
            while isinstance(where, Joined):
                where = where.parts[0]
            return self.conditions(where.tree).records_of(condition, where.tree.root)

    def _condition(self, where: Where) -> Condition:
        """What a condition says. The same conditions are the same object, so that their records are found once."""
        if isinstance(where, Part):
            return self.once(where, self._read_condition)
        parts = tuple(map(self._condition, where.parts))
        known = self._joined.get((where.word, parts))
        if known is None:
            known = Negated(parts[0]) if where.word == "NOT" else (Both if where.word == "AND" else Either)(parts)
            self._joined[where.word, parts] = known
        return known

    def _read_condition(self, tree: SqlTree) -> Condition:
        tree.take(tree.root, "this")
        return self.conditions(tree).read(tree.root.this)

    def key(self, tree: SqlTree) -> Key:
        """Returns what groups are made by: an attribute, or a CASE. Raises `InvalidArgument`."""
        known = self._keys.get(tree)
        if known is None:
            reader = self.conditions(tree)
            if isinstance(tree.root, exp.Case):
                known = Key(buckets=buckets_of(tree.root, reader))
            else:
                known = Key(reader.attribute(tree.root).name)
            self._keys[tree] = known
        return known

    def number(self, item: Part, numbers: Numbers) -> Expression:
        """Returns the number that an expression of SELECT is. Raises `InvalidArgument`."""
        known, valued = self._numbers.get(item.key, (None, _NONE))
        if known is None or not valued.isdisjoint(numbers.grouped):
            tree, _ = self.selected(item)
            known = numbers.reader(tree).read(tree.root)
            valued = _valued(measures_of(known))
            if item.key and not self._depends_on_records(valued):
                self._numbers[item.key] = known, valued
        return known

    def having(self, part: Part, numbers: Numbers) -> Filter:
        """Returns which rows are shown. Raises `InvalidArgument`."""
        known = self._having.get(part.key)
        if known is None:
            tree = part.tree
            tree.take(tree.root, "this")
            known = numbers.reader(tree).filter(tree.root.this)
            if part.key and not _valued(filter_measures(known)) and not numbers.names_any(part):
                self._having[part.key] = known
        return known

    def _depends_on_records(self, valued: frozenset[str]) -> bool:
        """Whether some values can be added up of those records only that WHERE leaves."""
        attributes = map(self.schema.attribute, valued)
        return any(each.missing or each.unknown for each in attributes)


_NONE: frozenset[str] = frozenset()


def _valued(measures: Iterable[Measure]) -> frozenset[str]:
    """The attributes whose values are added up or parted, which GROUP BY must not name."""
    return frozenset(each.added.attribute if each.added else each.parted for each in measures) - {""}


def _split_name(tree: SqlTree) -> Named:
    if not isinstance(tree.root, exp.Alias):
        return tree, ""
    tree.take(tree.root, "this", "alias")
    return SqlTree(tree.statement, tree.root.this), tree.name(tree.root.args["alias"])


@dataclass(eq=False)
class Numbers:
    """What numbers are read with: the records of WHERE, the attributes of GROUP BY, and what SELECT names."""

    parts: PartReader
    records: RecordSet
    grouped: frozenset[str]
    named: dict[str, Expression]

    def names_any(self, part: Part) -> bool:
        """Returns whether a word of a part may be a name that SELECT gives."""
        statement, (first, stop) = part.statement, part.span
        return any(statement.said(place).lower() in self.named for place in range(first, stop))

    def reader(self, tree: SqlTree) -> NumberReader:
        """Returns the reader of one part."""
        conditions = self.parts.conditions(tree)
        return NumberReader(conditions, ValueReader(conditions, self.records, self.grouped), self.named)
