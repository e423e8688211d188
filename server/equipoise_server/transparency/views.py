"""The auditors' view of the log: leaves, records with every item, and proofs, all under a signed checkpoint."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import Connection, func, select

from equipoise.errors import NotFound
from equipoise.model.log import RecordOpening
from equipoise_server.storage.paging import cut_page, page_limit, page_number
from equipoise_server.storage.store import Store
from equipoise_server.storage.tables.transparency import record_items, records
from equipoise_server.transparency import log
from equipoise_server.transparency.record_writer import stored_openings

PAGE_BYTES = 1 << 20  # of contents, unless one record alone has more


@dataclass(frozen=True)
class LogViews:
    """Views of one store's log. Pages begin with the first leaf; a page token is the index of the next leaf."""

    store: Store

    def checkpoint(self) -> bytes:
        """Return the newest signed checkpoint. Raises `NotFound` before the first."""
        with self.store.read() as connection:
            note = log.checkpoint(connection)
        if note is None:
            raise NotFound("the log has no checkpoint yet")
        return note

    def leaves(self, page_size: int, page_token: str) -> tuple[list[bytes], str]:
        """Return a page of leaves, as far as the newest checkpoint goes, and the token of the next page."""
        limit, first = page_limit(page_size), page_number(page_token)
        with self.store.read() as connection:
            entries = log.entries(connection, first, limit + 1)
        shown, token = cut_page(entries, limit, lambda entry: str(entry.index + 1))
        return [entry.leaf for entry in shown], token

    def records(self, page_size: int, page_token: str) -> tuple[list[RecordOpening], str]:
        """Return a page of records, and the next page's token. A page has fewer records where they are large."""
        limit, first = page_limit(page_size), page_number(page_token)
        with self.store.read() as connection:
            entries = log.entries(connection, first, limit + 1)
            sizes = _sizes(connection, first, first + limit)
            shown, left = 0, PAGE_BYTES
            for entry in entries[:limit]:
                left -= sizes.get(entry.index, 0)
                if shown and left < 0:
                    break
                shown += 1
            opened = [_opened(connection, entry) for entry in entries[:shown]]
        return opened, str(entries[shown].index) if shown < len(entries) else ""

    def inclusion(self, leaf_index: int, tree_size: int) -> list[bytes]:
        """Return the inclusion proof of a leaf. Raises `OutOfRange` for a size beyond the newest checkpoint."""
        with self.store.read() as connection:
            return log.inclusion(connection, leaf_index, tree_size)

    def consistency(self, old_size: int, new_size: int) -> list[bytes]:
        """Return the consistency proof of two sizes. Raises `OutOfRange` beyond the newest checkpoint."""
        with self.store.read() as connection:
            return log.consistency(connection, old_size, new_size)


def _sizes(connection: Connection, first: int, end: int) -> dict[int, int]:
    """Return the bytes of the contents of each record, by the record's index in the log, for [first, end)."""
    query = (
        select(records.c.log_index, func.sum(func.length(record_items.c.content)))
        .join(record_items, record_items.c.record == records.c.position)
        .where((records.c.log_index >= first) & (records.c.log_index < end))
        .group_by(records.c.log_index)
    )
    return {index: size or 0 for index, size in connection.execute(query)}


def _opened(connection: Connection, entry: log.Entry) -> RecordOpening:
    query = select(records.c.position).where(records.c.log_index == entry.index)
    items, padding = stored_openings(connection, connection.execute(query).scalar_one())
    return RecordOpening(entry.index, entry.leaf, items, padding)
