"""Reads what is computed of values: SUM and AVG of an attribute, its median, quantiles and variance."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from sqlglot import exp

from equipoise.errors import InvalidArgument
from equipoise.queries.numeric_values import NumericValues, numeric_values
from equipoise.queries.predicate_compiler import PredicateCompiler
from equipoise.queries.predicates import Among
from equipoise.queries.schema import Attribute
from equipoise.questions.attribute_values import special_categories
from equipoise.questions.conditions import RecordSet, all_of, category_set
from equipoise.questions.expressions import Expression, Spread, Total
from equipoise.questions.measures import Clamped, Measure
from equipoise.questions.sql_conditions import ConditionReader
from equipoise.questions.sql_tree import SqlTree


@dataclass(frozen=True)
class ValueReader:
    """Reads numbers of values. `records`: those that WHERE leaves; `grouped`: the attributes of GROUP BY."""

    conditions: ConditionReader
    records: RecordSet
    grouped: frozenset[str]

    spreads: ClassVar[dict[type[exp.Expression], str]] = {
        exp.Median: "QUANTILE_CONT",
        exp.PercentileCont: "QUANTILE_CONT",
        exp.WithinGroup: "QUANTILE_CONT",
        exp.VariancePop: "VAR_POP",
        exp.StddevPop: "STDDEV_POP",
    }

    @property
    def tree(self) -> SqlTree:
        """The statement's tree."""
        return self.conditions.tree

    def reads(self, node: exp.Expression) -> bool:
        """Returns whether an expression stands for the values of an attribute, maybe between bounds."""
        return isinstance(node, exp.Column | exp.Least | exp.Greatest)

    def total(self, node: exp.Expression, among: RecordSet, *, mean: bool) -> Expression:
        """Returns SUM or AVG of an attribute over some of the records. Raises `InvalidArgument`.

        Args:
            node: what is added up.
            among: the records that FILTER leaves.
            mean: whether the mean is wanted.
        """
        attribute, of = self._clamped(node)
        values = self._values(node, attribute, of, among)
        valued = all_of((among, category_set(attribute, values.valued)))
        return Total(Measure(among, added=of), Measure(valued), values, mean)

    def spread(self, node: exp.Expression, among: RecordSet) -> Expression:
        """Returns a quantile or a variance of an attribute over some of the records. Raises `InvalidArgument`.

        Args:
            node: the function's call.
            among: the records that FILTER leaves.
        """
        of_node, level = self._arguments(node)
        attribute, of = self._clamped(of_node)
        values = self._values(of_node, attribute, of, among)
        return Spread(self.spreads[type(node)], of, Measure(among, parted=attribute.name), values, level)

    def _arguments(self, node: exp.Expression) -> tuple[exp.Expression, float]:
        """What a function is of, and the level of a quantile."""
        if isinstance(node, exp.WithinGroup):
            self.tree.take(node, "this", "expression")
            ordered, inner = node.expression, node.this
            if not isinstance(inner, exp.PercentileCont) or not isinstance(ordered, exp.Order):
                self.tree.unknown(inner, "WITHIN GROUP, which belongs to PERCENTILE_CONT")
            self.tree.take(inner, "this")
            self.tree.take(ordered, "expressions")
            (each,) = ordered.expressions[:1]
            if len(ordered.expressions) > 1:
                self.tree.refuse(ordered, "WITHIN GROUP orders by one attribute")
            self.tree.take(each, "this", "desc", "nulls_first")
            level = self._level(inner.this)
            return each.this, float(1 - Fraction(str(level))) if each.args.get("desc") else level
        if isinstance(node, exp.PercentileCont):
            self.tree.take(node, "this", "expression")
            return node.this, self._level(node.args.get("expression") or node)
        self.tree.take(node, "this")
        return node.this, 0.5

    def _level(self, node: exp.Expression) -> float:
        level = self.tree.number(node)
        if level is None or not 0 <= level <= 1:
            self.tree.refuse(node, "a quantile takes a level from 0 to 1, such as QUANTILE_CONT(x, 0.9)")
        return level

    def _clamped(self, node: exp.Expression) -> tuple[Attribute, Clamped]:
        """The attribute that an expression stands for, and the bounds that LEAST and GREATEST give it."""
        low: float | None = None
        high: float | None = None
        while isinstance(node, exp.Least | exp.Greatest):
            # `ignore_nulls`: as DuckDB has it; `_values` refuses missing values where it matters.
            self.tree.take(node, "this", "expressions", "ignore_nulls")
            bound = self.tree.number(node.expressions[0]) if len(node.expressions) == 1 else None
            taken = high if isinstance(node, exp.Least) else low
            if bound is None or taken is not None:
                self.tree.refuse(node, "bounds are written LEAST(GREATEST(x, low), high), with two numbers")
            low, high = (low, bound) if isinstance(node, exp.Least) else (bound, high)
            node = node.this
        if not isinstance(node, exp.Column):
            self.tree.unknown(node, "this place, which takes an attribute, or LEAST(GREATEST(x, low), high)")
        attribute = self.conditions.attribute(node)
        if attribute.name in self.grouped:
            self.tree.refuse(node, f"{attribute.name} is in GROUP BY; each group has a single value of it")
        return attribute, Clamped(attribute.name, low, high)

    def _values(self, node: exp.Expression, attribute: Attribute, of: Clamped, among: RecordSet) -> NumericValues:
        """What the categories stand for. Refuses what could mean other values than SQL does."""
        try:
            values = numeric_values(attribute, of.low, of.high)
        except InvalidArgument as error:
            self.tree.refuse(node, f"{attribute.name}: {error.problem}")
        name, edges = attribute.name, (f"{float(values.low):g}", f"{float(values.high):g}")
        if attribute.clamp and (of.low is None or of.high is None):
            advice = f"LEAST(GREATEST({name}, {edges[0]}), {edges[1]})"
            if attribute.missing:
                advice += f", and WHERE {name} IS NOT NULL"
            self.tree.refuse(
                node, f"the schema counts values of {name} beyond its edges in its end bins; write {advice}"
            )
        special = special_categories(attribute)
        if any(_is_value(each) or each in attribute.categories[: attribute.bins] for each in special):
            self.tree.refuse(node, f"the table counts missing or unlisted values of {name} as a value")
        if attribute.unknown and self._some(all_of((among, Among(name, (attribute.unknown,))))):
            self.tree.refuse(
                node,
                f"{name} may have values that are not listed, which nobody can add up; leave them out by WHERE",
            )
        bounded = of.low is not None or of.high is not None
        if attribute.missing and bounded and self._some(all_of((among, Among(name, (attribute.missing,))))):
            self.tree.refuse(
                node, f"LEAST and GREATEST give a missing {name} its bound; add WHERE {name} IS NOT NULL"
            )
        return values

    def _some(self, records: RecordSet) -> bool:
        """Whether any possible record is among some, and among those that WHERE leaves."""
        chosen = all_of((self.records, records))
        if isinstance(chosen, bool):
            return chosen
        return bool(PredicateCompiler(self.conditions.schema).compile(chosen, "where"))


def _is_value(label: str) -> bool:
    try:
        Fraction(label)
    except (ValueError, ZeroDivisionError):
        return False
    return True
