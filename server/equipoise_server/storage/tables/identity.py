"""Who may call, and the first answer to each request."""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    ForeignKey,
    Index,
    LargeBinary,
    Table,
    Text,
    UniqueConstraint,
)

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

# Every certificate ever issued, but those of logins that have long expired. `serial` is the X.509 serial number in
# lower-case hexadecimal, `key` the SHA-256 of its holder's public key, `expires` the last moment of its validity,
# `login` whether it was had by logging in, `used` the time of the first call with it.
certificates = Table(
    "certificates",
    metadata,
    Column("serial", Text, primary_key=True),
    Column("name", Text, ForeignKey("identities.name"), nullable=False),
    Column("key", LargeBinary, nullable=False),
    Column("certificate", LargeBinary, nullable=False),
    Column("created", BigInteger, nullable=False),
    Column("expires", BigInteger, nullable=False),
    Column("login", Boolean, nullable=False),
    Column("revoked", BigInteger),
    Column("used", BigInteger),
    Index("ix_certificates_key", "name", "key"),
    Index("ix_certificates_login", "name", "login", "created"),
    Index("ix_certificates_expires", "expires"),
)

# The account at an identity provider with which somebody may log in, until revoked or deleted.
logins = Table(
    "logins",
    metadata,
    Column("name", Text, ForeignKey("identities.name"), primary_key=True),
    Column("issuer", Text, nullable=False),
    Column("subject", Text, nullable=False),
    UniqueConstraint("issuer", "subject", name="uq_logins_account"),
)

# What is kept of every caller for ever. `requests`: how many of its requests were carried out; `last_time`: the
# time of the newest. One row holds it, so that no transaction that writes has to look at all requests of a caller.
callers = Table(
    "callers",
    metadata,
    Column("caller", Text, primary_key=True),
    Column("requests", BigInteger, nullable=False),
    Column("last_time", BigInteger, nullable=False),
)

# The first answers to each caller's newest requests, so that the same request again gets the same answer, also
# after a restart. `number` counts the caller's requests.
requests = Table(
    "requests",
    metadata,
    Column("caller", Text, primary_key=True),
    Column("request_id", Text, primary_key=True),
    Column("method", Text, nullable=False),
    Column("content", LargeBinary, nullable=False),
    Column("answer", Text, nullable=False),
    Column("time", BigInteger, nullable=False),
    Column("number", BigInteger, nullable=False),
    Index("ix_requests_number", "caller", "number", unique=True),
    Index("ix_requests_time", "time"),
)
