"""Datasets, rounds, what is asked in them and their results."""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    Column,
    Double,
    ForeignKey,
    ForeignKeyConstraint,
    Index,
    Integer,
    LargeBinary,
    Table,
    Text,
)

from equipoise_server.storage.tables.metadata import AnyInteger, Position, metadata

# `account`: the first dataset with the same people, whose name their account has. Only the first one has the caps:
# `analyst_epsilon`, `analyst_delta` are the cap that analysts' accounts are opened with; `analyst_order` is the
# Renyi order of those to which rounds add. A dataset that was deleted keeps its row, so that its name and its
# account are never given to others.
datasets = Table(
    "datasets",
    metadata,
    Column("name", Text, primary_key=True),
    Column("account", Text, ForeignKey("datasets.name"), nullable=False),
    Column("analyst_epsilon", Double),
    Column("analyst_delta", Double),
    Column("analyst_order", Double),
    Column("retire_time", BigInteger),
    Column("delete_time", BigInteger),
    CheckConstraint(
        "CASE WHEN account = name THEN analyst_epsilon IS NOT NULL AND analyst_delta IS NOT NULL "
        "ELSE analyst_epsilon IS NULL AND analyst_delta IS NULL AND analyst_order IS NULL END",
        name="caps",
    ),
    Index("ix_datasets_account", "account"),
)

# The snapshots of a dataset's table, from 1, each with the schema by which it is read. New rounds take the newest.
# `person`: the column of the table with the persons' ids, empty where each row is a person; `person_mode`,
# `person_records`: what a person's records are made of, and how many it has. These are alike in all versions.
dataset_versions = Table(
    "dataset_versions",
    metadata,
    Column("dataset", Text, ForeignKey("datasets.name"), primary_key=True),
    Column("version", Integer, primary_key=True, autoincrement=False),
    Column("source", Text, nullable=False),
    Column("schema", Text, nullable=False),
    Column("records", BigInteger, nullable=False),
    Column("person", Text, nullable=False),
    Column("person_mode", Text, nullable=False),
    Column("person_records", Integer, nullable=False),
    Column("create_time", BigInteger, nullable=False),
    CheckConstraint("version > 0", name="version"),
    CheckConstraint("records > 0 AND records % person_records = 0", name="records"),
    CheckConstraint("(person = '') = (person_mode = 'rows')", name="person"),
)

# `terms` is JSON without the shares; `sealed_seed` is encrypted under a key that is not in the store. `close_time`:
# when the server seals the round by itself. `run_id`: the run whose results were released; null before.
# `sealed_seed` is erased when the round has ended. `audit_nonce`: the auditor's part of the randomness, or null.
rounds = Table(
    "rounds",
    metadata,
    Column("position", Position, primary_key=True),
    Column("id", Text, nullable=False, unique=True),
    Column("dataset", Text, nullable=False),
    Column("dataset_version", Integer, nullable=False),
    Column("state", Text, nullable=False),
    Column("terms", Text, nullable=False),
    Column("plan", Text, nullable=False),
    Column("records", BigInteger, nullable=False),
    Column("universe_size", AnyInteger, nullable=False),
    Column("seed_commitment", LargeBinary, nullable=False),
    Column("sealed_seed", LargeBinary, nullable=False),
    Column("open_time", BigInteger, nullable=False),
    Column("release_time", BigInteger),
    Column("abort_reason", Text, nullable=False),
    Column("peak_memory_bytes", BigInteger, nullable=False),
    Column("close_time", BigInteger),
    Column("run_id", Text),
    Column("audit_nonce", LargeBinary),
    CheckConstraint("state IN ('open', 'sealed', 'running', 'released', 'aborted')", name="state"),
    CheckConstraint("(state = 'released') = (release_time IS NOT NULL)", name="release_time"),
    ForeignKeyConstraint(["dataset", "dataset_version"], ["dataset_versions.dataset", "dataset_versions.version"]),
    Index("ix_rounds_run_id", "run_id"),
    Index("ix_rounds_dataset", "dataset"),
)

# `sensitivity`, `support`, `ways`: 0 where none was declared.
shares = Table(
    "shares",
    metadata,
    Column("round_id", Text, ForeignKey("rounds.id"), primary_key=True),
    Column("analyst", Text, ForeignKey("identities.name"), primary_key=True),
    Column("position", Integer, nullable=False),
    Column("statements", BigInteger, nullable=False),
    Column("queries", BigInteger, nullable=False),
    Column("sensitivity", BigInteger, nullable=False),
    Column("support", BigInteger, nullable=False),
    Column("ways", BigInteger, nullable=False),
    Index("ix_shares_analyst", "analyst"),
)

# `salt`: the analyst's, under which the workload is committed to. `receipt`: the exact signed envelope that the
# analyst got.
submissions = Table(
    "submissions",
    metadata,
    Column("round_id", Text, primary_key=True),
    Column("analyst", Text, primary_key=True),
    Column("workload", LargeBinary, nullable=False),
    Column("digest", LargeBinary, nullable=False),
    Column("statements", BigInteger, nullable=False),
    Column("queries", BigInteger, nullable=False),
    Column("accept_time", BigInteger, nullable=False),
    Column("salt", LargeBinary, nullable=False),
    Column("receipt", LargeBinary, nullable=False),
    ForeignKeyConstraint(["round_id", "analyst"], ["shares.round_id", "shares.analyst"]),
)

# A computation of a round. Its results are stored as it makes them; `complete_time` is null until all are there. Of
# runs that a crash cut off nothing is ever shown, and the next run removes them.
runs = Table(
    "runs",
    metadata,
    Column("id", Text, primary_key=True),
    Column("round_id", Text, ForeignKey("rounds.id"), nullable=False),
    Column("start_time", BigInteger, nullable=False),
    Column("complete_time", BigInteger),
    Column("peak_memory_bytes", BigInteger, nullable=False),
    Index("ix_runs_round_id", "round_id"),
)

# Triggers refuse any change of a message, and the removal of one that was released to an analyst who is there.
result_chunks = Table(
    "result_chunks",
    metadata,
    Column("run_id", Text, ForeignKey("runs.id"), primary_key=True),
    Column("analyst", Text, ForeignKey("identities.name"), primary_key=True),
    Column("sequence", BigInteger, primary_key=True, autoincrement=False),
    Column("chunk", LargeBinary, nullable=False),
)

# What a run's stream of one analyst is committed to by; see docs/formats.md.
stream_digests = Table(
    "stream_digests",
    metadata,
    Column("run_id", Text, ForeignKey("runs.id"), primary_key=True),
    Column("analyst", Text, ForeignKey("identities.name"), primary_key=True),
    Column("digest", LargeBinary, nullable=False),
    Column("messages", BigInteger, nullable=False),
    Column("queries", BigInteger, nullable=False),
)

# What a run has measured for later rounds to answer from: the bytes of its numbers. Public, and kept for ever.
measurements = Table(
    "measurements",
    metadata,
    Column("run_id", Text, ForeignKey("runs.id"), primary_key=True),
    Column("numbers", LargeBinary, nullable=False),
)

# A run's synopsis: universe cell numbers of its records, each 4 bytes, little endian.
synopses = Table(
    "synopses",
    metadata,
    Column("run_id", Text, ForeignKey("runs.id"), primary_key=True),
    Column("cells", LargeBinary, nullable=False),
)
