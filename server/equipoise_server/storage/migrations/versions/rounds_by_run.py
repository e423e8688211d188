"""Rounds are found by their runs: a trigger asks of every result that is removed whether it was released."""

from __future__ import annotations

from alembic import op

revision = "0008"
down_revision = "0007"


def upgrade() -> None:
    op.create_index("ix_rounds_run_id", "rounds", ["run_id"], unique=False)
