"""What an analyst does in sessions and with grants: asks one statement after the other."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, datetime

from equipoise.clients.asking import Asking, costs_of, free
from equipoise.clients.connection import Connection
from equipoise.clients.kept_stream import KeptStream
from equipoise.clients.own_world import OwnWorldClient
from equipoise.clients.session_stream import SessionStream
from equipoise.clients.statement_answer import StatementAnswer
from equipoise.errors import InvalidArgument, NotFound
from equipoise.model.datasets import Dataset
from equipoise.model.rounds import Round, RoundState
from equipoise.profile.receipt_store import ReceiptHolder, ReceiptStore
from equipoise.queries.grant_account import Wanted
from equipoise.queries.grant_costs import GrantCosts, account_after, grant_costs
from equipoise.queries.grant_price import GrantPrice, price_of
from equipoise.queries.schema import Schema
from equipoise.queries.statements import Statement
from equipoise.questions.questions import Questions
from equipoise.residuals.told_counts import StandingNoise
from equipoise.v1 import analyst_pb2
from equipoise.wire.outline import asked_from_bytes
from equipoise.wire.rounds import round_from_message
from equipoise.wire.session_workload import wanted_of
from equipoise.wire.statements import sent_from_bytes, statement_to_bytes

ID = r"[0-9a-f]{32}"  # of a round or session


class SessionsClient(OwnWorldClient):
    """The part of an analyst's client that asks in sessions. Thread-safe.

    Args:
        connection: the connection, which the client closes.
        keepsakes: where signed receipts are kept; None: nowhere, and the caller keeps what it is given.
    """

    def __init__(self, connection: Connection, keepsakes: ReceiptStore | None = None) -> None:
        super().__init__(connection)
        self._keepsakes = keepsakes
        self._kept = KeptStream()
        self._asked: dict[str, tuple[Round, Dataset]] = {}  # by the ids of sessions in which the client has asked

    def close(self) -> None:
        """Ends the connection and every call on it, and keeps the newest receipt."""
        try:
            self._kept.keep(None)
        finally:
            super().close()

    def sessions(self, after: str = "", page: int = 0) -> Iterator[Round]:
        """Yields the online sessions in which the caller has a share, newest first.

        Args:
            after: only those that were opened before this session; empty: all.
            page: how many are asked for at a time; 0: 100.
        """
        for found in self._connection.pages(
            self._service.ListSessions,
            lambda token: analyst_pb2.ListSessionsRequest(page_size=page, page_token=token),
            after,
        ):
            yield from map(round_from_message, found.sessions)

    def grants(self) -> list[Round]:
        """Returns the caller's grants that are open, newest first."""
        return [each for each in self.sessions() if each.grant is not None and each.state is RoundState.OPEN]

    def session(self, name: str) -> Round:
        """Returns a round or session by its id, or an open grant by the name of its dataset.

        Raises:
            NotFound: the caller has no such round or session, and no open grant of such a dataset.
            InvalidArgument: the caller has several open grants of it, whose ids say which is meant.
        """
        if re.fullmatch(ID, name):
            return self.round(name)
        found = [each for each in self.grants() if each.terms.dataset == name]
        if len(found) > 1:
            # A grant that has just ended stays open for a moment, beside the one that follows it.
            now = datetime.now(UTC)
            found = [
                each for each in found if each.terms.close_time is None or each.terms.close_time > now
            ] or found
        if not found:
            raise NotFound(f"there is no round {name!a}, and you have no open grant of a dataset of that name")
        if len(found) > 1:
            ids = ", ".join(each.id for each in found)
            raise InvalidArgument("session_id", f"must be the id of one of your grants of {name!a}: {ids}")
        return self.round(found[0].id)

    def session_statements(self, session_id: str) -> tuple[Statement, ...]:
        """Returns the caller's statements of a session that has ended, in order, as the custodian has stored them.

        They are not verified: `equipoise.verification.checks` compares them with the signed receipts.

        Raises:
            WrongState: the session has not ended.
        """
        _, workload = self.evidence(session_id)
        encoded = () if workload is None else asked_from_bytes(workload)[0]
        return tuple(sent_from_bytes(each).statement for each in encoded)

    def ask(
        self,
        session_id: str,
        statements: Iterable[Statement] | Questions,
        *,
        after: int | None = 0,
        window: int = 1,
        accept_unprotected: bool = False,
        rho: float | None = None,
        error: float | None = None,
        epsilon: float | None = None,
        relative: float | None = None,
        weights: Sequence[float] | None = None,
        prices: Iterable[GrantPrice | None] = (),
    ) -> Iterator[StatementAnswer]:
        """Asks statements in a session or of a grant and yields the answers in the same order, as they come.

        Statements count from the first of the session on. One that was asked before gets its answer again, so the
        same program, started again, continues where it ended. Statements of a grant are new ones each time, and the
        same question, for no more than was paid for it, has the same answer at no cost. A stream that breaks is
        resumed; the one to the grant that was asked last stays open for more, until the client is closed. Every
        receipt is checked against statements and answers, and the newest is kept in the profile. A statement that
        is refused was neither answered nor charged, and all answers before it have been yielded.

        Args:
            session_id: the session; or a grant, also by the name of its dataset where the caller has no other one.
            statements: taken one at a time, as there is room in the window; or questions, whose statements are
                asked. Each of these commits to what was understood of the questions, and so do the receipts. The
                server does not see the questions, and the same statements cost and are answered alike. What was
                understood is kept in the profile.
            after: how many of the caller's statements come before the first one given; None: all that have an
                answer.
            window: how many statements may be on their way at once. With 1, the next one is taken when all others
                are answered, so it may depend on their answers.
            accept_unprotected: says that the caller knows that the session does not protect its analysts from one
                another; only sessions that do not need it.
            rho: what each statement may cost of a grant, in zCDP.
            error: or the standard error of each of its counts that is wanted, in records.
            epsilon: or the pure epsilon of an answer that costs as much.
            relative: or the wanted error of a typical cell, as a part of it (`GrantPrice`). All None in sessions
                that are no grants.
            weights: one for each statement; then `rho` is what all may cost together, and they share it by these.
            prices: or one for each statement, None among them where it is what the others say. Each is taken after
                its statement, so that it may depend on the same answers.

        Raises:
            InvalidArgument: a statement is malformed; `field` names it. Or what it may cost is missing, or is given
                where nothing is paid.
            NotFound: the caller has no such session, or no open grant of such a dataset.
            BudgetExhausted: the statement is beyond the caller's share, or costs more than is left of the grant.
            WrongState: the session takes no more statements, is attached to from elsewhere, or does not protect its
                analysts from one another and `accept_unprotected` is false.
            AlreadyExists: another statement was asked before under the same number.
            OutOfRange: `after` is beyond what was answered.
            VerificationFailed: a receipt is not for what was asked and answered.
        """
        price = price_of(rho=rho, error=error, epsilon=epsilon, relative=relative)
        holder = self._holder()
        shown, dataset = self._opened(session_id)
        costs: Callable[[Statement], int] = free
        if shown.grant is not None:
            costs, after = costs_of(dataset, price, weights, prices), None
        elif prices or weights is not None or price is not None:
            raise InvalidArgument("rho", "must not be given, and no error: it is no grant, and nothing is paid")
        questions = statements if isinstance(statements, Questions) else None
        given = statements.statements if isinstance(statements, Questions) else statements
        asking, keep = Asking(given, window, costs, questions), shown.grant is not None
        stream = self._kept.take(shown.id, holder) or SessionStream(
            self._connection,
            self._service,
            shown,
            dataset.schema,
            after,
            accept_unprotected,
            self._keepsakes,
            holder,
        )
        yield from stream.answers(asking, keep)
        if keep:
            self._kept.keep(stream)

    def grant_costs(
        self,
        grant_id: str,
        statements: Sequence[Statement],
        *,
        rho: float | None = None,
        error: float | None = None,
        epsilon: float | None = None,
        relative: float | None = None,
        weights: Sequence[float] | None = None,
        prices: Iterable[GrantPrice | None] = (),
    ) -> GrantCosts:
        """Returns what statements would cost of a grant as it stands, and the cheapest way. Nothing is asked.

        What was paid before is taken from the server's list of the caller's own statements.

        Args:
            grant_id: the grant, also by the name of its dataset where the caller has no other one.
            statements: in the order in which they would be asked.
            rho: and the others: as for `ask`.
            error: as for `ask`.
            epsilon: as for `ask`.
            relative: as for `ask`.
            weights: as for `ask`.
            prices: as for `ask`.

        Raises:
            InvalidArgument: it is a session that is no grant, or a statement is malformed or a statistic.
            VerificationFailed: the server shows what is no measurement of the dataset.
            NotFound: the caller has no such grant.
        """
        shown = self.session(grant_id)
        if shown.grant is None:
            raise InvalidArgument("session_id", "is no grant, in which nothing is paid")
        dataset = self.dataset(shown.terms.dataset, shown.dataset_version)
        price = price_of(rho=rho, error=error, epsilon=epsilon, relative=relative)
        costs = costs_of(dataset, price, weights, prices)
        schema, records, beta = dataset.schema, dataset.persons.records, shown.terms.beta
        standing = StandingNoise.read(shown.grant.standing, schema.sizes, records)
        wanted = [_wanted(each, costs(each), schema, standing) for each in statements]
        spent = [_wanted(each.statement, each.rho, schema, standing) for each in self.spending(shown.id)]
        return grant_costs(account_after(spent), shown.grant.left, wanted, records, beta)

    def _opened(self, name: str) -> tuple[Round, Dataset]:
        """Return a session and its version of a dataset, as they were shown when the client first asked in it.

        Their parts that asking needs never change, so a client looks them up once and not for each question.
        """
        known = self._asked.get(name)
        if known is None:
            shown = self.session(name)
            known = self._asked[shown.id] = shown, self.dataset(shown.terms.dataset, shown.dataset_version)
        return known

    def _holder(self) -> ReceiptHolder | None:
        """Whom receipts are for, read before anything is sent; None where the caller keeps receipts itself."""
        return None if self._keepsakes is None else self._keepsakes.holder()


def _wanted(statement: Statement, rho: int, schema: Schema, standing: StandingNoise | None) -> Wanted:
    return wanted_of(statement_to_bytes(statement, rho), schema, standing=standing)
