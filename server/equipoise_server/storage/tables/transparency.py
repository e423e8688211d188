"""The log's keys, tiles and checkpoints, sealed seeds, and what is on record."""

from __future__ import annotations

from sqlalchemy import BigInteger, CheckConstraint, Column, ForeignKey, Index, Integer, LargeBinary, Table, Text

from equipoise_server.storage.tables.metadata import Position, metadata

# Every key that signs for the log (`purpose` "log") or that seeds are sealed to ("auditor"). `public`: its 32
# bytes. Private keys are never here.
keys = Table(
    "keys",
    metadata,
    Column("id", Text, primary_key=True),
    Column("purpose", Text, nullable=False),
    Column("public", LargeBinary, nullable=False),
    Column("added", BigInteger, nullable=False),
    Column("retired", BigInteger),
    CheckConstraint("purpose IN ('log', 'auditor')", name="purpose"),
)

# A round's seed, sealed to an auditor's key; removed when the time for audits is over.
sealed_seeds = Table(
    "sealed_seeds",
    metadata,
    Column("round_id", Text, ForeignKey("rounds.id"), primary_key=True),
    Column("key_id", Text, ForeignKey("keys.id"), primary_key=True),
    Column("sealed", LargeBinary, nullable=False),
)

# What was recorded at one step. Its leaf enters the log from `publish_time` on, and then has an index; `dataset`
# and `round_id` are empty where it is about none. `login_of`: whom it lets log in, or not any more; mostly null.
records = Table(
    "records",
    metadata,
    Column("position", Position, primary_key=True),
    Column("kind", Text, nullable=False),
    Column("dataset", Text, nullable=False),
    Column("round_id", Text, nullable=False),
    Column("login_of", Text),
    Column("root", LargeBinary, nullable=False),
    Column("leaf", LargeBinary, nullable=False),
    Column("publish_time", BigInteger, nullable=False),
    Column("log_index", BigInteger, unique=True),
    Index("ix_records_round_id", "round_id"),
    Index("ix_records_dataset", "dataset"),
    Index("ix_records_login_of", "login_of"),
)

# The leaves of a record's own tree. `content` and `salt` are null where the hash only fills the tree up, and where
# they were removed with the analyst they were about; `audience`: "analyst", "round", "auditor", empty for padding.
record_items = Table(
    "record_items",
    metadata,
    Column("record", BigInteger, ForeignKey("records.position"), primary_key=True),
    Column("place", Integer, primary_key=True),
    Column("audience", Text, nullable=False),
    Column("analyst", Text, nullable=False),
    Column("hash", LargeBinary, nullable=False),
    Column("salt", LargeBinary),
    Column("content", LargeBinary),
    CheckConstraint("audience IN ('', 'analyst', 'round', 'auditor')", name="audience"),
    CheckConstraint("(salt IS NULL) = (content IS NULL)", name="opening"),
    Index("ix_record_items_analyst", "analyst"),
)

# The log's tree in tiles of up to 256 hashes, each row a tile; only the last tile of a level changes.
log_tiles = Table(
    "log_tiles",
    metadata,
    Column("level", Integer, primary_key=True, autoincrement=False),
    Column("number", BigInteger, primary_key=True, autoincrement=False),
    Column("hashes", LargeBinary, nullable=False),
)

# Every size at which the log was, with its root: never two of one size. `note`: the signed checkpoint, null until
# the guard knows of it.
checkpoints = Table(
    "checkpoints",
    metadata,
    Column("size", BigInteger, primary_key=True, autoincrement=False),
    Column("root", LargeBinary, nullable=False),
    Column("note", LargeBinary),
)
