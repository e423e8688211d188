"""Checks that every row refers to rows that are there.

PostgreSQL holds references always. SQLite holds them for connections that ask it to, so another program that opens
the file may break them.
"""

from __future__ import annotations

from sqlalchemy import Connection, text

from equipoise.errors import DataLoss


def check_references(connection: Connection) -> None:
    """Raise `DataLoss`, naming the tables, where a row of SQLite refers to a row that is not there."""
    if connection.dialect.name != "sqlite":
        return
    broken = connection.execute(text("PRAGMA foreign_key_check")).first()
    if broken is not None:
        raise DataLoss(
            f"the store is damaged: a row of {broken[0]} refers to a row of {broken[2]} that is not there"
        )
