"""The operators' and auditors' views of rounds."""

from __future__ import annotations

from dataclasses import dataclass, replace

from sqlalchemy import select

from equipoise.model.accounts import AccountCharge
from equipoise.model.rounds import Progress, RoundState
from equipoise_server.rounds.account_room import round_charges
from equipoise_server.rounds.records import RoundRecord
from equipoise_server.rounds.runner import NOTHING, Runner
from equipoise_server.rounds.store.results import completed
from equipoise_server.rounds.store.rounds import check_token, newest_first, read_round, round_records
from equipoise_server.storage.paging import cut_page, page_limit
from equipoise_server.storage.store import Store
from equipoise_server.storage.tables.round import rounds

ELSEWHERE = "the round is run by another server, {}"


@dataclass(frozen=True)
class RoundViews:
    """The operators' views of all rounds of one store, and of the progress of this server's workers."""

    store: Store
    runner: Runner

    def get(self, round_id: str) -> RoundRecord:
        """Return one round. Raises `NotFound`."""
        with self.store.read() as connection:
            return read_round(connection, round_id)

    def page(self, page_size: int = 0, page_token: str = "") -> tuple[list[RoundRecord], str]:
        """Return a page of rounds, newest first, and the token of the next page, which is empty on the last page.

        `page_size`: the number of rounds of a page; 0 stands for 100.
        """
        limit = page_limit(page_size)
        with self.store.read() as connection:
            check_token(connection, page_token)
            records = round_records(connection, newest_first(page_token, limit + 1))
        return cut_page(records, limit, lambda record: record.id)

    def charges(self, record: RoundRecord) -> tuple[AccountCharge, ...]:
        """Return a round's charges on the data account and on its first analyst account. Raises `NotFound`."""
        with self.store.read() as connection:
            return round_charges(connection, record)

    def progress(self, round_id: str) -> Progress:
        """Return the progress of a round's run. For operators only. Raises `NotFound`."""
        with self.store.read() as connection:
            query = select(rounds.c.peak_memory_bytes).where(rounds.c.id == round_id)
            record, peak = read_round(connection, round_id), connection.execute(query).scalar_one()
            run = completed(connection, round_id)
        if record.state is RoundState.RELEASED:
            return Progress("released", 1, 1, 0.0, complete=True, peak_memory_bytes=peak)
        if record.state is RoundState.RUNNING and run is not None:
            return Progress("complete", 1, 1, 0.0, complete=True, peak_memory_bytes=run[1])
        known = self.runner.progress(round_id)
        if known is None and record.state is RoundState.RUNNING and (holder := self.runner.holder(round_id)):
            return replace(NOTHING, phase=ELSEWHERE.format(holder))
        return known or NOTHING
