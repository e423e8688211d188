"""What an analyst sees of its own world: its datasets, what it may ask there now, and what it has spent."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from datetime import datetime
from typing import NamedTuple

from sqlalchemy import Connection, select

from equipoise.errors import InvalidArgument, NotFound
from equipoise.model.own_world import MeasuredTable, OwnDataset
from equipoise.model.rounds import GRANT, RoundState
from equipoise.model.times import from_microseconds, to_microseconds
from equipoise.residuals.variances import cell_variances
from equipoise_server.rounds.clock_watch import ClockWatch
from equipoise_server.rounds.records import DatasetRecord
from equipoise_server.rounds.state_machine import shown_to_analysts
from equipoise_server.rounds.store.measurements import newest_noise
from equipoise_server.rounds.store.rounds import IS_GRANT, IS_SESSION, read_own_round, shared_version
from equipoise_server.storage.paging import cut_page, page_limit, page_number
from equipoise_server.storage.store import Store
from equipoise_server.storage.tables.round import rounds, shares
from equipoise_server.storage.tables.session import asked


class PaidStatement(NamedTuple):
    """A statement's exact bytes, its place among its analyst's, and what it cost in units of 10^-12 of rho."""

    sequence: int
    statement: bytes
    cost: int


@dataclass(frozen=True)
class OwnWorld:
    """The analysts' views of their own worlds in one store.

    All that is shown depends on the analyst's own shares and statements, on the datasets' public facts, and on
    measurements, which no analyst has a part in.
    """

    store: Store
    watch: ClockWatch

    def datasets(self, analyst: str, page_size: int = 0, page_token: str = "") -> tuple[list[OwnDataset], str]:
        """Return a page of an analyst's datasets in the order of their names, and the token of the next page.

        Args:
            analyst: the analyst's name.
            page_size: the number of datasets of a page; 0 stands for the default.
            page_token: the token that came with the page before; empty for the first page.
        """
        limit = page_limit(page_size)
        own = select(rounds.c.dataset).join(shares, shares.c.round_id == rounds.c.id)
        later = (shares.c.analyst == analyst) & (rounds.c.dataset > page_token)
        names = own.where(later).distinct().order_by(rounds.c.dataset).limit(limit + 1)
        with self.store.read() as connection:
            if page_token:
                _check_token(connection, page_token, analyst)
            found, token = cut_page(connection.execute(names).scalars().all(), limit, str)
            reached = self.watch.read(connection).reached
            return [_own(connection, reached, analyst, name) for name in found], token

    def spending(
        self, analyst: str, grant_id: str, page_size: int = 0, page_token: str = ""
    ) -> tuple[list[PaidStatement], str]:
        """Return a page of what each of an analyst's statements has cost of its grant, in their order.

        Args:
            analyst: the analyst's name.
            grant_id: the grant.
            page_size: the number of statements of a page; 0 stands for the default.
            page_token: the token that came with the page before; empty for the first page.

        Raises:
            NotFound: the analyst has no such grant.
            InvalidArgument: it has a share in a round or session of this id, which is no grant.
        """
        limit, after = page_limit(page_size), page_number(page_token)
        own = (asked.c.round_id == grant_id) & (asked.c.analyst == analyst) & (asked.c.sequence > after)
        columns = select(asked.c.sequence, asked.c.statement, asked.c.cost)
        with self.store.read() as connection:
            if read_own_round(connection, grant_id, analyst).mechanism != GRANT:
                raise InvalidArgument("round_id", "is no grant, in which nothing is paid")
            due = asked.c.due_time <= to_microseconds(self.watch.read(connection).reached)
            rows = connection.execute(columns.where(own, due).order_by(asked.c.sequence).limit(limit + 1)).all()
        paid = [PaidStatement(row.sequence, row.statement, row.cost) for row in rows]
        return cut_page(paid, limit, lambda each: str(each.sequence))


def _check_token(connection: Connection, page_token: str, analyst: str) -> None:
    try:
        shared_version(connection, page_token, 0, analyst)
    except NotFound:
        raise InvalidArgument("page_token", "is not a page token issued by this server") from None


def _own(connection: Connection, now: datetime, analyst: str, name: str) -> OwnDataset:
    record = shared_version(connection, name, 0, analyst)
    mine = rounds.c.id.in_(select(shares.c.round_id).where(shares.c.analyst == analyst))
    kinds = select(rounds.c.id, rounds.c.close_time, IS_SESSION.label("session"), IS_GRANT.label("grant"))
    query = kinds.where(mine, rounds.c.dataset == name, rounds.c.state == RoundState.OPEN.value)
    listed: dict[str, list[str]] = {"rounds": [], "sessions": [], "grants": []}
    for row in connection.execute(query.order_by(rounds.c.position.desc())):
        closing = None if row.close_time is None else from_microseconds(row.close_time)
        if shown_to_analysts(RoundState.OPEN, closing, None, now) is RoundState.OPEN:
            listed["grants" if row.grant else "sessions" if row.session else "rounds"].append(row.id)
    return OwnDataset(
        # The account has the name of another dataset, in which the analyst may have no share.
        replace(record, account=""),
        measured=_measured(connection, record, now),
        open_rounds=tuple(listed["rounds"]),
        open_sessions=tuple(listed["sessions"]),
        open_grants=tuple(listed["grants"]),
    )


def _measured(connection: Connection, record: DatasetRecord, now: datetime) -> tuple[MeasuredTable, ...]:
    noise = newest_noise(connection, record, now)
    if noise is None:
        return ()
    names = [each.name for each in record.schema.attributes]
    return tuple(
        MeasuredTable(
            tuple(names[axis] for axis in axes),
            math.sqrt(float(cell_variances(noise, axes).mean())),
        )
        for axes in noise.largest
    )
