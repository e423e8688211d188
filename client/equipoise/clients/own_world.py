"""How an analyst looks at its own world: what it may ask about, what it has spent, and what it has asked for."""

from __future__ import annotations

import secrets
from collections.abc import Iterator

from equipoise.clients.results import ResultsClient
from equipoise.model.own_world import GrantRequest, OwnDataset, SpentStatement
from equipoise.v1 import analyst_pb2
from equipoise.wire.own_world import (
    grant_request_from_message,
    own_dataset_from_message,
    spent_statement_from_message,
)


class OwnWorldClient(ResultsClient):
    """The part of an analyst's client that looks at its own world, and asks for grants. Thread-safe."""

    def datasets(self) -> Iterator[OwnDataset]:
        """Yields the datasets of the caller's rounds, sessions and grants, in the order of their names."""
        for page in self._connection.pages(
            self._service.ListOwnDatasets, lambda token: analyst_pb2.ListOwnDatasetsRequest(page_token=token)
        ):
            yield from map(own_dataset_from_message, page.datasets)

    def spending(self, grant_id: str) -> Iterator[SpentStatement]:
        """Yields what each of the caller's statements has cost of a grant, in order.

        Raises:
            NotFound: the caller has no such grant.
            InvalidArgument: it is a round or a session that is no grant.
        """
        for page in self._connection.pages(
            self._service.ListSpending,
            lambda token: analyst_pb2.ListSpendingRequest(round_id=grant_id, page_token=token),
        ):
            yield from map(spent_statement_from_message, page.statements)

    def request_grant(
        self, dataset: str, reason: str, *, epsilon: float = 0.0, request_id: str | None = None
    ) -> GrantRequest:
        """Asks the operators for a grant. No other analyst learns of it.

        Args:
            dataset: the dataset's name. Whether there is one, the answer does not say.
            reason: why, in a sentence of 1 to 500 characters, for the operators.
            epsilon: how large a data epsilon is wished for; 0: the operator judges.
            request_id: makes the call safe to repeat; None: a fresh one.

        Raises:
            InvalidArgument: a field is not what it must be.
            WrongState: 16 of the caller's requests wait already.
        """
        request = analyst_pb2.RequestGrantRequest(
            dataset=dataset, reason=reason, epsilon=epsilon, request_id=request_id or secrets.token_hex(16)
        )
        return grant_request_from_message(self._connection.call(self._service.RequestGrant, request).request)

    def grant_requests(self) -> Iterator[GrantRequest]:
        """Yields the caller's requests for grants, newest first, with what became of them."""
        for page in self._connection.pages(
            self._service.ListOwnGrantRequests,
            lambda token: analyst_pb2.ListOwnGrantRequestsRequest(page_token=token),
        ):
            yield from map(grant_request_from_message, page.requests)
