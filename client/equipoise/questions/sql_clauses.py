"""Reads FROM and LIMIT."""

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
    tree.take(clause.this.this, "this", "quoted")
    name, alias = clause.this.name, clause.this.args.get("alias")
    if table and name.lower() != table.lower():
        tree.refuse(clause.this, f"{name!r} is not the dataset here, which is {table!r}")
    if alias is None:
        return name, (name,)
    tree.take(alias, "this")
    return name, (alias.name,)


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
