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
        """Admits an analyst who sent a signing request, and returns the bundle to send back.

        Args:
            name: the analyst's name, which stays taken for ever.
            signing_request: what `equipoise enroll` wrote.
            target: host and port at which the analyst reaches the server; None: those of this client.
            request_id: makes the call safe to repeat; None: the same signing request gets the first answer again.

        Raises:
            AlreadyExists: the name is taken.
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
        """Issues another certificate to an analyst, also after a revocation.

        Earlier certificates stay valid until they expire or are revoked.

        Args:
            name: the analyst's name.
            signing_request: what `equipoise enroll --renew` wrote.
            target: host and port at which the analyst reaches the server; None: those of this client.
            request_id: makes the call safe to repeat; None: the same signing request gets the first answer again.

        Raises:
            NotFound: there is no such analyst.
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
        """Makes a key, admits an analyst with it, and writes the profile to a new directory.

        For trials, and where one person is operator and analyst; otherwise the analyst's key would have to be
        handed over. The key is never sent to the server. If the response was lost, the directory stays incomplete,
        and the same call sends the same request again.

        Args:
            name: the analyst's name, which stays taken for ever.
            directory: where the profile is written.
            request_id: makes the call safe to repeat; None: the same key gets the first answer again.

        Returns:
            The profile's directory.

        Raises:
            AlreadyExists: the name is taken.
            InvalidArgument: the directory is a profile already.
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

    def allow_login(self, name: str, subject: str, request_id: str | None = None) -> None:
        """Lets an analyst log in with an account of the identity provider that the server is configured for.

        An analyst of a new name is admitted. The account takes the place of an earlier one; a revocation ends it.

        Args:
            name: the analyst's name.
            subject: the account's identifier (`sub`) at the provider.
            request_id: makes the call safe to repeat; None: a fresh one.

        Raises:
            AlreadyExists: the account logs in somebody else.
            NotFound: the analyst was deleted, or the name is no analyst's.
            WrongState: the server has no identity provider.
        """
        request = operator_pb2.AllowLoginRequest(
            name=name, subject=subject, request_id=request_id or fresh_request_id()
        )
        self._connection.call(self._service.AllowLogin, request)

    def revoke_analyst(self, name: str, request_id: str | None = None) -> None:
        """Revokes every certificate of an analyst. Its open calls end within a minute. Raises `NotFound`.

        Args:
            name: the analyst's name.
            request_id: makes the call safe to repeat; None: a fresh one.
        """
        request = operator_pb2.RevokeAnalystRequest(name=name, request_id=request_id or fresh_request_id())
        self._connection.call(self._service.RevokeAnalyst, request)

    def delete_analyst(self, name: str, request_id: str | None = None) -> None:
        """Deletes an analyst with its workloads and results. Its name and its charges stay for ever.

        Args:
            name: the analyst's name.
            request_id: makes the call safe to repeat; None: a fresh one.

        Raises:
            NotFound: there is no such analyst.
            WrongState: it has a share in a round whose results are not released.
        """
        request = operator_pb2.DeleteAnalystRequest(name=name, request_id=request_id or fresh_request_id())
        self._connection.call(self._service.DeleteAnalyst, request)

    def analysts(self) -> Iterator[Identity]:
        """Yields all analysts by name, except those who were deleted."""
        for page in self._connection.pages(
            self._service.ListAnalysts, lambda token: operator_pb2.ListAnalystsRequest(page_token=token)
        ):
            yield from map(analyst_from_message, page.analysts)
