"""Records of every step, the log they enter, the keys that sign it and that seeds are sealed to.

Rounds and workloads from before have no records: their analysts cannot verify them.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"

POSITION = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    op.add_column("submissions", sa.Column("salt", sa.LargeBinary(), nullable=True))
    op.add_column("submissions", sa.Column("receipt", sa.LargeBinary(), nullable=True))
    op.add_column("rounds", sa.Column("audit_nonce", sa.LargeBinary(), nullable=True))
    op.create_table(
        "stream_digests",
        sa.Column("run_id", sa.Text(), nullable=False),
        sa.Column("analyst", sa.Text(), nullable=False),
        sa.Column("digest", sa.LargeBinary(), nullable=False),
        sa.Column("messages", sa.BigInteger(), nullable=False),
        sa.Column("queries", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(["run_id"], ["runs.id"], name="fk_stream_digests_run_id_runs"),
        sa.ForeignKeyConstraint(["analyst"], ["identities.name"], name="fk_stream_digests_analyst_identities"),
        sa.PrimaryKeyConstraint("run_id", "analyst", name="pk_stream_digests"),
    )
    _create_keys()
    _create_records()
    op.create_table(
        "log_tiles",
        sa.Column("level", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("number", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("hashes", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("level", "number", name="pk_log_tiles"),
    )
    op.create_table(
        "checkpoints",
        sa.Column("size", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("root", sa.LargeBinary(), nullable=False),
        sa.Column("note", sa.LargeBinary(), nullable=True),
        sa.PrimaryKeyConstraint("size", name="pk_checkpoints"),
    )


def _create_keys() -> None:
    op.create_table(
        "keys",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("purpose", sa.Text(), nullable=False),
        sa.Column("public", sa.LargeBinary(), nullable=False),
        sa.Column("added", sa.BigInteger(), nullable=False),
        sa.Column("retired", sa.BigInteger(), nullable=True),
        sa.CheckConstraint("purpose IN ('log', 'auditor')", name=op.f("ck_keys_purpose")),
        sa.PrimaryKeyConstraint("id", name="pk_keys"),
    )
    op.create_table(
        "sealed_seeds",
        sa.Column("round_id", sa.Text(), nullable=False),
        sa.Column("key_id", sa.Text(), nullable=False),
        sa.Column("sealed", sa.LargeBinary(), nullable=False),
        sa.ForeignKeyConstraint(["round_id"], ["rounds.id"], name="fk_sealed_seeds_round_id_rounds"),
        sa.ForeignKeyConstraint(["key_id"], ["keys.id"], name="fk_sealed_seeds_key_id_keys"),
        sa.PrimaryKeyConstraint("round_id", "key_id", name="pk_sealed_seeds"),
    )


def _create_records() -> None:
    op.create_table(
        "records",
        sa.Column("position", POSITION, nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("dataset", sa.Text(), nullable=False),
        sa.Column("round_id", sa.Text(), nullable=False),
        sa.Column("root", sa.LargeBinary(), nullable=False),
        sa.Column("leaf", sa.LargeBinary(), nullable=False),
        sa.Column("publish_time", sa.BigInteger(), nullable=False),
        sa.Column("log_index", sa.BigInteger(), nullable=True),
        sa.PrimaryKeyConstraint("position", name="pk_records"),
        sa.UniqueConstraint("log_index", name="uq_records_log_index"),
    )
    op.create_index("ix_records_round_id", "records", ["round_id"], unique=False)
    op.create_index("ix_records_dataset", "records", ["dataset"], unique=False)
    op.create_table(
        "record_items",
        sa.Column("record", sa.BigInteger(), nullable=False),
        sa.Column("place", sa.Integer(), nullable=False),
        sa.Column("audience", sa.Text(), nullable=False),
        sa.Column("analyst", sa.Text(), nullable=False),
        sa.Column("hash", sa.LargeBinary(), nullable=False),
        sa.Column("salt", sa.LargeBinary(), nullable=True),
        sa.Column("content", sa.LargeBinary(), nullable=True),
        sa.CheckConstraint(
            "audience IN ('', 'analyst', 'round', 'auditor')", name=op.f("ck_record_items_audience")
        ),
        sa.CheckConstraint("(salt IS NULL) = (content IS NULL)", name=op.f("ck_record_items_opening")),
        sa.ForeignKeyConstraint(["record"], ["records.position"], name="fk_record_items_record_records"),
        sa.PrimaryKeyConstraint("record", "place", name="pk_record_items"),
    )
    op.create_index("ix_record_items_analyst", "record_items", ["analyst"], unique=False)
