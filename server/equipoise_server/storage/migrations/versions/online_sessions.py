"""Online sessions: who attached to one, and what was asked and answered in it."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"

# Of a round that goes on the answers are needed; of one that is released they are kept as long as its results.
NEEDED = (
    "EXISTS (SELECT 1 FROM rounds WHERE rounds.id = OLD.round_id "
    "AND (rounds.run_id IS NOT NULL OR rounds.state NOT IN ('released', 'aborted')))"
)
DELETED = "EXISTS (SELECT 1 FROM identities WHERE identities.name = OLD.analyst AND identities.deleted IS NOT NULL)"
KEPT = f"{NEEDED} AND NOT {DELETED}"


def upgrade() -> None:
    op.create_table(
        "sessions",
        sa.Column("round_id", sa.Text(), nullable=False),
        sa.Column("answered", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(["round_id"], ["rounds.id"], name="fk_sessions_round_id"),
        sa.PrimaryKeyConstraint("round_id", name="pk_sessions"),
    )
    op.create_table(
        "attached",
        sa.Column("round_id", sa.Text(), nullable=False),
        sa.Column("analyst", sa.Text(), nullable=False),
        sa.Column("salt", sa.LargeBinary(), nullable=False),
        sa.ForeignKeyConstraint(
            ["round_id", "analyst"], ["shares.round_id", "shares.analyst"], name="fk_attached_round_id"
        ),
        sa.PrimaryKeyConstraint("round_id", "analyst", name="pk_attached"),
    )
    op.create_table(
        "asked",
        sa.Column("round_id", sa.Text(), nullable=False),
        sa.Column("analyst", sa.Text(), nullable=False),
        sa.Column("sequence", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("slot", sa.BigInteger(), nullable=False),
        sa.Column("due_time", sa.BigInteger(), nullable=False),
        sa.Column("statement", sa.LargeBinary(), nullable=False),
        sa.Column("chunk", sa.LargeBinary(), nullable=False),
        sa.Column("envelope", sa.LargeBinary(), nullable=False),
        sa.Column("chain", sa.LargeBinary(), nullable=False),
        sa.ForeignKeyConstraint(
            ["round_id", "analyst"], ["shares.round_id", "shares.analyst"], name="fk_asked_round_id"
        ),
        sa.PrimaryKeyConstraint("round_id", "analyst", "sequence", name="pk_asked"),
    )
    op.create_index("ix_asked_slot", "asked", ["round_id", "slot"], unique=True)
    if op.get_bind().dialect.name == "sqlite":
        for change, when in (("UPDATE", ""), ("DELETE", f"WHEN {KEPT}")):
            op.execute(
                f"CREATE TRIGGER asked_no_{change.lower()} BEFORE {change} ON asked {when} "
                "BEGIN SELECT RAISE(ABORT, 'asked is append-only'); END"
            )
        return
    refuse = "RAISE 'asked is append-only' USING ERRCODE = 'integrity_constraint_violation'"
    op.execute(f"CREATE FUNCTION asked_refuses() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN {refuse}; END $$")
    op.execute(
        "CREATE FUNCTION asked_keeps_needed() RETURNS trigger LANGUAGE plpgsql AS "
        f"$$ BEGIN IF {KEPT} THEN {refuse}; END IF; RETURN OLD; END $$"
    )
    for change in ("UPDATE", "TRUNCATE"):
        op.execute(
            f"CREATE TRIGGER asked_no_{change.lower()} BEFORE {change} ON asked "
            "FOR EACH STATEMENT EXECUTE FUNCTION asked_refuses()"
        )
    op.execute(
        "CREATE TRIGGER asked_no_delete BEFORE DELETE ON asked FOR EACH ROW EXECUTE FUNCTION asked_keeps_needed()"
    )
