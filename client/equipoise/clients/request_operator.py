"""What an operator does with analysts' requests for grants."""

from __future__ import annotations

from collections.abc import Iterator

from equipoise.clients.analyst import fresh_request_id
from equipoise.clients.dataset_operator import DatasetClient
from equipoise.model.own_world import GrantRequest
from equipoise.v1 import operator_pb2
from equipoise.wire.own_world import grant_request_from_message


class RequestClient(DatasetClient):
    """The part of an operator's client that is about requests for grants. Thread-safe."""

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
