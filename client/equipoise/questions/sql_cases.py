"""Reads CASE: which records come to which of its branches."""

from __future__ import annotations

from sqlglot import exp

from equipoise.questions.conditions import Both, Condition, IsTrue, Negated, RecordSet, any_of
from equipoise.questions.measures import Bucket
from equipoise.questions.sql_conditions import ConditionReader
from equipoise.questions.sql_tree import SqlTree

MAX_BRANCHES = 256


def branches_of(node: exp.Expression, reader: ConditionReader) -> list[tuple[RecordSet, exp.Expression | None]]:
    """Returns the records of each branch of a CASE, with what it gives; every record is in exactly one.

    The last branch is ELSE, which gives nothing where it was not written. Raises `InvalidArgument`.
    """
    tree = reader.tree
    tree.take(node, "this", "ifs", "default")
    earlier: list[Condition] = []
    branches: list[tuple[RecordSet, exp.Expression | None]] = []
    if len(node.args["ifs"]) > MAX_BRANCHES:
        tree.refuse(node, f"has more than {MAX_BRANCHES} branches")
    for each in node.args["ifs"]:
        tree.take(each, "this", "true")
        when = each.this
        condition = reader.read(when) if node.this is None else reader.equals(node.this, when)
        branches.append((reader.records_of(_first_of(condition, earlier), when), each.args["true"]))
        earlier.append(condition)
    otherwise = reader.records_of(_first_of(None, earlier), node)
    return [*branches, (otherwise, node.args.get("default"))]


def buckets_of(node: exp.Expression, reader: ConditionReader) -> tuple[Bucket, ...]:
    """Returns the values of a CASE that rows are grouped by, each with its records. Raises `InvalidArgument`."""
    found: dict[str | float | None, list[RecordSet]] = {}
    for records, value in branches_of(node, reader):
        if value is not None or records is not False:
            found.setdefault(_label(value, reader.tree), []).append(records)
    if len({type(label) for label in found if label is not None}) > 1:
        reader.tree.refuse(node, "gives texts and numbers; give one of both")
    return tuple(Bucket(label, any_of(tuple(records))) for label, records in found.items())


def _label(node: exp.Expression | None, tree: SqlTree) -> str | float | None:
    if node is None or isinstance(node, exp.Null):
        return None
    number = tree.number(node)
    label = tree.literal(node) if number is None else number
    if label is None:
        tree.unknown(node, "a CASE to group by, which gives texts or numbers")
    return label


def _first_of(condition: Condition | None, earlier: list[Condition]) -> Condition:
    """The condition, where none of the earlier ones is true."""
    parts = [Negated(IsTrue(each)) for each in earlier]
    return Both((*([] if condition is None else [condition]), *parts))
