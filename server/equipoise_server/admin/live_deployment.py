"""A deployment's keys as they are now: read again when their files have changed, so that no server is restarted."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import cast

import grpc
import structlog

from equipoise.errors import EquipoiseError
from equipoise_server.admin.state_directory import Deployment, open_deployment
from equipoise_server.clock import Clock, Elapsed, seconds_since_boot
from equipoise_server.identity.authority import certificate_to_pem

FILES = ("ca/authority.pem", "ca/authority.key", "keys/server.pem", "keys/server.key")
RETRY_SECONDS = 1.0  # between attempts at files that cannot be read
_log = structlog.get_logger("equipoise.app")


class LiveDeployment:
    """The authority and the server's certificate of a running server. Safe to use from several threads."""

    def __init__(self, deployment: Deployment, clock: Clock, elapsed: Elapsed = seconds_since_boot) -> None:
        self._deployment = deployment
        self._clock = clock
        self._elapsed = elapsed
        self._stamp = _stamp(deployment.state)  # of the files as they were last read
        self._not_before = 0.0  # when they are read again after they could not be
        self._lock = threading.Lock()

    def now(self) -> Deployment:
        """Return the deployment with its present keys.

        Where the files cannot be read it has the keys before, and the files are read again in a second.
        """
        with self._lock:
            stamp = _stamp(self._deployment.state)
            if stamp != self._stamp and self._elapsed() >= self._not_before:
                try:
                    found = open_deployment(self._deployment.state, self._clock())
                except EquipoiseError as error:
                    _log.error("keys_not_read", problem=error.message)
                    self._not_before = self._elapsed() + RETRY_SECONDS
                else:
                    self._deployment = replace(
                        self._deployment,
                        authority=found.authority,
                        server_certificate=found.server_certificate,
                        server_key_pem=found.server_key_pem,
                    )
                    self._stamp = stamp
            return self._deployment

    def credentials(self, *, of_clients: bool = True) -> grpc.ServerCredentials:
        """Return TLS which takes up new files at the next handshake.

        `of_clients`: with certificates on both sides; else of the server alone, for those who have none yet.
        """
        shown = self.now()

        def changed() -> grpc.ServerCertificateConfiguration | None:
            nonlocal shown
            found = self.now()
            if found is shown:
                return None
            shown = found
            return _configuration(found)

        # None says that nothing has changed, which the stubs of gRPC do not know.
        fetcher = cast("Callable[[], grpc.ServerCertificateConfiguration]", changed)
        return grpc.dynamic_ssl_server_credentials(
            _configuration(shown), fetcher, require_client_authentication=of_clients
        )


def _configuration(deployment: Deployment) -> grpc.ServerCertificateConfiguration:
    """The link goes with the server's certificate, for clients that trust the old authority alone."""
    chain = certificate_to_pem(deployment.server_certificate)
    if deployment.authority.issued(deployment.server_certificate):
        chain += deployment.authority.link_pem
    return grpc.ssl_server_certificate_configuration(
        [(deployment.server_key_pem, chain)], root_certificates=deployment.authority.accepted_pem
    )


def _stamp(state: Path) -> tuple[tuple[int, int], ...]:
    """Each file is replaced as a whole, so that a change shows in its number or its time."""
    found = []
    for name in FILES:
        try:
            status = (state / name).stat()
        except OSError:
            found.append((0, 0))
        else:
            found.append((status.st_ino, status.st_mtime_ns))
    return tuple(found)
