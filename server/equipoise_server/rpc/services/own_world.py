"""The methods by which analysts see their own worlds and ask for grants, and by which operators decide on these."""

from __future__ import annotations

from dataclasses import dataclass

from equipoise.model.identities import Caller
from equipoise.v1 import analyst_pb2, operator_pb2
from equipoise.wire.own_world import grant_request_to_message, own_dataset_to_message
from equipoise_server.rounds.grant_requests import GrantRequests
from equipoise_server.rounds.own_world import OwnWorld
from equipoise_server.rpc.services.dataset_methods import DatasetMethods


@dataclass(frozen=True)
class OwnWorldMethods:
    """The part of the served methods of `AnalystService` that are about the caller's own world."""

    own_world: OwnWorld
    grant_requests: GrantRequests

    def list_own_datasets(
        self, caller: Caller, request: analyst_pb2.ListOwnDatasetsRequest
    ) -> analyst_pb2.ListOwnDatasetsResponse:
        """Lists the datasets of the caller's rounds, sessions and grants."""
        found, token = self.own_world.datasets(caller.name, request.page_size, request.page_token)
        return analyst_pb2.ListOwnDatasetsResponse(
            datasets=[own_dataset_to_message(each) for each in found], next_page_token=token
        )

    def list_spending(
        self, caller: Caller, request: analyst_pb2.ListSpendingRequest
    ) -> analyst_pb2.ListSpendingResponse:
        """Lists what each of the caller's statements has cost of its grant."""
        paid, token = self.own_world.spending(caller.name, request.round_id, request.page_size, request.page_token)
        spent = [analyst_pb2.SpentStatement(**each._asdict()) for each in paid]
        return analyst_pb2.ListSpendingResponse(statements=spent, next_page_token=token)

    def request_grant(
        self, caller: Caller, request: analyst_pb2.RequestGrantRequest
    ) -> analyst_pb2.RequestGrantResponse:
        """Keeps the caller's request for a grant."""
        kept = self.grant_requests.ask(
            caller.name, request.dataset, request.reason, request.epsilon, request.request_id
        )
        return analyst_pb2.RequestGrantResponse(request=grant_request_to_message(kept))

    def list_own_grant_requests(
        self, caller: Caller, request: analyst_pb2.ListOwnGrantRequestsRequest
    ) -> analyst_pb2.ListOwnGrantRequestsResponse:
        """Lists the caller's requests for grants, newest first."""
        found, token = self.grant_requests.own(caller.name, request.page_size, request.page_token)
        return analyst_pb2.ListOwnGrantRequestsResponse(
            requests=[grant_request_to_message(each) for each in found], next_page_token=token
        )


@dataclass(frozen=True)
class GrantRequestMethods(DatasetMethods):
    """The part of the served methods of `OperatorService` that decide on requests for grants."""

    def list_grant_requests(
        self, _: Caller, request: operator_pb2.ListGrantRequestsRequest
    ) -> operator_pb2.ListGrantRequestsResponse:
        """Lists what analysts have asked for, newest first."""
        found, token = self.rounds.grant_requests.all(request.decided, request.page_size, request.page_token)
        return operator_pb2.ListGrantRequestsResponse(
            requests=[grant_request_to_message(each) for each in found], next_page_token=token
        )

    def decide_grant_request(
        self, caller: Caller, request: operator_pb2.DecideGrantRequestRequest
    ) -> operator_pb2.DecideGrantRequestResponse:
        """Says what became of an analyst's request."""
        decided = self.rounds.grant_requests.decide(
            request.analyst, request.number, request.grant_id, request.answer, request.request_id, caller.name
        )
        return operator_pb2.DecideGrantRequestResponse(request=grant_request_to_message(decided))
