"""Every table. The first migration builds them from here, with the triggers of `append_only`.

Times are microseconds (see `times`), privacy amounts integers in the units of `equipoise.accounting`.
Workloads are here, so whoever reads the store reads every analyst's questions; private data are not.
"""

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
    MetaData,
    Table,
    Text,
)

metadata = MetaData(
    naming_convention={
        "pk": "pk_%(table_name)s",
        "fk": "fk_%(table_name)s_%(column_0_name)s",
        "ix": "ix_%(table_name)s_%(column_0_name)s",
        "uq": "uq_%(table_name)s_%(column_0_name)s",
        "ck": "ck_%(table_name)s_%(constraint_name)s",
    }
)

# SQLite numbers rows by itself only in a column declared INTEGER.
Position = BigInteger().with_variant(Integer(), "sqlite")

# Rows are never removed, so that a name is given once: `deleted` is when an analyst was.
identities = Table(
    "identities",
    metadata,
    Column("name", Text, primary_key=True),
    Column("role", Text, nullable=False),
    Column("created", BigInteger, nullable=False),
    Column("deleted", BigInteger),
    CheckConstraint("role IN ('analyst', 'operator', 'auditor')", name="role"),
)

# Every certificate ever issued; `serial` is the X.509 serial number in lower-case hexadecimal.
certificates = Table(
    "certificates",
    metadata,
    Column("serial", Text, primary_key=True),
    Column("name", Text, ForeignKey("identities.name"), nullable=False),
    Column("certificate", LargeBinary, nullable=False),
    Column("created", BigInteger, nullable=False),
    Column("revoked", BigInteger),
    Index("ix_certificates_name", "name"),
)

# The first answer to each request, so that the same request again gets it, also after a restart.
requests = Table(
    "requests",
    metadata,
    Column("caller", Text, primary_key=True),
    Column("request_id", Text, primary_key=True),
    Column("method", Text, nullable=False),
    Column("content", LargeBinary, nullable=False),
    Column("answer", Text, nullable=False),
    Column("time", BigInteger, nullable=False),
)

# `analyst_epsilon`, `analyst_delta`: the cap that analysts' accounts are opened with; `analyst_order`: the Renyi
# order of those to which rounds add.
datasets = Table(
    "datasets",
    metadata,
    Column("name", Text, primary_key=True),
    Column("source", Text, nullable=False),
    Column("schema", Text, nullable=False),
    Column("records", BigInteger, nullable=False),
    Column("analyst_epsilon", Double, nullable=False),
    Column("analyst_delta", Double, nullable=False),
    Column("analyst_order", Double),
    Column("create_time", BigInteger, nullable=False),
    Column("retire_time", BigInteger),
    CheckConstraint("records > 0", name="records"),
)

# `terms` is JSON without the shares; `sealed_seed` is encrypted under a key that is not in the store. `close_time`:
# when the server seals the round by itself. `run_id`: the run whose results were released; null before.
# `sealed_seed` is erased when the round has ended. `audit_nonce`: the auditor's part of the randomness, or null.
rounds = Table(
    "rounds",
    metadata,
    Column("position", Position, primary_key=True),
    Column("id", Text, nullable=False, unique=True),
    Column("dataset", Text, ForeignKey("datasets.name"), nullable=False),
    Column("state", Text, nullable=False),
    Column("terms", Text, nullable=False),
    Column("plan", Text, nullable=False),
    Column("records", BigInteger, nullable=False),
    Column("universe_size", BigInteger, nullable=False),
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
    Index("ix_rounds_run_id", "run_id"),
)

# `sensitivity`, `support`: 0 where none was declared.
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

# The rounds that are sessions. `answered`: how many statements ever were; it only grows, and the guard knows it.
sessions = Table(
    "sessions",
    metadata,
    Column("round_id", Text, ForeignKey("rounds.id"), primary_key=True),
    Column("answered", BigInteger, nullable=False),
)

# Who has attached to a session. `salt`: the analyst's first one, under which what it asks is committed to.
attached = Table(
    "attached",
    metadata,
    Column("round_id", Text, primary_key=True),
    Column("analyst", Text, primary_key=True),
    Column("salt", LargeBinary, nullable=False),
    ForeignKeyConstraint(["round_id", "analyst"], ["shares.round_id", "shares.analyst"]),
)

