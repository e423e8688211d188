"""Results stored while they are computed, closing times, retired datasets, more kinds of journal entries."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"

ACTIONS = "action IN ('open-account', 'set-cap', 'reserve', 'run', 'spend', 'release', 'write-off')"
JOURNAL = "sequence, time, action, account, round_id, rho, epsilon, delta, events, digest"


def upgrade() -> None:
    op.add_column("datasets", sa.Column("retire_time", sa.BigInteger(), nullable=True))
    op.add_column("rounds", sa.Column("close_time", sa.BigInteger(), nullable=True))
    op.add_column("rounds", sa.Column("run_id", sa.Text(), nullable=True))
    op.create_table(
        "runs",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("round_id", sa.Text(), nullable=False),
        sa.Column("start_time", sa.BigInteger(), nullable=False),
        sa.Column("complete_time", sa.BigInteger(), nullable=True),
        sa.Column("peak_memory_bytes", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(["round_id"], ["rounds.id"], name="fk_runs_round_id"),
        sa.PrimaryKeyConstraint("id", name="pk_runs"),
    )
    op.create_index("ix_runs_round_id", "runs", ["round_id"], unique=False)
    # What was released before has its round's id as its run's.
    op.execute(
        "INSERT INTO runs (id, round_id, start_time, complete_time, peak_memory_bytes) "
        "SELECT id, id, release_time, release_time, peak_memory_bytes FROM rounds WHERE state = 'released'"
    )
    op.execute("UPDATE rounds SET run_id = id WHERE state = 'released'")
    _move_results()
    _allow_more_actions()
    op.create_index("ix_journal_account", "journal", ["account"], unique=False)


def _move_results() -> None:
    op.create_table(
        "run_chunks",
        sa.Column("run_id", sa.Text(), nullable=False),
        sa.Column("analyst", sa.Text(), nullable=False),
        sa.Column("sequence", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("chunk", sa.LargeBinary(), nullable=False),
        sa.ForeignKeyConstraint(["run_id"], ["runs.id"], name="fk_result_chunks_run_id"),
        sa.ForeignKeyConstraint(["analyst"], ["identities.name"], name="fk_result_chunks_analyst"),
        sa.PrimaryKeyConstraint("run_id", "analyst", "sequence", name="pk_run_chunks"),
    )
    op.execute("INSERT INTO run_chunks SELECT round_id, analyst, sequence, chunk FROM result_chunks")
    op.drop_table("result_chunks")
    op.rename_table("run_chunks", "result_chunks")
    op.create_table(
        "run_synopses",
        sa.Column("run_id", sa.Text(), nullable=False),
        sa.Column("cells", sa.LargeBinary(), nullable=False),
        sa.ForeignKeyConstraint(["run_id"], ["runs.id"], name="fk_synopses_run_id"),
        sa.PrimaryKeyConstraint("run_id", name="pk_run_synopses"),
    )
    op.execute("INSERT INTO run_synopses SELECT round_id, cells FROM synopses")
    op.drop_table("synopses")
    op.rename_table("run_synopses", "synopses")
    released = "EXISTS (SELECT 1 FROM rounds WHERE rounds.run_id = OLD.run_id)"
    if op.get_bind().dialect.name == "sqlite":
        _refuse("UPDATE", "result_chunks")
        _refuse("DELETE", "result_chunks", f"WHEN {released}")
        return
    refuse = "RAISE 'result_chunks is append-only' USING ERRCODE = 'integrity_constraint_violation'"
    op.execute(
        "CREATE OR REPLACE FUNCTION result_chunks_refuses() RETURNS trigger LANGUAGE plpgsql AS "
        f"$$ BEGIN {refuse}; END $$"
    )
    op.execute(
        "CREATE FUNCTION result_chunks_keeps_released() RETURNS trigger LANGUAGE plpgsql AS "
        f"$$ BEGIN IF {released} THEN {refuse}; END IF; RETURN OLD; END $$"
    )
    for change in ("UPDATE", "TRUNCATE"):
        op.execute(
            f"CREATE TRIGGER result_chunks_no_{change.lower()} BEFORE {change} ON result_chunks "
            "FOR EACH STATEMENT EXECUTE FUNCTION result_chunks_refuses()"
        )
    op.execute(
        "CREATE TRIGGER result_chunks_no_delete BEFORE DELETE ON result_chunks "
        "FOR EACH ROW EXECUTE FUNCTION result_chunks_keeps_released()"
    )


def _allow_more_actions() -> None:
    if op.get_bind().dialect.name != "sqlite":
        op.drop_constraint(op.f("ck_journal_action"), "journal", type_="check")
        op.create_check_constraint(op.f("ck_journal_action"), "journal", ACTIONS)
        return
    # SQLite cannot change a constraint: the table is made anew, entry by entry the same.
    integers = ("time", "rho", "epsilon", "delta")
    op.create_table(
        "next_journal",
        sa.Column("sequence", sa.BigInteger(), autoincrement=False, nullable=False),
        *(
            sa.Column(name, sa.BigInteger() if name in integers else sa.Text(), nullable=False)
            for name in ("time", "action", "account", "round_id", "rho", "epsilon", "delta", "events")
        ),
        sa.Column("digest", sa.LargeBinary(), nullable=False),
        sa.CheckConstraint(ACTIONS, name=op.f("ck_journal_action")),
        sa.PrimaryKeyConstraint("sequence", name="pk_journal"),
    )
    op.execute(f"INSERT INTO next_journal ({JOURNAL}) SELECT {JOURNAL} FROM journal")
    op.drop_table("journal")
    op.rename_table("next_journal", "journal")
    for change in ("UPDATE", "DELETE"):
        _refuse(change, "journal")


def _refuse(change: str, table: str, when: str = "") -> None:
    op.execute(
        f"CREATE TRIGGER {table}_no_{change.lower()} BEFORE {change} ON {table} {when} "
        f"BEGIN SELECT RAISE(ABORT, '{table} is append-only'); END"
    )
