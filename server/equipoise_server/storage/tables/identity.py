"""Who may call, and the first answer to each request."""

from __future__ import annotations

from sqlalchemy import BigInteger, CheckConstraint, Column, ForeignKey, Index, LargeBinary, Table, Text

from equipoise_server.storage.tables.metadata import metadata

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
