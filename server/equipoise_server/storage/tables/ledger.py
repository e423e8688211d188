"""Budget accounts, what rounds hold on them, and the journal of both."""

from __future__ import annotations

from sqlalchemy import BigInteger, CheckConstraint, Column, Double, ForeignKey, Index, LargeBinary, Table, Text

from equipoise_server.storage.tables.metadata import metadata

# The limits are the cap in units, rounded down: a second fence behind the ledger's own comparison. `account`: the
# first of the datasets whose people, or analysts, it counts for. `renyi_order`: at which rounds add; null where
# only the worst round counts.
accounts = Table(
    "accounts",
    metadata,
    Column("name", Text, primary_key=True),
    Column("account", Text, ForeignKey("datasets.name"), nullable=False),
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
    Index("ix_accounts_account", "account"),
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
        "action IN ('open-account', 'set-cap', 'reserve', 'run', 'reduce', 'spend', 'release', 'write-off')",
        name="action",
    ),
    Index("ix_journal_account", "account"),
)
