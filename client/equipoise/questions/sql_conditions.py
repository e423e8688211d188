"""Reads the conditions of WHERE, FILTER, CASE WHEN and COUNT_IF."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from sqlglot import exp

from equipoise.errors import InvalidArgument
from equipoise.queries.dates import seconds_of
from equipoise.queries.schema import Attribute, Schema
from equipoise.questions.attribute_values import Constant, labels_as_numbers, listed_values
from equipoise.questions.conditions import (
    Always,
    Both,
    Compare,
    Condition,
    Either,
    IsMissing,
    IsTrue,
    Negated,
    RecordSet,
)
from equipoise.questions.record_sets import RecordSets
from equipoise.questions.sql_instead import COMPARISONS
from equipoise.questions.sql_tree import SqlTree

_TURNED = {"=": "=", "<>": "<>", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
_DATE_TYPES = ("DATE", "TIMESTAMP", "TIMESTAMPNTZ", "DATETIME")


@dataclass(frozen=True)
class ConditionReader:
    """Reads conditions on the attributes of one table, which may be called by `names`."""

    tree: SqlTree
    sets: RecordSets
    names: tuple[str, ...]

    @property
    def schema(self) -> Schema:
        """The table's schema."""
        return self.sets.schema

    def records(self, node: exp.Expression) -> RecordSet:
        """Returns the records for which a condition is true. Raises `InvalidArgument` with its place."""
        return self.records_of(self.read(node), node)

    def records_of(self, condition: Condition, node: exp.Expression) -> RecordSet:
        """Returns the records for which what was read of `node` is true. Raises `InvalidArgument`."""
        try:
            return self.sets.of(condition)
        except InvalidArgument as error:
            about = [each for each in node.find_all(exp.Column) if self.attribute(each).name == error.field]
            self.tree.refuse(about or node, f"{error.field}: {error.problem}")

    def attribute(self, node: exp.Expression) -> Attribute:
        """Returns the attribute that a column names. Raises `InvalidArgument`."""
        if not isinstance(node, exp.Column) or not isinstance(node.this, exp.Identifier):
            if isinstance(node, exp.Binary | exp.Neg):
                self.tree.refuse(
                    node, "nothing is computed of single records; ask for a column of it, or write CASE"
                )
            self.tree.unknown(node, "this place, which takes an attribute")
        self.tree.take(node, "this", "table")
        table = node.args.get("table")
        if table is not None:
            called = self.tree.name(table)
            if called.lower() not in map(str.lower, self.names):
                self.tree.refuse(node, f"{called!r} is not the table of FROM")
        name = self.tree.name(node.this)
        if name in self.schema.names:
            return self.schema.attribute(name)
        alike = [each for each in self.schema.names if each.lower() == name.lower()]
        if len(alike) == 1:
            return self.schema.attribute(alike[0])
        problem = "is any of several attributes; write it as the schema does" if alike else "is no attribute"
        return self.tree.refuse(node, f"{name!r} {problem}; there are {', '.join(self.schema.names[:12])}")

    def read(self, node: exp.Expression) -> Condition:
        """Returns a condition. Raises `InvalidArgument` for what cannot be asked."""
        if type(node) in COMPARISONS:
            return self._comparison(node)
        readers: dict[type[exp.Expression], Callable[[exp.Expression], Condition]] = {
            exp.And: self._chain,
            exp.Or: self._chain,
            exp.Not: self._not,
            exp.Paren: self._parentheses,
            exp.Between: self._between,
            exp.In: self._among,
            exp.Like: self._like,
            exp.Is: self._is,
            exp.Boolean: self._always,
            exp.Null: lambda _: Always(None),
        }
        reader = readers.get(type(node))
        if reader is None:
            name = self.tree.column(node)
            if name is not None:
                self.tree.refuse(node, f"{name!r} alone is no condition; compare it: {name} = 'true'")
            self.tree.unknown(node, "a condition")
        return reader(node)

    def equals(self, column: exp.Expression, constant: exp.Expression) -> Condition:
        """Returns `column = constant`, as a CASE with a value after it compares. Raises `InvalidArgument`."""
        attribute = self.attribute(column)
        if isinstance(constant, exp.Null):
            return Always(None)
        return Compare(attribute.name, "=", self._constant(attribute, "=", constant))

    def _chain(self, node: exp.Expression) -> Condition:
        """AND or OR, however long: a chain nests to the left, one level for each of its parts."""
        kind, parts = type(node), []
        while type(node) is kind:
            self.tree.take(node, "this", "expression")
            parts.append(self.read(node.expression))
            node = node.this
        parts.append(self.read(node))
        return (Both if kind is exp.And else Either)(tuple(reversed(parts)))

    def _not(self, node: exp.Expression) -> Condition:
        self.tree.take(node, "this")
        return Negated(self.read(node.this))

    def _parentheses(self, node: exp.Expression) -> Condition:
        self.tree.take(node, "this")
        return self.read(node.this)

    def _always(self, node: exp.Expression) -> Condition:
        self.tree.take(node, "this")
        return Always(bool(node.this))

    def _comparison(self, node: exp.Expression) -> Condition:
        self.tree.take(node, "this", "expression")
        operator, left, right = COMPARISONS[type(node)], node.this, node.expression
        if not isinstance(left, exp.Column) and isinstance(right, exp.Column):
            left, right, operator = right, left, _TURNED[operator]
        if isinstance(right, exp.Column):
            name = self.tree.column(right)
            if name is not None and name.lower() not in map(str.lower, self.schema.names):
                self.tree.refuse(right, f"{name!r} is no attribute; as a text it stands in single quotes: '{name}'")
            self.tree.refuse(right, "two columns cannot be compared; ask for a column of their difference")
        attribute = self.attribute(left)
        if isinstance(right, exp.Null):
            return Always(None)
        return Compare(attribute.name, operator, self._constant(attribute, operator, right))

    def _between(self, node: exp.Expression) -> Condition:
        self.tree.take(node, "this", "low", "high", "negate")
        attribute = self.attribute(node.this)
        low = Compare(attribute.name, ">=", self._constant(attribute, ">=", node.args["low"]))
        high = Compare(attribute.name, "<=", self._constant(attribute, "<=", node.args["high"]))
        return self._turned(node, Both((low, high)))

    def _among(self, node: exp.Expression) -> Condition:
        if node.args.get("query") is not None:
            self.tree.refuse(node, "a subquery cannot be answered; list the values")
        self.tree.take(node, "this", "expressions", "negate")
        if not node.expressions:
            self.tree.refuse(node, "IN lists no values")
        return self._turned(node, Either(tuple(self.equals(node.this, each) for each in node.expressions)))

    def _like(self, node: exp.Expression) -> Condition:
        self.tree.take(node, "this", "expression", "negate")
        attribute = self.attribute(node.this)
        pattern = self.tree.literal(node.expression)
        if pattern is None or self.tree.number(node.expression) is not None:
            self.tree.refuse(node, "LIKE takes a pattern in quotes")
        if attribute.edges or labels_as_numbers(attribute) is not None:
            self.tree.refuse(node, f"LIKE is for labels, and {attribute.name} has numbers or dates; compare it")
        return self._turned(node, Compare(attribute.name, "like", pattern))

    def _turned(self, node: exp.Expression, condition: Condition) -> Condition:
        return Negated(condition) if node.args.get("negate") else condition

    def _is(self, node: exp.Expression) -> Condition:
        self.tree.take(node, "this", "expression", "negate")
        what = node.expression
        if isinstance(what, exp.Null):
            self.tree.take(what)
            return self._turned(node, IsMissing(self.attribute(node.this).name))
        if isinstance(what, exp.Boolean):
            self.tree.take(what, "this")
            inner = self.read(node.this)
            return self._turned(node, IsTrue(inner if what.this else Negated(inner)))
        return self.tree.unknown(what, "IS, which takes NULL, TRUE or FALSE")

    def _constant(self, attribute: Attribute, operator: str, node: exp.Expression) -> Constant:
        """What the attribute is compared with. Raises `InvalidArgument` where it is of another type."""
        number = self.tree.number(node)
        if number is not None:
            return self._of_number(attribute, operator, number, node)
        if isinstance(node, exp.Cast) and not attribute.dates:
            self.tree.refuse(node, f"{attribute.name} has no dates; compare it with one of its values")
        text = self._text(node)
        if attribute.dates:
            try:
                return seconds_of(attribute.name, text)
            except InvalidArgument as error:
                self.tree.refuse(node, f"{error.field} {error.problem}")
        numbers = labels_as_numbers(attribute)
        if attribute.edges or (numbers is not None and operator not in ("=", "<>")):
            self.tree.refuse(node, f"{attribute.name} has numbers; write one without quotes")
        if numbers is not None and text in numbers:
            return numbers[text]
        if operator in ("=", "<>") and text not in listed_values(attribute):
            self._not_listed(attribute, text, node)
        return text

    def _of_number(self, attribute: Attribute, operator: str, number: float, node: exp.Expression) -> Constant:
        if attribute.dates:
            self.tree.refuse(node, f"{attribute.name} has dates; write one in quotes, as '2013-01-31'")
        numbers = labels_as_numbers(attribute)
        if not attribute.edges and numbers is None:
            self.tree.refuse(node, f"{attribute.name} has labels; write one in quotes")
        if numbers is not None and operator in ("=", "<>") and number not in numbers.values():
            self._not_listed(attribute, f"{number:g}", node)
        if not abs(number) <= 1e300:
            self.tree.refuse(node, "the number is too large")
        return number

    def _text(self, node: exp.Expression) -> str:
        """The text of a literal, or of a DATE or TIMESTAMP."""
        if isinstance(node, exp.Cast):
            self.tree.take(node, "this", "to")
            kind = str(getattr(node.args["to"].this, "name", ""))
            if kind not in _DATE_TYPES:
                self.tree.refuse(node, "only DATE '…' and TIMESTAMP '…' have a type before them")
            if kind == "DATE" and len(self.tree.literal(node.this) or "") > len("2013-01-31"):
                self.tree.refuse(node, "a DATE has no time; write TIMESTAMP")
            node = node.this
        text = self.tree.literal(node)
        if text is None:
            self.tree.unknown(node, "a comparison, which takes a literal")
        return text

    def _not_listed(self, attribute: Attribute, label: str, node: exp.Expression) -> None:
        special = {
            attribute.missing: f"stands for missing values; write {attribute.name} IS NULL",
            attribute.unknown: "stands for all values that are not listed; exclude those that are with NOT IN",
        }
        special |= {code: f"is a code in the table; write {named!r}" for code, named in attribute.codes}
        some = ", ".join(attribute.categories[:12])
        advice = special.get(label) if label else None
        self.tree.refuse(node, f"{label!r} {advice or f'is no category of {attribute.name}; there are {some}'}")
