"""How an operator lets analysts in: admits, renews, revokes and deletes them."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

from equipoise.clients.analyst import fresh_request_id
from equipoise.clients.connection import Connection, ServerClient
from equipoise.errors import AlreadyExists, InvalidArgument
from equipoise.model.identities import Identity
from equipoise.profile.enrolment import Bundle, begin, default_request_id, install, is_profile
from equipoise.v1 import operator_pb2, operator_pb2_grpc
from equipoise.wire.identities import analyst_from_message


class AdmissionClient(ServerClient):
    """The part of an operator's client that is about analysts. Thread-safe."""

    def __init__(self, connection: Connection) -> None:
        super().__init__(connection)
        self._service = operator_pb2_grpc.OperatorServiceStub(connection.channel)

    def admit_analyst(
        self, name: str, signing_request: bytes, target: str | None = None, request_id: str | None = None
    ) -> Bundle:
        """Admits an analyst who sent a request, made by `equipoise enroll`; the bundle is sent back.

        `target`: where the analyst reaches the server, if not where this client does. Without a `request_id`, the
        same request again gets the first answer. Raises `AlreadyExists` where the name is taken.
        """
        request = operator_pb2.AddAnalystRequest(
            name=name,
            signing_request=signing_request,
            request_id=request_id or default_request_id("add", signing_request),
        )
        response = self._connection.call(self._service.AddAnalyst, request)
        return self._bundle(name, target, response)

    def renew_analyst(
        self, name: str, signing_request: bytes, target: str | None = None, request_id: str | None = None
    ) -> Bundle:
        """Gives an analyst another certificate, also after a revocation; as `admit_analyst`. Raises `NotFound`.

        The earlier ones stay good until they expire or are revoked.
        """
        request = operator_pb2.RenewAnalystRequest(
            name=name,
            signing_request=signing_request,
            request_id=request_id or default_request_id("renew", signing_request),
        )
        response = self._connection.call(self._service.RenewAnalyst, request)
        return self._bundle(name, target, response)

    def _bundle(
        self,
        name: str,
        target: str | None,
        response: operator_pb2.AddAnalystResponse | operator_pb2.RenewAnalystResponse,
    ) -> Bundle:
        reached = target or self._connection.target
        return Bundle(name, reached, response.certificate, response.authority, response.log_keys)

    def add_analyst(self, name: str, directory: str | Path, request_id: str | None = None) -> Path:
        """Plays both parts: makes a key and a request, admits the analyst, writes its profile to a new directory.

        For trials, and where one person is both; otherwise the analyst's key would have to be handed over. It is
        never sent to the server. Where the answer was lost, the directory stays incomplete, and the same call sends
        the same request again. Raises `AlreadyExists` where the name is taken.
        """
        path = Path(directory)
        if is_profile(path):
            raise InvalidArgument(str(path), "exists already")
        fresh = not path.exists()
        signing_request = begin(path)
        try:
            bundle = self.admit_analyst(name, signing_request, request_id=request_id)
        except (AlreadyExists, InvalidArgument):
            # The one case in which it is certain that nothing was signed for this key.
            if fresh:
                shutil.rmtree(path, ignore_errors=True)
            raise
        install(path, bundle)
        return path

    def revoke_analyst(self, name: str, request_id: str | None = None) -> None:
        """Revokes every certificate of an analyst; what it has open ends within a minute. Raises `NotFound`."""
        request = operator_pb2.RevokeAnalystRequest(name=name, request_id=request_id or fresh_request_id())
        self._connection.call(self._service.RevokeAnalyst, request)

    def delete_analyst(self, name: str, request_id: str | None = None) -> None:
        """Removes an analyst, its workloads and its results; its name and charges stay for ever.

        Raises `WrongState` while it has a share in a round whose results are not out, `NotFound`.
        """
        request = operator_pb2.DeleteAnalystRequest(name=name, request_id=request_id or fresh_request_id())
        self._connection.call(self._service.DeleteAnalyst, request)

    def analysts(self) -> Iterator[Identity]:
        """All analysts by name, but those who were deleted."""
        for page in self._connection.pages(
            self._service.ListAnalysts, lambda token: operator_pb2.ListAnalystsRequest(page_token=token)
        ):
            yield from map(analyst_from_message, page.analysts)
