"""Analysts can be deleted: their names stay taken, and their results, else kept for ever, may be removed."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"

RELEASED = "EXISTS (SELECT 1 FROM rounds WHERE rounds.run_id = OLD.run_id)"
DELETED = "EXISTS (SELECT 1 FROM identities WHERE identities.name = OLD.analyst AND identities.deleted IS NOT NULL)"
KEPT = f"{RELEASED} AND NOT {DELETED}"


def upgrade() -> None:
    op.add_column("identities", sa.Column("deleted", sa.BigInteger(), nullable=True))
    op.create_index("ix_certificates_name", "certificates", ["name"], unique=False)
    if op.get_bind().dialect.name == "sqlite":
        op.execute("DROP TRIGGER result_chunks_no_delete")
        op.execute(
            f"CREATE TRIGGER result_chunks_no_delete BEFORE DELETE ON result_chunks WHEN {KEPT} "
            "BEGIN SELECT RAISE(ABORT, 'result_chunks is append-only'); END"
        )
        return
    refuse = "RAISE 'result_chunks is append-only' USING ERRCODE = 'integrity_constraint_violation'"
    op.execute(
        "CREATE OR REPLACE FUNCTION result_chunks_keeps_released() RETURNS trigger LANGUAGE plpgsql AS "
        f"$$ BEGIN IF {KEPT} THEN {refuse}; END IF; RETURN OLD; END $$"
    )
