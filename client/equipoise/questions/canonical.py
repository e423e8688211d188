"""Writes a question as SQL: what was understood, from what will be asked, not from what was typed.

Read again, it comes to statements that count the same records.
"""

from __future__ import annotations

import itertools
import re

from equipoise.queries.predicates import AllOf, Among, AnyOf, Interval, Predicate
from equipoise.queries.schema import Attribute, Schema
from equipoise.queries.schema_checks import edge_text
from equipoise.queries.statements import Marginal, Statement, Sum
from equipoise.questions.attribute_values import labels_as_numbers, special_categories
from equipoise.questions.conditions import RecordSet
from equipoise.questions.expressions import (
    Arithmetic,
    Count,
    Expression,
    GroupValue,
    Number,
    Rounded,
    Spread,
    Total,
)
from equipoise.questions.filters import AllHold, Compared, Fails, Filter, SomeHold
from equipoise.questions.measures import Clamped, Key
from equipoise.questions.question import Order, Question
from equipoise.questions.sql_codes import RESERVED

_PLAIN = re.compile(r"[a-z_][a-z0-9_]*")
_OTHERS = {"AVG", "COUNT", "COUNT_IF", "CURRENT_DATE", "DATE", "FIRST", "INTERVAL", "LAST", "NULLS", "OFFSET"}
_OTHERS |= {"OVER", "PARTITION", "ROUND", "SAMPLE", "SET", "SUM", "TIME", "TIMESTAMP", "UNNEST", "VALUES"}
_QUOTED = RESERVED | _OTHERS  # words that a name is not read as, unless it is quoted


def sql_of(question: Question) -> str:
    """Returns a question as one SELECT."""
    schema = question.schema
    parts = ["EXPLAIN SELECT" if question.explain else "SELECT"]
    columns = [f"{_expression(each.expression, question)} AS {_name(each.name)}" for each in question.outputs]
    parts += [", ".join(columns), f"FROM {_name(question.table)}"]
    if question.records is not True:
        parts.append(f"WHERE {_records(question.records, schema)}")
    if question.keys:
        parts.append("GROUP BY " + ", ".join(_key(key, schema) for key in question.keys))
    if question.having is not None:
        parts.append(f"HAVING {_filter(question.having, question)}")
    if question.order:
        parts.append("ORDER BY " + ", ".join(_order(each, question) for each in question.order))
    if question.limit is not None:
        parts.append(f"LIMIT {question.limit}")
    return " ".join(parts)


def statement_sql(statement: Statement, question: Question) -> str:
    """Returns one statement as SQL.

    Args:
        statement: a condition, a marginal or a sum.
        question: one that is about the same table.
    """
    schema, table = question.schema, _name(question.table)
    if not isinstance(statement, Marginal | Sum):
        return f"SELECT COUNT(*) FROM {table} WHERE {_records(statement, schema)}"  # type: ignore[arg-type]
    names = statement.attributes if isinstance(statement, Marginal) else statement.by
    number = "COUNT(*)"
    if isinstance(statement, Sum):
        number = f"SUM({_clamped(Clamped(statement.attribute, statement.low, statement.high))})"
    where = "" if statement.where is None else f" WHERE {_records(statement.where, schema)}"
    keys = ", ".join(map(_name, names))
    grouped = f" GROUP BY {keys}" if names else ""
    return f"SELECT {', '.join([*map(_name, names), number])} FROM {table}{where}{grouped}"


def _name(name: str) -> str:
    if _PLAIN.fullmatch(name) and name.upper() not in _QUOTED:
        return name
    return '"' + name.replace('"', '""') + '"'


