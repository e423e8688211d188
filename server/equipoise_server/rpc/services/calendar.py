"""The methods by which operators have rounds and grants opened by the calendar."""

from __future__ import annotations

from dataclasses import dataclass

from equipoise.model.identities import Caller
from equipoise.v1 import operator_pb2
from equipoise.wire.accounts import budget_from_message
from equipoise.wire.calendar import period_from_text, schedule_to_message
from equipoise.wire.scalars import time_from_message
from equipoise.wire.terms import terms_from_message
from equipoise_server.rpc.services.own_world import GrantRequestMethods
from equipoise_server.sessions.calendar import Calendar
from equipoise_server.sessions.service import Sessions


@dataclass(frozen=True)
class CalendarMethods(GrantRequestMethods):
    """The part of the served methods of `OperatorService` that are about schedules of rounds."""

    sessions: Sessions

    @property
    def calendar(self) -> Calendar:
        """The schedules, which only upkeep keeps."""
        return Calendar(self.rounds.operations, self.rounds.opening, self.sessions)

    def schedule_rounds(
        self, caller: Caller, request: operator_pb2.ScheduleRoundsRequest
    ) -> operator_pb2.ScheduleRoundsResponse:
        """Has rounds opened by the calendar."""
        made = self.calendar.add(
            terms_from_message(request.terms),
            period_from_text(request.period),
            time_from_message(request.first_time, "first_time") if request.HasField("first_time") else None,
            request.open_seconds,
            budget_from_message(request.yearly_budget, "yearly_budget"),
            request.request_id,
            caller.name,
        )
        return operator_pb2.ScheduleRoundsResponse(schedule=schedule_to_message(made))

    def list_schedules(
        self, _: Caller, request: operator_pb2.ListSchedulesRequest
    ) -> operator_pb2.ListSchedulesResponse:
        """Lists what is opened by the calendar, newest first."""
        found, token = self.calendar.page(request.page_size, request.page_token)
        return operator_pb2.ListSchedulesResponse(
            schedules=[schedule_to_message(each) for each in found], next_page_token=token
        )

    def stop_schedule(
        self, caller: Caller, request: operator_pb2.StopScheduleRequest
    ) -> operator_pb2.StopScheduleResponse:
        """Opens no more by a schedule."""
        stopped = self.calendar.stop(request.id, request.request_id, caller.name)
        return operator_pb2.StopScheduleResponse(schedule=schedule_to_message(stopped))
