"""The operator's client for analysts' requests for grants, and for rounds and grants that the calendar opens."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from equipoise.clients.analyst import fresh_request_id
from equipoise.clients.dataset_operator import DatasetClient
from equipoise.clients.following import LONG_SECONDS
from equipoise.model.accounts import Budget
from equipoise.model.calendar import Period, RoundSchedule
from equipoise.model.own_world import GrantRequest
from equipoise.model.rounds import Terms
from equipoise.v1 import operator_pb2
from equipoise.wire.accounts import budget_to_message
from equipoise.wire.calendar import schedule_from_message
from equipoise.wire.own_world import grant_request_from_message
from equipoise.wire.scalars import time_to_message
from equipoise.wire.terms import terms_to_message


class RequestClient(DatasetClient):
    """The part of an operator's client that is about requests for grants and about schedules. Thread-safe."""

    def schedule(
        self,
        terms: Terms,
        period: Period,
        first_time: datetime | None,
        yearly_budget: Budget,
        *,
        open_seconds: int = 0,
        request_id: str | None = None,
    ) -> RoundSchedule:
        """Has the server open rounds, or grants, by the calendar, close and release them, within a yearly budget.

        Args:
            terms: of each, without a closing time; of a grant `model.grants.grant_terms`.
            period: how far apart openings are.
            first_time: of the first one, in the future; None: now, and this call opens it.
            yearly_budget: the most that all opened in one calendar year (UTC) may cost the people in the table.
            open_seconds: how long after its opening each closes; 0: when the next one is opened.
            request_id: makes the call safe to repeat; None: a fresh one.

        Raises:
            InvalidArgument: a field is not what it must be, or the terms allow no plan.
            BudgetExhausted: not even one fits the yearly budget.
            EquipoiseError: as opening raises, where the first one is refused now; the schedule is stopped then.
        """
        request = operator_pb2.ScheduleRoundsRequest(
            terms=terms_to_message(terms),
            period=period.value,
            first_time=None if first_time is None else time_to_message(first_time, "first_time"),
            open_seconds=open_seconds,
            yearly_budget=budget_to_message(yearly_budget),
            request_id=request_id or fresh_request_id(),
        )
        made = self._connection.call(self._service.ScheduleRounds, request, LONG_SECONDS)
        return schedule_from_message(made.schedule)

    def schedules(self) -> Iterator[RoundSchedule]:
        """Yields what is opened by the calendar, newest first, also what was stopped."""
        for page in self._connection.pages(
            self._service.ListSchedules, lambda token: operator_pb2.ListSchedulesRequest(page_token=token)
        ):
            yield from map(schedule_from_message, page.schedules)

    def stop_schedule(self, schedule_id: str, request_id: str | None = None) -> RoundSchedule:
        """Opens no more by a schedule; what it has opened goes on. Raises `NotFound`.

        Args:
            schedule_id: the schedule.
            request_id: makes the call safe to repeat; None: a fresh one.
        """
        request = operator_pb2.StopScheduleRequest(id=schedule_id, request_id=request_id or fresh_request_id())
        return schedule_from_message(self._connection.call(self._service.StopSchedule, request).schedule)

    def grant_requests(self, *, decided: bool = False) -> Iterator[GrantRequest]:
        """Yields what analysts have asked for, newest first.

        Args:
            decided: whether requests that were granted or declined are among them.
        """
        for page in self._connection.pages(
            self._service.ListGrantRequests,
            lambda token: operator_pb2.ListGrantRequestsRequest(decided=decided, page_token=token),
        ):
            yield from map(grant_request_from_message, page.requests)

    def decide_grant_request(
        self, analyst: str, number: int, *, grant_id: str = "", answer: str = "", request_id: str | None = None
    ) -> GrantRequest:
        """Says what became of an analyst's request, for good, which the analyst is shown.

        Args:
            analyst: who asked.
            number: which of the analyst's requests.
            grant_id: the grant that was given (`give_grant`): open, the analyst's, and of the dataset that was
                named. Empty: the request is declined.
            answer: why it is declined, in a sentence of 1 to 500 characters; empty where it is granted.
            request_id: makes the call safe to repeat; None: a fresh one.

        Raises:
            NotFound: there is no such request.
            InvalidArgument: the grant is another's or of another dataset, or the sentence is not what it must be.
            WrongState: the request was decided before.
        """
        request = operator_pb2.DecideGrantRequestRequest(
            analyst=analyst,
            number=number,
            grant_id=grant_id,
            answer=answer,
            request_id=request_id or fresh_request_id(),
        )
        return grant_request_from_message(self._connection.call(self._service.DecideGrantRequest, request).request)
