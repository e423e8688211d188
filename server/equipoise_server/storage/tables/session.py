"""What is asked one statement at a time, the answers as they were given, and requests for grants."""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Column,
    Double,
    ForeignKey,
    ForeignKeyConstraint,
    Index,
    LargeBinary,
    Table,
    Text,
    UniqueConstraint,
)

from equipoise_server.storage.tables.metadata import Position, metadata

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
# order of all; `chain`: what the receipt says of all up to here; `cost`: of a grant, in
# units of 10^-12 of rho, 0 in other sessions. Triggers refuse any change of a row, and the
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
    Column("cost", BigInteger, nullable=False),
    ForeignKeyConstraint(["round_id", "analyst"], ["shares.round_id", "shares.analyst"]),
    Index("ix_asked_slot", "round_id", "slot", unique=True),
)

# Rounds that are opened by the calendar. `terms`: JSON of the dataset, the terms and the shares; `decided`: how
# many openings were due and are done with.
round_schedules = Table(
    "round_schedules",
    metadata,
    Column("position", Position, primary_key=True),
    Column("id", Text, nullable=False, unique=True),
    Column("terms", Text, nullable=False),
    Column("period", Text, nullable=False),
    Column("first_time", BigInteger, nullable=False),
    Column("open_seconds", BigInteger, nullable=False),
    Column("yearly_epsilon", Double, nullable=False),
    Column("yearly_delta", Double, nullable=False),
    Column("create_time", BigInteger, nullable=False),
    Column("stop_time", BigInteger),
    Column("decided", BigInteger, nullable=False),
    Column("problem", Text, nullable=False),
)

# What a schedule has opened. `number` counts its openings that were due, from 0.
scheduled_rounds = Table(
    "scheduled_rounds",
    metadata,
    Column("schedule_id", Text, ForeignKey("round_schedules.id"), primary_key=True),
    Column("number", BigInteger, primary_key=True, autoincrement=False),
    Column("round_id", Text, ForeignKey("rounds.id"), nullable=False),
)

# What analysts asked operators for. `number` counts an analyst's requests; `round_id`: the grant that was given.
grant_requests = Table(
    "grant_requests",
    metadata,
    Column("position", Position, primary_key=True),
    Column("analyst", Text, ForeignKey("identities.name"), nullable=False),
    Column("number", BigInteger, nullable=False),
    Column("dataset", Text, nullable=False),
    Column("reason", Text, nullable=False),
    Column("epsilon", Double, nullable=False),
    Column("create_time", BigInteger, nullable=False),
    Column("state", Text, nullable=False),
    Column("answer", Text, nullable=False),
    Column("round_id", Text, ForeignKey("rounds.id")),
    Column("decide_time", BigInteger),
    UniqueConstraint("analyst", "number", name="uq_grant_requests_number"),
)
