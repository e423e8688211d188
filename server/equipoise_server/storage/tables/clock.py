"""What the store knows of the time."""

from __future__ import annotations

from sqlalchemy import BigInteger, CheckConstraint, Column, Integer, Table

from equipoise_server.storage.tables.metadata import metadata

# One row. `time`: the last time at which a server trusted its clock, or that was confirmed; `confirmations`: how
# often it was confirmed.
trusted_time = Table(
    "trusted_time",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("time", BigInteger, nullable=False),
    Column("confirmations", BigInteger, nullable=False),
    CheckConstraint("id = 1", name="one_row"),
)
