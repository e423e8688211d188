"""Reads the numbers of SELECT, HAVING and ORDER BY: counts, and arithmetic with them."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from sqlglot import exp

from equipoise.questions.conditions import Condition, IsMissing, Negated, RecordSet, all_of, any_of
from equipoise.questions.expressions import Arithmetic, Count, Expression, Number, Rounded
from equipoise.questions.filters import AllHold, Compared, Fails, Filter, SomeHold
from equipoise.questions.measures import Measure
from equipoise.questions.sql_cases import branches_of
from equipoise.questions.sql_conditions import ConditionReader
from equipoise.questions.sql_instead import COMPARISONS
from equipoise.questions.sql_tree import SqlTree
from equipoise.questions.sql_values import ValueReader

_ARITHMETIC: dict[type[exp.Expression], str] = {exp.Add: "+", exp.Sub: "-", exp.Mul: "*", exp.Div: "/"}
MAX_DECIMALS = 15


@dataclass(frozen=True)
class NumberReader:
    """Reads numbers about one table.

    `values`: reads what is computed of values; `named`: numbers that SELECT has given a name.
    """

    conditions: ConditionReader
    values: ValueReader
    named: dict[str, Expression]

    @property
    def tree(self) -> SqlTree:
        """The statement's tree."""
        return self.conditions.tree

    def read(self, node: exp.Expression) -> Expression:
        """Returns a number of each group. Raises `InvalidArgument` for what is none."""
        number = self.tree.number(node)
        if number is not None:
            return Number(number)
        if type(node) in _ARITHMETIC:
            # `typed` and `safe`: how other dialects divide; here numbers are always divided as they are.
            self.tree.take(node, "this", "expression", "typed", "safe")
            return Arithmetic(_ARITHMETIC[type(node)], self.read(node.this), self.read(node.expression))
        readers: dict[type[exp.Expression], Callable[[exp.Expression], Expression]] = {
            exp.Paren: self._inner,
            exp.Neg: self._negative,
            exp.Round: self._rounded,
            exp.Filter: self._filtered,
            exp.Count: self._count,
            exp.CountIf: self._count,
            exp.Sum: self._count,
            exp.Avg: self._count,
            **dict.fromkeys(self.values.spreads, self._count),
            exp.Column: self._number_by_name,
        }
        reader = readers.get(type(node))
        if reader is None:
            self.tree.unknown(
                node, "an answer, which takes COUNT, SUM, AVG, MEDIAN, QUANTILE_CONT, VAR_POP, STDDEV_POP"
            )
        return reader(node)

    def filter(self, node: exp.Expression) -> Filter:
        """Returns a condition on the numbers of each group. Raises `InvalidArgument`."""
        if type(node) in COMPARISONS:
            self.tree.take(node, "this", "expression")
            return Compared(COMPARISONS[type(node)], self.read(node.this), self.read(node.expression))
        if isinstance(node, exp.Between):
            self.tree.take(node, "this", "low", "high", "negate")
            of, low, high = (self.read(node.args[name]) for name in ("this", "low", "high"))
            inside = AllHold((Compared(">=", of, low), Compared("<=", of, high)))
            return Fails(inside) if node.args.get("negate") else inside
        if isinstance(node, exp.And | exp.Or):
            kind, parts = type(node), []
            while type(node) is kind:
                self.tree.take(node, "this", "expression")
                parts.append(self.filter(node.expression))
                node = node.this
            parts.append(self.filter(node))
            return (AllHold if kind is exp.And else SomeHold)(tuple(reversed(parts)))
        if isinstance(node, exp.Not):
            self.tree.take(node, "this")
            return Fails(self.filter(node.this))
        if isinstance(node, exp.Paren):
            self.tree.take(node, "this")
            return self.filter(node.this)
        return self.tree.unknown(node, "HAVING, which compares numbers; conditions on attributes belong in WHERE")

    def _inner(self, node: exp.Expression) -> Expression:
        self.tree.take(node, "this")
        return self.read(node.this)

    def _negative(self, node: exp.Expression) -> Expression:
        self.tree.take(node, "this")
        return Arithmetic("-", Number(0.0), self.read(node.this))

    def _rounded(self, node: exp.Expression) -> Expression:
        self.tree.take(node, "this", "decimals")
        written = node.args.get("decimals")
        decimals = 0.0 if written is None else self.tree.number(written)
        if decimals is None or not decimals.is_integer() or abs(decimals) > MAX_DECIMALS:
            self.tree.refuse(written, f"ROUND takes a whole number of decimals, at most {MAX_DECIMALS}")
        return Rounded(self.read(node.this), int(decimals))

    def _number_by_name(self, node: exp.Expression) -> Expression:
        """A number by the name that SELECT gives it."""
        self.tree.take(node, "this", "table")
        name = self.tree.column(node)
        found = None if name is None else self.named.get(name.lower())
        if found is None:
            self.tree.refuse(
                node,
                f"{name or 'this'!r} is not the name of a number; single values are never shown: count them, "
                "or group by them",
            )
        return found

    def _filtered(self, node: exp.Expression) -> Expression:
        self.tree.take(node, "this", "expression")
        where = node.expression
        if not isinstance(where, exp.Where):
            self.tree.unknown(where, "FILTER")
        self.tree.take(where, "this")
        return self._count_of(node.this, self.conditions.records(where.this))

    def _count(self, node: exp.Expression) -> Expression:
        return self._count_of(node, True)

    def _count_of(self, node: exp.Expression, among: RecordSet) -> Expression:
        """COUNT, COUNT_IF, or a SUM of ones, of some of the records."""
        if type(node) in self.values.spreads:
            return self.values.spread(node, among)
        if isinstance(node, exp.Sum | exp.Avg) and self.values.reads(node.this):
            self.tree.take(node, "this")
            return self.values.total(node.this, among, mean=isinstance(node, exp.Avg))
        if isinstance(node, exp.Count):
            self.tree.take(node, "this", "big_int")
            return self._number_of(self._present(node.this), among)
        if isinstance(node, exp.CountIf):
            self.tree.take(node, "this")
            return self._number_of(self.conditions.records(node.this), among)
        if isinstance(node, exp.Sum):
            self.tree.take(node, "this")
            return self._number_of(self._ones(node.this), among)
        if isinstance(node, exp.Avg):
            return self._share(node, among)
        return self.tree.unknown(node, "FILTER, which belongs to COUNT, SUM and the like")

    def _number_of(self, records: RecordSet, among: RecordSet) -> Expression:
        return Count(Measure(all_of((among, records))))

    def _share(self, node: exp.Expression, among: RecordSet = True) -> Expression:
        """AVG of a CASE with ones and zeros: the share of the ones."""
        self.tree.take(node, "this")
        ones, zeros = self._ones_and_zeros(node.this)
        return Arithmetic("/", self._number_of(ones, among), self._number_of(zeros, among))

    def _present(self, node: exp.Expression) -> RecordSet:
        """The records that COUNT counts."""
        if isinstance(node, exp.Star):
            self.tree.take(node)
            return True
        if self.tree.number(node) is not None:
            return True
        if isinstance(node, exp.Column):
            attribute = self.conditions.attribute(node)
            condition: Condition = Negated(IsMissing(attribute.name))
            return self.conditions.records_of(condition, node)
        if not isinstance(node, exp.Case):
            self.tree.unknown(node, "COUNT, which takes *, an attribute or CASE")
        return self._case(node, lambda value: value is not None)[0]

    def _ones(self, node: exp.Expression) -> RecordSet:
        """The records for which what is summed is 1; for all others it must be 0 or NULL."""
        if self.tree.number(node) == 1:
            return True
        return self._ones_and_zeros(node)[0]

    def _ones_and_zeros(self, node: exp.Expression) -> tuple[RecordSet, RecordSet]:
        """The records for which a CASE is 1, and those for which it is 1 or 0."""
        if type(node) in _ARITHMETIC:
            self.tree.refuse(
                node,
                "nothing is computed of single records; ask the custodian to register it as a column",
            )
        if not isinstance(node, exp.Case):
            self.tree.unknown(node, "SUM or AVG, which take an attribute, or CASE WHEN … THEN 1 ELSE 0 END")
        return self._case(node, lambda value: value == 1)

    def _case(self, node: exp.Expression, chosen: Callable[[float | None], bool]) -> tuple[RecordSet, RecordSet]:
        """The records whose branch gives a number that is chosen, and those whose branch gives any number."""
        branches = [(records, self._zero_or_one(value)) for records, value in branches_of(node, self.conditions)]
        return _together(branches, chosen), _together(branches, lambda value: value is not None)

    def _zero_or_one(self, node: exp.Expression | None) -> float | None:
        if node is None or isinstance(node, exp.Null):
            return None
        number = self.tree.number(node)
        if number not in (0, 1) or math.copysign(1, number) < 0:
            self.tree.refuse(node, "a CASE that is counted gives 1, 0 or NULL; multiply its count instead")
        return number


def _together(branches: list[tuple[RecordSet, float | None]], chosen: Callable[[float | None], bool]) -> RecordSet:
    """The records of the branches that are chosen; every record is in one branch."""
    some = [records for records, value in branches if chosen(value)]
    return True if len(some) == len(branches) else any_of(tuple(some))
