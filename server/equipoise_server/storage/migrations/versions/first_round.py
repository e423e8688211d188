"""The tables of a first release round: identities, datasets, rounds, both ledgers, results."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None

POSITION = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
APPEND_ONLY = ("journal", "result_chunks")  # what has been charged or delivered never changes


def upgrade() -> None:
    op.create_table(
        "datasets",
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("source", sa.Text(), nullable=False),
        sa.Column("schema", sa.Text(), nullable=False),
        sa.Column("records", sa.BigInteger(), nullable=False),
        sa.Column("analyst_epsilon", sa.Double(), nullable=False),
        sa.Column("analyst_delta", sa.Double(), nullable=False),
        sa.Column("create_time", sa.BigInteger(), nullable=False),
        sa.CheckConstraint("records > 0", name=op.f("ck_datasets_records")),
        sa.PrimaryKeyConstraint("name", name="pk_datasets"),
    )
    op.create_table(
        "identities",
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("role", sa.Text(), nullable=False),
        sa.Column("created", sa.BigInteger(), nullable=False),
        sa.CheckConstraint("role IN ('analyst', 'operator', 'auditor')", name=op.f("ck_identities_role")),
        sa.PrimaryKeyConstraint("name", name="pk_identities"),
    )
    op.create_table(
        "journal",
        sa.Column("sequence", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("time", sa.BigInteger(), nullable=False),
        sa.Column("action", sa.Text(), nullable=False),
        sa.Column("account", sa.Text(), nullable=False),
        sa.Column("round_id", sa.Text(), nullable=False),
        sa.Column("rho", sa.BigInteger(), nullable=False),
        sa.Column("epsilon", sa.BigInteger(), nullable=False),
        sa.Column("delta", sa.BigInteger(), nullable=False),
        sa.Column("events", sa.Text(), nullable=False),
        sa.Column("digest", sa.LargeBinary(), nullable=False),
        sa.CheckConstraint(
            "action IN ('open-account', 'reserve', 'spend', 'release')", name=op.f("ck_journal_action")
        ),
        sa.PrimaryKeyConstraint("sequence", name="pk_journal"),
    )
    op.create_table(
        "requests",
        sa.Column("caller", sa.Text(), nullable=False),
        sa.Column("request_id", sa.Text(), nullable=False),
        sa.Column("method", sa.Text(), nullable=False),
        sa.Column("content", sa.LargeBinary(), nullable=False),
        sa.Column("answer", sa.Text(), nullable=False),
        sa.Column("time", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("caller", "request_id", name="pk_requests"),
    )
    op.create_table(
        "accounts",
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("dataset", sa.Text(), nullable=False),
        sa.Column("composition", sa.Text(), nullable=False),
        sa.Column("cap_epsilon", sa.Double(), nullable=False),
        sa.Column("cap_delta", sa.Double(), nullable=False),
        sa.Column("limit_rho", sa.BigInteger(), nullable=False),
        sa.Column("limit_epsilon", sa.BigInteger(), nullable=False),
        sa.Column("limit_delta", sa.BigInteger(), nullable=False),
        sa.Column("spent_rho", sa.BigInteger(), nullable=False),
        sa.Column("spent_epsilon", sa.BigInteger(), nullable=False),
        sa.Column("spent_delta", sa.BigInteger(), nullable=False),
        sa.Column("committed_rho", sa.BigInteger(), nullable=False),
        sa.Column("committed_epsilon", sa.BigInteger(), nullable=False),
        sa.Column("committed_delta", sa.BigInteger(), nullable=False),
        sa.CheckConstraint(
            "composition = 'worst' OR (spent_rho <= committed_rho AND spent_epsilon <= committed_epsilon "
            "AND spent_delta <= committed_delta)",
            name=op.f("ck_accounts_order"),
        ),
        sa.CheckConstraint("composition IN ('sum', 'worst')", name=op.f("ck_accounts_composition")),
        sa.CheckConstraint("committed_delta BETWEEN 0 AND limit_delta", name=op.f("ck_accounts_delta")),
        sa.CheckConstraint("committed_epsilon BETWEEN 0 AND limit_epsilon", name=op.f("ck_accounts_epsilon")),
        sa.CheckConstraint("committed_rho BETWEEN 0 AND limit_rho", name=op.f("ck_accounts_rho")),
        sa.CheckConstraint(
            "spent_rho >= 0 AND spent_epsilon >= 0 AND spent_delta >= 0", name=op.f("ck_accounts_spent")
        ),
        sa.ForeignKeyConstraint(["dataset"], ["datasets.name"], name="fk_accounts_dataset"),
        sa.PrimaryKeyConstraint("name", name="pk_accounts"),
    )
    op.create_index("ix_accounts_dataset", "accounts", ["dataset"], unique=False)
    op.create_table(
        "certificates",
        sa.Column("serial", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("certificate", sa.LargeBinary(), nullable=False),
        sa.Column("created", sa.BigInteger(), nullable=False),
        sa.Column("revoked", sa.BigInteger(), nullable=True),
        sa.ForeignKeyConstraint(["name"], ["identities.name"], name="fk_certificates_name"),
        sa.PrimaryKeyConstraint("serial", name="pk_certificates"),
    )
    op.create_table(
        "rounds",
        sa.Column("position", POSITION, nullable=False),
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("dataset", sa.Text(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("terms", sa.Text(), nullable=False),
        sa.Column("plan", sa.Text(), nullable=False),
        sa.Column("records", sa.BigInteger(), nullable=False),
        sa.Column("universe_size", sa.BigInteger(), nullable=False),
        sa.Column("seed_commitment", sa.LargeBinary(), nullable=False),
        sa.Column("sealed_seed", sa.LargeBinary(), nullable=False),
        sa.Column("open_time", sa.BigInteger(), nullable=False),
        sa.Column("release_time", sa.BigInteger(), nullable=True),
        sa.Column("abort_reason", sa.Text(), nullable=False),
        sa.Column("peak_memory_bytes", sa.BigInteger(), nullable=False),
        sa.CheckConstraint(
            "(state = 'released') = (release_time IS NOT NULL)", name=op.f("ck_rounds_release_time")
        ),
        sa.CheckConstraint(
            "state IN ('open', 'sealed', 'running', 'released', 'aborted')", name=op.f("ck_rounds_state")
        ),
        sa.ForeignKeyConstraint(["dataset"], ["datasets.name"], name="fk_rounds_dataset"),
        sa.PrimaryKeyConstraint("position", name="pk_rounds"),
        sa.UniqueConstraint("id", name="uq_rounds_id"),
    )
    op.create_table(
        "charges",
        sa.Column("round_id", sa.Text(), nullable=False),
        sa.Column("account", sa.Text(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("rho", sa.BigInteger(), nullable=False),
        sa.Column("epsilon", sa.BigInteger(), nullable=False),
        sa.Column("delta", sa.BigInteger(), nullable=False),
        sa.Column("events", sa.Text(), nullable=False),
        sa.CheckConstraint("state IN ('reserved', 'spent', 'released')", name=op.f("ck_charges_state")),
        sa.CheckConstraint("rho >= 0 AND epsilon >= 0 AND delta >= 0", name=op.f("ck_charges_amount")),
        sa.ForeignKeyConstraint(["account"], ["accounts.name"], name="fk_charges_account"),
        sa.ForeignKeyConstraint(["round_id"], ["rounds.id"], name="fk_charges_round_id"),
        sa.PrimaryKeyConstraint("round_id", "account", name="pk_charges"),
    )
    op.create_index("ix_charges_account", "charges", ["account"], unique=False)
    op.create_table(
        "shares",
        sa.Column("round_id", sa.Text(), nullable=False),
        sa.Column("analyst", sa.Text(), nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("statements", sa.BigInteger(), nullable=False),
        sa.Column("queries", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(["analyst"], ["identities.name"], name="fk_shares_analyst"),
        sa.ForeignKeyConstraint(["round_id"], ["rounds.id"], name="fk_shares_round_id"),
        sa.PrimaryKeyConstraint("round_id", "analyst", name="pk_shares"),
    )
    op.create_index("ix_shares_analyst", "shares", ["analyst"], unique=False)
    op.create_table(
        "synopses",
        sa.Column("round_id", sa.Text(), nullable=False),
        sa.Column("cells", sa.LargeBinary(), nullable=False),
        sa.ForeignKeyConstraint(["round_id"], ["rounds.id"], name="fk_synopses_round_id"),
        sa.PrimaryKeyConstraint("round_id", name="pk_synopses"),
    )
    op.create_table(
        "submissions",
        sa.Column("round_id", sa.Text(), nullable=False),
        sa.Column("analyst", sa.Text(), nullable=False),
        sa.Column("workload", sa.LargeBinary(), nullable=False),
        sa.Column("digest", sa.LargeBinary(), nullable=False),
        sa.Column("statements", sa.BigInteger(), nullable=False),
        sa.Column("queries", sa.BigInteger(), nullable=False),
        sa.Column("accept_time", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(
            ["round_id", "analyst"], ["shares.round_id", "shares.analyst"], name="fk_submissions_round_id"
        ),
        sa.PrimaryKeyConstraint("round_id", "analyst", name="pk_submissions"),
    )
    op.create_table(
        "result_chunks",
        sa.Column("round_id", sa.Text(), nullable=False),
        sa.Column("analyst", sa.Text(), nullable=False),
        sa.Column("sequence", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("chunk", sa.LargeBinary(), nullable=False),
        sa.ForeignKeyConstraint(
            ["round_id", "analyst"],
            ["submissions.round_id", "submissions.analyst"],
            name="fk_result_chunks_round_id",
        ),
        sa.PrimaryKeyConstraint("round_id", "analyst", "sequence", name="pk_result_chunks"),
    )
    for table in APPEND_ONLY:
        _refuse_changes(table)


def _refuse_changes(table: str) -> None:
    if op.get_bind().dialect.name == "sqlite":
        for change in ("UPDATE", "DELETE"):
            op.execute(
                f"CREATE TRIGGER {table}_no_{change.lower()} BEFORE {change} ON {table} "
                f"BEGIN SELECT RAISE(ABORT, '{table} is append-only'); END"
            )
        return
    op.execute(
        f"CREATE FUNCTION {table}_refuses() RETURNS trigger LANGUAGE plpgsql AS "
        f"$$ BEGIN RAISE '{table} is append-only' USING ERRCODE = 'integrity_constraint_violation'; END $$"
    )
    # TRUNCATE deletes without looking at rows.
    for change in ("UPDATE", "DELETE", "TRUNCATE"):
        op.execute(
            f"CREATE TRIGGER {table}_no_{change.lower()} BEFORE {change} ON {table} "
            f"FOR EACH STATEMENT EXECUTE FUNCTION {table}_refuses()"
        )