def _text(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _number(number: float) -> str:
    return edge_text(number)


def _order(order: Order, question: Question) -> str:
    turned = " DESC" if order.descending else ""
    return f"{_expression(order.expression, question)}{turned} NULLS {'FIRST' if order.missing_first else 'LAST'}"


def _key(key: Key, schema: Schema) -> str:
    if key.attribute:
        return _name(key.attribute)
    whens = []
    for bucket in key.buckets:
        label = "NULL" if bucket.label is None else bucket.label
        shown = label if label == "NULL" and bucket.label is None else _label(bucket.label)
        whens.append(f"WHEN {_records(bucket.records, schema)} THEN {shown}")
    return f"CASE {' '.join(whens)} END"


def _label(label: str | float | None) -> str:
    return _text(label) if isinstance(label, str) else _number(label or 0.0)


def _expression(expression: Expression, question: Question) -> str:
    match expression:
        case Count(measure):
            return f"COUNT(*){_among(measure.records, question)}"
        case Total(added, _, _, mean):
            assert added.added is not None
            return f"{'AVG' if mean else 'SUM'}({_clamped(added.added)}){_among(added.records, question)}"
        case Spread(name, of, counted, _, level):
            told = f", {_number(level)}" if name == "QUANTILE_CONT" else ""
            return f"{name}({_clamped(of)}{told}){_among(counted.records, question)}"
        case Number(value):
            return _number(value)
        case Arithmetic(operator, left, right):
            return f"({_expression(left, question)} {operator} {_expression(right, question)})"
        case Rounded(of, decimals):
            return f"ROUND({_expression(of, question)}, {decimals})"
        case GroupValue(place):
            return _key(question.keys[place], question.schema)


def _among(records: RecordSet, question: Question) -> str:
    return "" if records is True else f" FILTER (WHERE {_records(records, question.schema)})"


def _clamped(of: Clamped) -> str:
    """An attribute between the bounds that its numbers count as."""
    low, high = (None if each is None else _number(each) for each in (of.low, of.high))
    above = _name(of.attribute) if low is None else f"GREATEST({_name(of.attribute)}, {low})"
    return above if high is None else f"LEAST({above}, {high})"


def _filter(having: Filter, question: Question) -> str:
    match having:
        case Compared(operator, left, right):
            return f"{_expression(left, question)} {operator} {_expression(right, question)}"
        case Fails(part):
            return f"NOT ({_filter(part, question)})"
        case AllHold(parts) | SomeHold(parts):
            word = " AND " if isinstance(having, AllHold) else " OR "
            return word.join(f"({_filter(part, question)})" for part in parts)


def _records(records: RecordSet, schema: Schema) -> str:
    if isinstance(records, bool):
        return str(records).upper()
    match records:
        case Among(name, categories):
            attribute = schema.attribute(name)
            return _categories(attribute, [attribute.index(each) for each in categories])
        case Interval(name, low, high):
            attribute = schema.attribute(name)
            edges = attribute.edges
            first = next(place for place, edge in enumerate(edges) if edge >= low)
            last = next((place for place, edge in enumerate(edges) if edge >= high), attribute.bins)
            return _categories(attribute, list(range(first, last)))
        case AllOf(conditions) | AnyOf(conditions):
            word = " AND " if isinstance(records, AllOf) else " OR "
            return word.join(_within(each, schema) for each in conditions)
        case _:
            return f"({_records(records.condition, schema)}) IS NOT TRUE"


def _within(part: Predicate, schema: Schema) -> str:
    """A part of a chain; in parentheses unless it is a comparison of one attribute that needs none."""
    return f"({_records(part, schema)})"


def _categories(attribute: Attribute, places: list[int]) -> str:
    """The records in some categories of an attribute."""
    name, parts = _name(attribute.name), []
    special = special_categories(attribute)
    listed = [each for each in places if attribute.edges == () and attribute.categories[each] not in special]
    bins = [each for each in places if each < attribute.bins]
    if listed:
        parts.append(f"{name} IN ({_values(attribute, [attribute.categories[each] for each in listed])})")
    for _, run in itertools.groupby(sorted(bins), key=lambda each: each - sorted(bins).index(each)):
        run_places = list(run)
        parts.append(_range(attribute, run_places[0], run_places[-1] + 1))
    labels = {attribute.categories[each] for each in places}
    if attribute.missing and attribute.missing in labels:
        parts.append(f"{name} IS NULL")
    if attribute.unknown and attribute.unknown in labels:
        others = [each for each in attribute.categories if each not in special]
        parts.append(
            f"NOT ({_range(attribute, 0, attribute.bins)})"
            if attribute.edges
            else f"{name} NOT IN ({_values(attribute, others)})"
        )
    return " OR ".join(parts) if len(parts) == 1 else " OR ".join(f"({part})" for part in parts)


def _values(attribute: Attribute, labels: list[str]) -> str:
    numbers = labels_as_numbers(attribute)
    return ", ".join(_text(each) if numbers is None else each for each in labels)


def _range(attribute: Attribute, first: int, last: int) -> str:
    """The bins from one place to below another; ends that hold all values beyond them are left open."""
    name, edges = _name(attribute.name), [edge_text(each, attribute.dates) for each in attribute.edges]
    shown = [_text(each) if attribute.dates else each for each in edges]
    ends = [] if attribute.clamp and first == 0 else [f"{name} >= {shown[first]}"]
    ends += [] if attribute.clamp and last == attribute.bins else [f"{name} < {shown[last]}"]
    return " AND ".join(ends) if ends else f"{name} IS NOT NULL"
