"""Questions put together in Python: the same objects as SQL's.

>>> from equipoise import Attribute, Schema, attribute, count, share
>>> schema = Schema((Attribute("origin", ("EWR", "JFK")), Attribute("late", ("no", "yes"))))
>>> late = attribute("late") == "yes"
>>> question = Table(schema, "flights").group_by("origin").agg(count(), late=share(late)).sort("late").head(1)
>>> question.statements
(Marginal(attributes=('origin',), where=None), Marginal(attributes=('origin',), where=Among(attribute='late', \
categories=('yes',))))
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from equipoise.queries.predicates import Predicate
from equipoise.queries.schema import Schema
from equipoise.queries.workload_compiler import compile_single
from equipoise.questions.aggregates import Aggregate
from equipoise.questions.conditions import RecordSet, all_of
from equipoise.questions.expressions import Count, Expression, GroupValue
from equipoise.questions.measures import Key
from equipoise.questions.question import Output, Question, check_columns


@dataclass(frozen=True)
class Table:
    """The table of a round or session, or some of its records, or groups of them. `Client.table` makes it.

    Attributes:
        schema: of the table.
        name: the dataset's.
        records: which of them are looked at.
        keys: what they are grouped by.
    """

    schema: Schema
    name: str
    records: RecordSet = True
    keys: tuple[Key, ...] = ()

    def where(self, *conditions: Predicate) -> Table:
        """Returns the records that satisfy all of some conditions.

        Conditions are sets of records here, not SQL's: a missing value satisfies the negation of a condition.

        Raises:
            InvalidArgument: a condition is not about attributes and categories of the table.
        """
        for place, condition in enumerate(conditions):
            compile_single(condition, self.schema, f"where[{place}]")
        return replace(self, records=all_of((self.records, *conditions)))

    def group_by(self, *names: str) -> Table:
        """Returns the groups of all combinations of some attributes' categories, also those that count 0.

        Raises:
            InvalidArgument: the table has no such attribute.
        """
        keys = tuple(Key(self.schema.attribute(name).name) for name in names)
        return replace(self, keys=tuple(dict.fromkeys((*self.keys, *keys))))

    def agg(self, *counts: Aggregate, **named: Aggregate) -> Question:
        """Returns the question for some numbers of each group, whose attributes come first.

        Args:
            counts: numbers without a name: `count`, `count_2` and so on, or `value`, as in SQL.
            named: numbers, by the names of their columns.

        Raises:
            InvalidArgument: nothing is counted, two columns have one name, a condition is not about this table, or
                what is added up has no numbers.
        """
        outputs = [Output(key.attribute, GroupValue(place)) for place, key in enumerate(self.keys)]
        for place, each in enumerate(counts):
            expression = self._resolve(each)
            name = "count" if isinstance(expression, Count) else "value"
            outputs.append(Output(f"{name}_{place + 1}" if place else name, expression))
        outputs += [Output(name, self._resolve(each)) for name, each in named.items()]
        question = Question(self.name, self.schema, self.records, self.keys, tuple(outputs))
        check_columns(question)
        for place, statement in enumerate(question.statements):
            compile_single(statement, self.schema, f"statements[{place}]")
        return question

    def _resolve(self, aggregate: Aggregate) -> Expression:
        return aggregate.meant(self.schema, frozenset(key.attribute for key in self.keys))
