"""Reads FROM and LIMIT, and what GROUP BY and ORDER BY list."""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

from equipoise.questions.sql_tree import SqlTree

MAX_LIMIT = 1 << 40


def table_of(clause: SqlTree, table: str) -> tuple[str, tuple[str, ...]]:
    """Returns the table, and the names that its attributes may stand behind. Raises `InvalidArgument`.

    Args:
        clause: what FROM is parsed to.
        table: what it must name; anything, where it is empty.
    """
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


@dataclass(frozen=True)
class Term:
    """One of the things that GROUP BY or ORDER BY lists.

    Attributes:
        tree: the expression.
        number: the number that it is, as it was written; None where it is none.
        name: the name that it is; None where it is none.
        descending: whether DESC stands behind it.
        missing_first: whether rows without a value come first.
    """

    tree: SqlTree
    number: str | None
    name: str | None
    descending: bool = False
    missing_first: bool = False

    def place(self, columns: int) -> int | None:
        """Returns which column of SELECT, from 0, its number means; None where it is no number.

        Args:
            columns: how many SELECT has.

        Raises:
            InvalidArgument: there is no such column.
        """
        if self.number is None:
            return None
        if not self.number.isdecimal() or not 1 <= int(self.number) <= columns:
            self.tree.refuse(self.tree.root, f"there is no column {self.number or 'like this'} in SELECT")
        return int(self.number) - 1


def grouped_by(clause: SqlTree) -> tuple[Term, ...]:
    """Returns what GROUP BY lists. Raises `InvalidArgument`."""
    clause.take(clause.root, "expressions")
    return tuple(_term(clause, each) for each in clause.root.expressions)


def ordered_by(clause: SqlTree) -> tuple[Term, ...]:
    """Returns what ORDER BY lists. Raises `InvalidArgument`."""
    clause.take(clause.root, "expressions")
    terms = []
    for each in clause.root.expressions:
        clause.take(each, "this", "desc", "nulls_first")
        turned, missing_first = bool(each.args.get("desc")), bool(each.args.get("nulls_first"))
        terms.append(_term(clause, each.this, turned, missing_first))
    return tuple(terms)


def _term(clause: SqlTree, node: exp.Expression, descending: bool = False, missing_first: bool = False) -> Term:
    tree = SqlTree(clause.statement, node)
    number = None if tree.number(node) is None else tree.literal(node) or ""
    return Term(tree, number, tree.column(node), descending, missing_first)
