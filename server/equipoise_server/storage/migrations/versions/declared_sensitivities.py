"""Declared sensitivities of shares; those of earlier rounds declared none."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    op.add_column("shares", sa.Column("sensitivity", sa.BigInteger(), server_default="0", nullable=False))
