"""What an operator does: register data, admit analysts, run rounds, look at budgets."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime

from equipoise.clients.analyst import fresh_request_id
from equipoise.clients.following import LONG_SECONDS, OnProgress, followed
from equipoise.clients.request_operator import RequestClient
from equipoise.errors import InvalidArgument, NotFound, WrongState
from equipoise.model.accounts import Budget, Danger
from equipoise.model.grants import grant_terms
from equipoise.model.plan_choices import PlanChoice
from equipoise.model.rounds import GRANT, RoundDetail, RoundState, Terms
from equipoise.v1 import operator_pb2
from equipoise.wire.rounds import plan_choice_from_message, round_detail_from_message
from equipoise.wire.terms import terms_to_message


class Operator(RequestClient):
    """An operator's client of a server. Thread-safe; every method may raise `equipoise.errors.EquipoiseError`.

    What changes something takes an optional `request_id`; the same one gets the first answer again.
    """

    def plan(self, terms: Terms, on_progress: OnProgress | None = None) -> PlanChoice:
        """Return what a round or session with these terms would do and cost, and what that was chosen from.

        Nothing is opened, nothing is spent. `on_progress` is called, from another thread, with how far the server
        is. Raises `InvalidArgument` where the terms allow no plan, and
        `BudgetExhausted` where none fits their budgets.
        """
        request = operator_pb2.PlanRoundRequest(terms=terms_to_message(terms), request_id=fresh_request_id())
        with followed(self._service, request.request_id, on_progress):
            return plan_choice_from_message(self._connection.call(self._service.PlanRound, request, LONG_SECONDS))

    def open(
        self, terms: Terms, request_id: str | None = None, on_progress: OnProgress | None = None
    ) -> RoundDetail:
        """Opens a round: analysts with a share can submit.

        Args:
            terms: of the round.
            request_id: makes the call safe to repeat; None: a fresh one.
            on_progress: called, from another thread, with how far the server is.

        Raises:
            InvalidArgument: `terms.session` is set.
            BudgetExhausted: an account, which is named, has too little left.
        """
        if terms.session is not None:
            raise InvalidArgument("terms.session", "is of a session, which open_session opens")
        request = operator_pb2.OpenRoundRequest(
            terms=terms_to_message(terms), request_id=request_id or fresh_request_id()
        )
        with followed(self._service, request.request_id, on_progress):
            answer = self._connection.call(self._service.OpenRound, request, LONG_SECONDS)
        return round_detail_from_message(answer.detail)

    def open_session(
        self, terms: Terms, request_id: str | None = None, on_progress: OnProgress | None = None
    ) -> RoundDetail:
        """Opens a session: its analysts can ask from now on. Both budgets are charged at once, for good.

        Args:
            terms: of the session.
            request_id: makes the call safe to repeat; None: a fresh one.
            on_progress: called, from another thread, with how far the server is.

        Raises:
            InvalidArgument: `terms.session` is not set.
            BudgetExhausted: an account, which is named, has too little left.
        """
        if terms.session is None:
            raise InvalidArgument("terms.session", "is missing; what has none is a round")
        request = operator_pb2.OpenSessionRequest(
            terms=terms_to_message(terms),
            request_id=request_id or fresh_request_id(),
        )
        with followed(self._service, request.request_id, on_progress):
            answer = self._connection.call(self._service.OpenSession, request, LONG_SECONDS)
        return round_detail_from_message(answer.detail)

    def give_grant(
        self,
        dataset: str,
        analyst: str,
        budget: Budget,
        *,
        until: datetime | None = None,
        beta: float = 0.05,
        accepted: tuple[Danger, ...] = (),
        measurement: str | None = None,
        request_id: str | None = None,
    ) -> RoundDetail:
        """Gives an analyst a part of a dataset's budget, which is reserved. The analyst can ask from now on.

        Args:
            dataset: the dataset's name.
            analyst: the analyst's name.
            budget: what all statements may cost the people in the table together.
            until: from then on the server takes no more statements, and releases the grant by itself; None: an
                operator ends it.
            beta: the probability that any truth lies outside its interval.
            accepted: the dangers of the budget that the operator knows and wants.
            measurement: the round of the standing measurement that all answers are combined with; None: of the
                newest one, if there is one.
            request_id: makes the call safe to repeat; None: a fresh one.

        Raises:
            NotFound: there is no such dataset.
            InvalidArgument: the measurement is none of this version of the dataset.
            BudgetExhausted: the data account has too little left.
            WrongState: as many grants are open as the server has room for.
        """
        terms = grant_terms(dataset, analyst, budget, until, beta, accepted, measurement)
        return self.open_session(terms, request_id)

    def end_grant(self, grant_id: str) -> RoundDetail:
        """Ends a grant and releases it: what it has not spent is counted no more. Safe to repeat.

        Raises:
            NotFound: there is no such grant.
            WrongState: it was aborted, or its computation ended without answers.
        """
        shown = self.round(grant_id)
        if shown.round.mechanism != GRANT:
            raise NotFound("there is no such grant")
        if shown.round.state is RoundState.OPEN:
            shown = self.close_session(grant_id)
        if shown.round.state in (RoundState.SEALED, RoundState.RUNNING) and not shown.progress.complete:
            shown = self.run_to_completion(grant_id)
        return shown if shown.round.state is RoundState.RELEASED else self.release(grant_id)

    def close_session(self, session_id: str, request_id: str | None = None) -> RoundDetail:
        """Closes a session: no more statements. `run` and `release` then publish its results as those of a round.

        Raises `NotFound`, and `WrongState` where it was closed before.

        Args:
            session_id: the session.
            request_id: makes the call safe to repeat; None: a fresh one.
        """
        request = operator_pb2.CloseSessionRequest(
            session_id=session_id, request_id=request_id or fresh_request_id()
        )
        return round_detail_from_message(self._connection.call(self._service.CloseSession, request).detail)

    def rounds(self, after: str = "", page: int = 0) -> Iterator[RoundDetail]:
        """Yields all rounds and sessions, newest first.

        Args:
            after: only those that were opened before this round; empty: all.
            page: how many are asked for at a time; 0: 100.
        """
        for found in self._connection.pages(
            self._service.ListRounds,
            lambda token: operator_pb2.ListRoundsRequest(page_size=page, page_token=token),
            after,
        ):
            yield from map(round_detail_from_message, found.details)

    def round(self, round_id: str) -> RoundDetail:
        """Returns one round or session. Raises `NotFound`."""
        request = operator_pb2.GetRoundRequest(round_id=round_id)
        return round_detail_from_message(self._connection.call(self._service.GetRound, request).detail)

    def watch(self, round_id: str) -> Iterator[RoundDetail]:
        """Yields the round whenever its state or progress changes, until it has ended."""
        request = operator_pb2.WatchRoundRequest(round_id=round_id)
        for response in self._connection.stream(self._service.WatchRound, lambda: request):
            yield round_detail_from_message(response.detail)

    def seal(self, round_id: str, request_id: str | None = None) -> RoundDetail:
        """Fixes the workloads and reserves both budgets. Raises `BudgetExhausted` naming the account.

        Args:
            round_id: the round.
            request_id: makes the call safe to repeat; None: a fresh one.
        """
        request = operator_pb2.SealRoundRequest(round_id=round_id, request_id=request_id or fresh_request_id())
        return round_detail_from_message(self._connection.call(self._service.SealRound, request).detail)

    def run(self, round_id: str, request_id: str | None = None) -> RoundDetail:
        """Starts the computation and returns at once. Follow it by `watch`, or use `run_to_completion`.

        Args:
            round_id: the round or session.
            request_id: makes the call safe to repeat; None: a fresh one.
        """
        request = operator_pb2.RunRoundRequest(round_id=round_id, request_id=request_id or fresh_request_id())
        return round_detail_from_message(self._connection.call(self._service.RunRound, request).detail)

    def run_to_completion(
        self,
        round_id: str,
        on_change: Callable[[RoundDetail], None] | None = None,
        request_id: str | None = None,
    ) -> RoundDetail:
        """Starts the computation and waits until the answers are ready to be released.

        Args:
            round_id: the round.
            on_change: called with the round whenever its state or progress changes.
            request_id: makes the start safe to repeat; None: a fresh one.

        Raises:
            WrongState: the round was aborted before that, or its computation ended without answers.
        """
        self.run(round_id, request_id)
        for detail in self.watch(round_id):
            if on_change is not None:
                on_change(detail)
            if detail.progress.complete:
                return detail
            if detail.round.state is not RoundState.RUNNING:
                break
            if detail.progress.phase.startswith("failed"):
                raise WrongState(f"the computation {detail.progress.phase}; it can be started again")
        raise WrongState("the round is not running any more")

    def release(self, round_id: str, request_id: str | None = None) -> RoundDetail:
        """Stores answers and charges in one transaction; results open at the next point of the time grid.

        Args:
            round_id: the round or session.
            request_id: makes the call safe to repeat; None: a fresh one.
        """
        request = operator_pb2.ReleaseRoundRequest(round_id=round_id, request_id=request_id or fresh_request_id())
        return round_detail_from_message(
            self._connection.call(self._service.ReleaseRound, request, LONG_SECONDS).detail
        )

    def abort(self, round_id: str, reason: str, request_id: str | None = None) -> RoundDetail:
        """Ends a round without answers. Every analyst is shown the reason: give public things only.

        Args:
            round_id: the round or session.
            reason: one that may be public.
            request_id: makes the call safe to repeat; None: a fresh one.

        Raises:
            NotFound: there is no such round.
            WrongState: the round has ended.
        """
        request = operator_pb2.AbortRoundRequest(
            round_id=round_id, reason=reason, request_id=request_id or fresh_request_id()
        )
        return round_detail_from_message(self._connection.call(self._service.AbortRound, request).detail)
