"""Requests for grants: an analyst asks with a sentence of reason, an operator says what became of it.

What one analyst asks changes nothing that another sees: numbers count each analyst's own requests, and each has its
own bound of those that wait. Whether there is a dataset of the name that was asked for, only operators see.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, Row, func, select

from equipoise.errors import InvalidArgument, NotFound, WrongState
from equipoise.model.own_world import GrantRequest, RequestState
from equipoise.model.rounds import GRANT, RoundState
from equipoise.model.times import from_microseconds, to_microseconds
from equipoise.records.canonical import canonical_json
from equipoise_server.identity.names import check_name
from equipoise_server.rounds.store.rounds import NO_ROUND, read_round
from equipoise_server.storage.idempotency import make_request
from equipoise_server.storage.operations import Operations
from equipoise_server.storage.paging import cut_page, page_limit, page_number
from equipoise_server.storage.tables.session import grant_requests

MAX_SENTENCE = 500  # characters
MAX_WAITING = 16  # requests of one analyst that nobody has decided
NO_REQUEST = "there is no such request"

_WAITING = grant_requests.c.state == RequestState.WAITING.value


@dataclass(frozen=True)
class GrantRequests:
    """The requests for grants of one store. Safe to use from several threads."""

    operations: Operations

    def ask(self, analyst: str, dataset: str, reason: str, epsilon: float, request_id: str) -> GrantRequest:
        """Keep a request for the operators.

        Args:
            analyst: who asks.
            dataset: the name of the dataset, which need not be there.
            reason: why, in 1 to 500 characters that can be printed.
            epsilon: how large a data epsilon is wished for; 0: the operator judges.
            request_id: makes the call safe to repeat.

        Raises:
            InvalidArgument: a field is not what it must be.
            WrongState: 16 requests of the analyst wait already.
        """
        check_name(dataset, "dataset")
        _check_sentence(reason, "reason")
        if not 0 <= epsilon < math.inf:
            raise InvalidArgument("epsilon", "must be above 0 and finite, or 0: the operator judges")
        content = canonical_json({"dataset": dataset, "reason": reason, "epsilon": epsilon})
        request = make_request(f"analyst/{analyst}", request_id, "request_grant", content)

        def work(connection: Connection, now: datetime) -> str:
            own = grant_requests.c.analyst == analyst
            count = select(func.count()).select_from(grant_requests).where(own)
            if connection.execute(count.where(_WAITING)).scalar_one() >= MAX_WAITING:
                raise WrongState(f"{MAX_WAITING} of your requests wait for an operator; no more are taken")
            number = connection.execute(count).scalar_one() + 1
            row = {
                "analyst": analyst,
                "number": number,
                "dataset": dataset,
                "reason": reason,
                "epsilon": epsilon,
                "create_time": to_microseconds(now),
                "state": RequestState.WAITING.value,
                "answer": "",
            }
            connection.execute(grant_requests.insert().values(row))
            return str(number)

        return self.operations.accept(request, work, lambda connection, kept: _read(connection, analyst, int(kept)))

    def own(self, analyst: str, page_size: int = 0, page_token: str = "") -> tuple[list[GrantRequest], str]:
        """Return a page of an analyst's requests, newest first, and the token of the next page."""
        limit, before = page_limit(page_size), page_number(page_token)
        query = select(grant_requests).where(grant_requests.c.analyst == analyst)
        if before:
            query = query.where(grant_requests.c.number < before)
        with self.operations.store.read() as connection:
            rows = connection.execute(query.order_by(grant_requests.c.number.desc()).limit(limit + 1)).all()
        return cut_page([_request(row) for row in rows], limit, lambda each: str(each.number))

    def all(self, decided: bool, page_size: int = 0, page_token: str = "") -> tuple[list[GrantRequest], str]:
        """Return a page of all analysts' requests, newest first, and the token of the next page.

        Args:
            decided: whether those that were granted or declined are among them.
            page_size: the number of requests of a page; 0 stands for the default.
            page_token: the token that came with the page before; empty for the first page.
        """
        limit, before = page_limit(page_size), page_number(page_token)
        query = select(grant_requests)
        if not decided:
            query = query.where(_WAITING)
        if before:
            query = query.where(grant_requests.c.position < before)
        with self.operations.store.read() as connection:
            rows = connection.execute(query.order_by(grant_requests.c.position.desc()).limit(limit + 1)).all()
        shown, token = cut_page(rows, limit, lambda row: str(row.position))
        return [_request(row) for row in shown], token

    def decide(
        self, analyst: str, number: int, grant_id: str, answer: str, request_id: str, caller: str = ""
    ) -> GrantRequest:
        """Say what became of a request, for good: the grant that was given, or why there is none.

        Args:
            analyst: who asked.
            number: which of the analyst's requests.
            grant_id: an open grant of the analyst's, of the dataset that was named; empty: it is declined.
            answer: why it is declined, which the analyst is shown; empty where it is granted.
            request_id: makes the call safe to repeat.
            caller: the operator's name.

        Raises:
            InvalidArgument: a field is not what it must be, or the grant is another's or of another dataset.
            NotFound: there is no such request.
            WrongState: it was decided before.
        """
        if grant_id and answer:
            raise InvalidArgument("answer", "must be empty where a grant was given")
        if not grant_id:
            _check_sentence(answer, "answer")
        content = canonical_json({"number": str(number), "grant": grant_id, "answer": answer})
        request = make_request(f"operator/{caller}", request_id, "decide_grant_request", analyst, content)

        def work(connection: Connection, now: datetime) -> str:
            found = _read(connection, analyst, number)
            if found.state is not RequestState.WAITING:
                raise WrongState(f"the request was {found.state} before")
            if grant_id:
                _check_grant(connection, found, grant_id)
            state = RequestState.GRANTED if grant_id else RequestState.DECLINED
            said = {"state": state.value, "answer": answer, "decide_time": to_microseconds(now)}
            decided = grant_requests.update().where(_is(analyst, number))
            connection.execute(decided.values(said | {"round_id": grant_id or None}))
            return ""

        return self.operations.carry_out(request, work, lambda connection, _: _read(connection, analyst, number))


