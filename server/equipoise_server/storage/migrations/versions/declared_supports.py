"""Declared supports of shares; those of earlier rounds declared none."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    op.add_column("shares", sa.Column("support", sa.BigInteger(), server_default="0", nullable=False))
