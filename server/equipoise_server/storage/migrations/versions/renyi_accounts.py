"""Accounts to which rounds add count divergences at one Renyi order.

A store that has such an account without an order is refused: none could be chosen for it that suits what is on it.
"""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from alembic import op

from equipoise.errors import InvalidArgument

revision = "0003"
down_revision = "0002"

# A table's new columns, each with its type and, named, what must hold once it is there.
COLUMNS: dict[str, tuple[tuple[str, sa.types.TypeEngine[Any], dict[str, str]], ...]] = {
    "datasets": (("analyst_order", sa.Double(), {}),),
    "accounts": (
        ("renyi_order", sa.Double(), {}),
        ("limit_divergence", sa.BigInteger(), {}),
        (
            "committed_divergence",
            sa.BigInteger(),
            {"divergence": "committed_divergence BETWEEN 0 AND limit_divergence"},
        ),
        (
            "spent_divergence",
            sa.BigInteger(),
            {
                "spent_divergence": "spent_divergence >= 0 AND "
                "(composition = 'worst' OR spent_divergence <= committed_divergence)",
                "counting": "CASE WHEN composition = 'worst' THEN renyi_order IS NULL AND limit_divergence = 0 "
                "ELSE renyi_order IS NOT NULL AND renyi_order > 1 AND limit_rho = 0 AND limit_epsilon = 0 END",
            },
        ),
    ),
    "charges": (("divergence", sa.BigInteger(), {"divergence": "divergence >= 0"}),),
    "journal": (("divergence", sa.BigInteger(), {}),),
}


def upgrade() -> None:
    if op.get_bind().execute(sa.text("SELECT name FROM accounts WHERE composition = 'sum'")).first():
        raise InvalidArgument("store", "was written by a version whose accounts have no Renyi order")
    # In this form both databases know it: SQLite takes a constraint with a new column, and never afterwards. No row
    # is written, so the journal's triggers have nothing to refuse, and every digest stays what it is.
    for table, columns in COLUMNS.items():
        for name, kind, checks in columns:
            held = " ".join(f"CONSTRAINT ck_{table}_{each} CHECK ({sql})" for each, sql in checks.items())
            amount = "" if isinstance(kind, sa.Double) else "DEFAULT 0 NOT NULL"
            written = kind.compile(dialect=op.get_bind().dialect)
            op.execute(f"ALTER TABLE {table} ADD COLUMN {name} {written} {amount} {held}")
