"""The tree heads of the log: every size that its tree has had, with the one root of that size, for ever."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import Connection, select

from equipoise.records.merkle import EMPTY_ROOT
from equipoise_server.storage.tables.transparency import checkpoints


@dataclass(frozen=True)
class TreeHead:
    """A size of the log and its root."""

    size: int
    root: bytes


EMPTY = TreeHead(0, EMPTY_ROOT)


def newest(connection: Connection) -> TreeHead:
    """Return the log's newest tree head, whether or not anybody was shown it."""
    query = select(checkpoints.c.size, checkpoints.c.root).order_by(checkpoints.c.size.desc()).limit(1)
    row = connection.execute(query).first()
    return EMPTY if row is None else TreeHead(row.size, row.root)


def root_at(connection: Connection, size: int) -> bytes | None:
    """Return the root that the log had at a size; None if the log never had that size."""
    if size == 0:
        return EMPTY_ROOT
    return connection.execute(select(checkpoints.c.root).where(checkpoints.c.size == size)).scalar_one_or_none()