# The statements of a session, each with what was answered: `chunk`, and the signed receipt `envelope`, exactly as
# they are delivered from `due_time` on. `sequence` counts the analyst's statements, `slot` is the place in the one
# order of all; `chain`: what the receipt says of all up to here. Triggers refuse any change of a row, and the
# removal of one whose session goes on or whose results are kept, unless its analyst was deleted.
asked = Table(
    "asked",
    metadata,
    Column("round_id", Text, primary_key=True),
    Column("analyst", Text, primary_key=True),
    Column("sequence", BigInteger, primary_key=True, autoincrement=False),
    Column("slot", BigInteger, nullable=False),
    Column("due_time", BigInteger, nullable=False),
    Column("statement", LargeBinary, nullable=False),
    Column("chunk", LargeBinary, nullable=False),
    Column("envelope", LargeBinary, nullable=False),
    Column("chain", LargeBinary, nullable=False),
    ForeignKeyConstraint(["round_id", "analyst"], ["shares.round_id", "shares.analyst"]),
    Index("ix_asked_slot", "round_id", "slot", unique=True),
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

# A run's synopsis: universe cell numbers of its records, each 4 bytes, little endian.
synopses = Table(
    "synopses",
    metadata,
    Column("run_id", Text, ForeignKey("runs.id"), primary_key=True),
    Column("cells", LargeBinary, nullable=False),
)

# The limits are the cap in units, rounded down: a second fence behind the ledger's own comparison. `renyi_order`:
# at which rounds add; null where only the worst round counts.
accounts = Table(
    "accounts",
    metadata,
    Column("name", Text, primary_key=True),
    Column("dataset", Text, ForeignKey("datasets.name"), nullable=False),
    Column("composition", Text, nullable=False),
    Column("cap_epsilon", Double, nullable=False),
    Column("cap_delta", Double, nullable=False),
    Column("renyi_order", Double),
    Column("limit_rho", BigInteger, nullable=False),
    Column("limit_epsilon", BigInteger, nullable=False),
    Column("limit_delta", BigInteger, nullable=False),
    Column("limit_divergence", BigInteger, nullable=False),
    Column("spent_rho", BigInteger, nullable=False),
    Column("spent_epsilon", BigInteger, nullable=False),
    Column("spent_delta", BigInteger, nullable=False),
    Column("spent_divergence", BigInteger, nullable=False),
    Column("committed_rho", BigInteger, nullable=False),
    Column("committed_epsilon", BigInteger, nullable=False),
    Column("committed_delta", BigInteger, nullable=False),
    Column("committed_divergence", BigInteger, nullable=False),
    CheckConstraint("composition IN ('sum', 'worst')", name="composition"),
    CheckConstraint("spent_rho >= 0 AND spent_epsilon >= 0 AND spent_delta >= 0", name="spent"),
    CheckConstraint("committed_rho BETWEEN 0 AND limit_rho", name="rho"),
    CheckConstraint("committed_epsilon BETWEEN 0 AND limit_epsilon", name="epsilon"),
    CheckConstraint("committed_delta BETWEEN 0 AND limit_delta", name="delta"),
    CheckConstraint(
        "composition = 'worst' OR (spent_rho <= committed_rho AND spent_epsilon <= committed_epsilon "
        "AND spent_delta <= committed_delta)",
        name="order",
    ),
    CheckConstraint("committed_divergence BETWEEN 0 AND limit_divergence", name="divergence"),
    CheckConstraint(
        "spent_divergence >= 0 AND (composition = 'worst' OR spent_divergence <= committed_divergence)",
        name="spent_divergence",
    ),
    CheckConstraint(
        "CASE WHEN composition = 'worst' THEN renyi_order IS NULL AND limit_divergence = 0 "
        "ELSE renyi_order IS NOT NULL AND renyi_order > 1 AND limit_rho = 0 AND limit_epsilon = 0 END",
        name="counting",
    ),
    Index("ix_accounts_dataset", "dataset"),
)

# One row for each account that a round was reserved on.
charges = Table(
    "charges",
    metadata,
    Column("round_id", Text, ForeignKey("rounds.id"), primary_key=True),
    Column("account", Text, ForeignKey("accounts.name"), primary_key=True),
    Column("state", Text, nullable=False),
    Column("rho", BigInteger, nullable=False),
    Column("epsilon", BigInteger, nullable=False),
    Column("delta", BigInteger, nullable=False),
    Column("divergence", BigInteger, nullable=False),
    Column("events", Text, nullable=False),
    CheckConstraint("state IN ('reserved', 'spent', 'released')", name="state"),
    CheckConstraint("rho >= 0 AND epsilon >= 0 AND delta >= 0", name="amount"),
    CheckConstraint("divergence >= 0", name="divergence"),
    Index("ix_charges_account", "account"),
)

# Append-only: triggers refuse any change of an entry.
journal = Table(
    "journal",
    metadata,
    Column("sequence", BigInteger, primary_key=True, autoincrement=False),
    Column("time", BigInteger, nullable=False),
    Column("action", Text, nullable=False),
    Column("account", Text, nullable=False),
    Column("round_id", Text, nullable=False),
    Column("rho", BigInteger, nullable=False),
    Column("epsilon", BigInteger, nullable=False),
    Column("delta", BigInteger, nullable=False),
    Column("divergence", BigInteger, nullable=False),
    Column("events", Text, nullable=False),
    Column("digest", LargeBinary, nullable=False),
    CheckConstraint(
        "action IN ('open-account', 'set-cap', 'reserve', 'run', 'spend', 'release', 'write-off')", name="action"
    ),
    Index("ix_journal_account", "account"),
)

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
# and `round_id` are empty where it is about none.
records = Table(
    "records",
    metadata,
    Column("position", Position, primary_key=True),
    Column("kind", Text, nullable=False),
    Column("dataset", Text, nullable=False),
    Column("round_id", Text, nullable=False),
    Column("root", LargeBinary, nullable=False),
    Column("leaf", LargeBinary, nullable=False),
    Column("publish_time", BigInteger, nullable=False),
    Column("log_index", BigInteger, unique=True),
    Index("ix_records_round_id", "round_id"),
    Index("ix_records_dataset", "dataset"),
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
