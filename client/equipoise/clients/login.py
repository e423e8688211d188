"""Logs in: an ID token of the company's identity provider for a certificate of this deployment, for a fresh key."""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Callable
from pathlib import Path

import grpc

from equipoise.clients.connection import OPTIONS, Connection
from equipoise.clients.provider import Description, ProviderFailed, description
from equipoise.clients.provider_login import DeviceCode
from equipoise.errors import InvalidArgument, NotAuthenticated, Unavailable, WrongState
from equipoise.profile.enrolment import Bundle, begin, install, is_profile, replace_file
from equipoise.profile.login_file import LoginFile
from equipoise.profile.login_nonce import nonce_of_request
from equipoise.profile.profile import AUTHORITY, LOGIN, read_file
from equipoise.v1 import enrolment_pb2, enrolment_pb2_grpc

# Gets an ID token, or a device code that stands for one: from where a provider's parts are, the deployment's
# identifier there, and the nonce.
Way = Callable[[Description, str, str], str | DeviceCode]


def log_in(directory: Path, login: LoginFile, way: Way, sleep: Callable[[float], object] = time.sleep) -> None:
    """Make a profile by logging in, or renew the certificate of one that was made so.

    What the profile keeps besides, such as receipts, stays, so sessions and streams go on with the new certificate.

    Args:
        directory: The profile.
        login: Where to log in.
        way: Gets what the provider gives.
        sleep: Waits for some seconds.

    Raises:
        InvalidArgument: The directory cannot be a profile, or holds one of another name.
        NotAuthenticated: The login was refused.
        Unavailable: The provider or the server cannot be reached.
    """
    renewed = is_profile(directory)
    request = begin(directory)
    try:
        provider = description(login.issuer)
        had = way(provider, login.client, nonce_of_request(request))
    except ProviderFailed as error:
        raise Unavailable(f"the identity provider {login.issuer}: {error}") from None
    authority = read_file(directory / AUTHORITY) if renewed else login.authority.encode()
    channel = grpc.secure_channel(login.door, grpc.ssl_channel_credentials(authority), options=OPTIONS)
    connection = Connection(channel, login.door)
    try:
        service = enrolment_pb2_grpc.EnrolmentServiceStub(channel)
        try:
            if isinstance(had, DeviceCode):
                response = _typed(connection, service, had, request, sleep)
            else:
                asked = enrolment_pb2.LogInRequest(id_token=had, signing_request=request)
                response = connection.call(service.LogIn, asked)
        except NotAuthenticated as error:
            raise NotAuthenticated(f"{error.message}; {_whose(had)}") from None
    finally:
        connection.close()
    install(directory, Bundle(response.name, login.target, response.certificate, authority, login.log_keys))
    replace_file(directory / LOGIN, login.to_json().encode())


def _typed(
    connection: Connection,
    service: enrolment_pb2_grpc.EnrolmentServiceStub,
    had: DeviceCode,
    request: bytes,
    sleep: Callable[[float], object],
) -> enrolment_pb2.LogInResponse:
    """Ask until somebody has typed the code. Raises `Unavailable` where nobody does."""
    asked, left = enrolment_pb2.LogInRequest(device_code=had.code, signing_request=request), had.seconds
    while left > 0:
        sleep(had.interval)
        left -= had.interval
        try:
            return connection.call(service.LogIn, asked)
        except WrongState:
            continue
    raise Unavailable("the identity provider: nobody typed the code in time")


def _whose(had: str | DeviceCode) -> str:
    """Say whose account it is, which an operator needs to know to let it in. The token was not checked."""
    if isinstance(had, DeviceCode):
        return "if your operator has not let you in yet, log in once without --device: that says whom to let in"
    try:
        payload = had.split(".")[1]
        claims = json.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))
        subject = claims["sub"]
    except (ValueError, LookupError, TypeError):
        return "the provider's token cannot be read"
    if not isinstance(subject, str) or not subject.isprintable():
        return "the provider's token names nobody"
    return f"if your operator has not let you in yet, tell them your subject at the provider: {subject}"


def check_is_login(directory: Path) -> None:
    """Raise `InvalidArgument` where a profile was had from an operator, who alone renews it."""
    if is_profile(directory) and not (directory / LOGIN).exists():
        problem = "was not made by logging in; renew it with: equipoise enroll --renew"
        raise InvalidArgument(f"profile {directory}", problem)