def _is(analyst: str, number: int) -> Any:
    return (grant_requests.c.analyst == analyst) & (grant_requests.c.number == number)


def _read(connection: Connection, analyst: str, number: int) -> GrantRequest:
    known = 0 < number < 1 << 63
    row = connection.execute(select(grant_requests).where(_is(analyst, number))).first() if known else None
    if row is None:
        raise NotFound(NO_REQUEST)
    return _request(row)


def _request(row: Row[Any]) -> GrantRequest:
    return GrantRequest(
        analyst=row.analyst,
        number=row.number,
        dataset=row.dataset,
        reason=row.reason,
        epsilon=row.epsilon,
        create_time=from_microseconds(row.create_time),
        state=RequestState(row.state),
        answer=row.answer,
        grant_id=row.round_id or "",
        decide_time=None if row.decide_time is None else from_microseconds(row.decide_time),
    )


def _check_sentence(text: str, field: str) -> None:
    if not 1 <= len(text) <= MAX_SENTENCE or not text.isprintable():
        raise InvalidArgument(field, f"must have 1 to {MAX_SENTENCE} characters that can be printed, on one line")


def _check_grant(connection: Connection, request: GrantRequest, grant_id: str) -> None:
    try:
        given = read_round(connection, grant_id)
    except NotFound:
        raise InvalidArgument("grant_id", NO_ROUND) from None
    if given.mechanism != GRANT or given.state is not RoundState.OPEN:
        raise InvalidArgument("grant_id", "is no open grant")
    if given.terms.shares[0].analyst != request.analyst:
        raise InvalidArgument("grant_id", f"is not a grant of {request.analyst}")
    if given.terms.dataset != request.dataset:
        raise InvalidArgument("grant_id", f"is of {given.terms.dataset!r}, and {request.dataset!r} was asked for")
