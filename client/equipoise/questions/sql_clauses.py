"""Reads FROM and LIMIT, and the places of columns that GROUP BY and ORDER BY name."""

from __future__ import annotations

from sqlglot import exp

from equipoise.questions.sql_tree import SqlTree

MAX_LIMIT = 1 << 40


def table_of(tree: SqlTree, select: exp.Expression, table: str) -> tuple[str, tuple[str, ...]]:
    """Returns the table, and the names that its attributes may stand behind. Raises `InvalidArgument`."""
    clause = select.args.get("from_")
    if clause is None:
        tree.refuse(select, "FROM is missing")
    tree.take(clause, "this")
    if not isinstance(clause.this, exp.Table) or not isinstance(clause.this.this, exp.Identifier):
        tree.unknown(clause.this, "FROM, which names a dataset")
    tree.take(clause.this, "this", "alias")
    name, alias = tree.name(clause.this.this), clause.this.args.get("alias")
    if table and name.lower() != table.lower():
        tree.refuse(clause.this, f"{name!r} is not the dataset here, which is {table!r}")
    if alias is None:
        return name, (name,)
    tree.take(alias, "this")
    return name, (tree.name(alias.this),)


def limit_of(tree: SqlTree, select: exp.Expression) -> int | None:
    """Returns how many rows LIMIT allows; None without it. Raises `InvalidArgument`."""
    limit = select.args.get("limit")
    if limit is None:
        return None
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
