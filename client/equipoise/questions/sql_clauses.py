"""Reads FROM and LIMIT, and the places of columns that GROUP BY and ORDER BY name."""

from __future__ import annotations

from sqlglot import exp

from equipoise.questions.sql_division import Clauses
from equipoise.questions.sql_tree import SqlTree

MAX_LIMIT = 1 << 40


def table_of(clauses: Clauses, table: str) -> tuple[str, tuple[str, ...]]:
    """Returns the table, and the names that its attributes may stand behind. Raises `InvalidArgument`.

    Args:
        clauses: of the statement.
        table: what FROM must name; anything, where it is empty.
    """
    if "FROM" not in clauses.others:
        clauses.statement.refuse(0, "FROM is missing")
    clause = clauses.others["FROM"].tree
    clause.take(clause.root, "this")
    found = clause.root.this
    if not isinstance(found, exp.Table) or not isinstance(found.this, exp.Identifier):
        clause.unknown(found, "FROM, which names a dataset")
    clause.take(found, "this", "alias")
    name, alias = clause.name(found.this), found.args.get("alias")
    if table and name.lower() != table.lower():
        clause.refuse(found, f"{name!r} is not the dataset here, which is {table!r}")
    if alias is None:
        return name, (name,)
    clause.take(alias, "this")
    return name, (clause.name(alias.this),)


def limit_of(tree: SqlTree) -> int:
    """Returns how many rows LIMIT allows. Raises `InvalidArgument`."""
    limit = tree.root
    if not isinstance(limit, exp.Limit):
        tree.unknown(limit, "LIMIT")
    tree.take(limit, "expression")
    number = tree.number(limit.expression)
    if number is None or not number.is_integer() or not 0 <= number <= MAX_LIMIT:
        tree.refuse(limit, "LIMIT takes a whole number")
    return int(number)


def place_in_select(tree: SqlTree, node: exp.Expression, columns: int) -> int | None:
    """Returns which column of SELECT, from 0, a number in GROUP BY or ORDER BY means; None of anything else.

    Args:
        tree: the statement's.
        node: what GROUP BY or ORDER BY has.
        columns: how many SELECT has.

    Raises:
        InvalidArgument: there is no such column.
    """
    if tree.number(node) is None:
        return None
    written = tree.literal(node) or ""
    if not written.isdecimal() or not 1 <= int(written) <= columns:
        tree.refuse(node, f"there is no column {written or 'like this'} in SELECT")
    return int(written) - 1
