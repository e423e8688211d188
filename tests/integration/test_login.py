"""Logging in with a real identity provider at a real server: both ways, renewing, and the end of a certificate."""

from __future__ import annotations

import socket
import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import grpc
import pytest
from harness.dangers import SMALL_TABLE
from harness.identity_provider import CLIENT, Browser, provider
from harness.rounds_bench import COLOUR, write_table
from harness.server_process import ServerProcess, make_state, running, signing_request
from harness.server_rounds import registration, terms

from equipoise.clients.analyst import Client
from equipoise.clients.login import log_in
from equipoise.clients.operator import Operator
from equipoise.clients.provider import Description, description
from equipoise.clients.provider_login import DeviceCode, by_browser, by_device
from equipoise.errors import DataLoss, EquipoiseError, NotAuthenticated, TooFast
from equipoise.model.accounts import Budget
from equipoise.model.identities import Role
from equipoise.model.rounds import SessionTerms, Share, Terms
from equipoise.profile.certificates import read_request
from equipoise.profile.login_file import LoginFile, kept_login
from equipoise.profile.login_nonce import nonce_of_request
from equipoise.profile.profile import Profile
from equipoise.v1 import (
    analyst_pb2,
    analyst_pb2_grpc,
    enrolment_pb2,
    enrolment_pb2_grpc,
    operator_pb2,
    operator_pb2_grpc,
)
from equipoise.wire.terms import terms_to_message
from equipoise_server.admin.checks import check_state
from equipoise_server.admin.identities import allow_login, login_file
from equipoise_server.identity.authority import new_key

pytestmark = pytest.mark.full

SUBJECT = "auth0|ann-1"
ASKED = (COLOUR == "red", COLOUR == "green")
SESSION = Terms(
    dataset="shop",
    shares=(Share("ann", 4, 8),),
    data_budget=Budget(2.0, 1e-4),
    analyst_budget=None,
    mechanism="online",
    session=SessionTerms(),
    accepted=SMALL_TABLE,
)


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


@pytest.fixture
def issuer() -> Iterator[str]:
    with provider(SUBJECT) as started:
        yield started


@pytest.fixture
def server(tmp_path: Path, issuer: str) -> Iterator[ServerProcess]:
    settings = [
        f'login_listen = "127.0.0.1:{free_port()}"',
        f'login_issuer = "{issuer}"',
        f'login_client = "{CLIENT}"',
        "login_minutes = 1",
        "logins_per_day = 3",
    ]
    state = make_state(tmp_path / "state", settings)
    write_table(state / "data")
    with running(state) as started:
        yield started


def published(server: ServerProcess) -> LoginFile:
    made = login_file(server.state, None, f"127.0.0.1:{server.port}")
    assert LoginFile.from_json(made.to_json()) == made
    return made


def in_browser(provider: Description, client: str, nonce: str) -> str:
    def open_page(page: str) -> None:
        threading.Thread(target=Browser().open, args=(page,)).start()

    return by_browser(provider, client, nonce, open_page, 30)


def by_code(provider: Description, client: str, _: str) -> DeviceCode:
    return replace(by_device(provider, client, Browser().confirm_device), interval=0.2)


@pytest.mark.parametrize("way", [in_browser, by_code])
def test_a_person_logs_in_and_gets_what_its_role_may(server: ServerProcess, tmp_path: Path, way: Any) -> None:
    profile = tmp_path / "ann"
    whom = r"auth0\|ann-1" if way is in_browser else "without --device"
    with pytest.raises(NotAuthenticated, match=rf"the login was refused; .*{whom}"):
        log_in(profile, published(server), way)
    operator_profile = server.state / "profiles" / "operator"
    settings = operator_profile / "profile.toml"
    settings.write_text(
        settings.read_text().replace(Profile.load(operator_profile).target, f"127.0.0.1:{server.port}")
    )
    with Operator.from_profile(operator_profile) as operator:
        operator.allow_login("ann", SUBJECT)
    log_in(profile, published(server), way)
    assert kept_login(profile) == published(server)
    with Client.from_profile(profile) as client:
        assert (client.identity().name, client.identity().role) == ("ann", Role.ANALYST)
    first = Profile.load(profile).certificate
    log_in(profile, kept_login(profile), way)
    assert Profile.load(profile).certificate != first
    with Operator.from_profile(operator_profile) as operator:
        operator.revoke_analyst("ann")
    with pytest.raises(NotAuthenticated, match="the login was refused"):
        log_in(profile, kept_login(profile), way)


async def test_streams_end_with_the_certificate_and_go_on_after_another_login(
    server: ServerProcess, tmp_path: Path
) -> None:
    """And a session goes on at its next statement, with the receipts that the profile keeps."""
    await server.admit("bob")
    allow_login(server.state, "ann", Role.ANALYST, SUBJECT)
    with server.blocking_channel(server.operator()) as channel:
        operator = operator_pb2_grpc.OperatorServiceStub(channel)
        operator.RegisterDataset(registration())
        asked = operator_pb2.OpenRoundRequest(terms=terms(), request_id="open")
        round_id = operator.OpenRound(asked).detail.round.id
        opened = operator_pb2.OpenSessionRequest(terms=terms_to_message(SESSION), request_id="session")
        session_id = operator.OpenSession(opened).detail.round.id
    profile = tmp_path / "ann"
    log_in(profile, published(server), by_code)
    with Client.from_profile(profile) as client:
        stub = analyst_pb2_grpc.AnalystServiceStub(client._connection.channel)
        watch = stub.WatchAnalystRound(analyst_pb2.WatchAnalystRoundRequest(round_id=round_id))
        assert next(watch).round.id == round_id
        (first,) = client.ask(session_id, ASKED[:1], accept_unprotected=True)
        began = time.monotonic()
        with pytest.raises(grpc.RpcError) as ended:
            next(watch)
        assert time.monotonic() - began < 130
        assert ended.value.code() is grpc.StatusCode.UNAUTHENTICATED
        with pytest.raises(EquipoiseError):
            client.identity()
        with pytest.raises(EquipoiseError):
            list(client.ask(session_id, ASKED, accept_unprotected=True))
    log_in(profile, kept_login(profile), by_code)
    with Client.from_profile(profile) as client:
        assert {each.id for each in client.rounds()} == {round_id, session_id}
        again, second = client.ask(session_id, ASKED, accept_unprotected=True)
        assert (again.value, again.slot) == (first.value, first.slot)
        assert (again.sequence, second.sequence) == (1, 2)


def test_a_token_is_of_no_use_for_another_key_and_the_door_leads_nowhere_else(
    server: ServerProcess, issuer: str
) -> None:
    allow_login(server.state, "ann", Role.ANALYST, SUBJECT)
    door = published(server)
    mine, thiefs = (signing_request(new_key()) for _ in range(2))
    assert read_request(mine).public_key() != read_request(thiefs).public_key()
    token = in_browser(description(issuer), CLIENT, nonce_of_request(mine))
    tls = grpc.ssl_channel_credentials(door.authority.encode())
    with grpc.secure_channel(door.door, tls) as channel:
        log_in_call = enrolment_pb2_grpc.EnrolmentServiceStub(channel).LogIn
        told = set()
        for hostile in (token, f"{token}a", "", token.replace(token[:10], "eyJhbGciOi")):
            with pytest.raises(grpc.RpcError) as refused:
                log_in_call(enrolment_pb2.LogInRequest(id_token=hostile, signing_request=thiefs))
            told.add((refused.value.code(), refused.value.details()))
        assert told == {(grpc.StatusCode.UNAUTHENTICATED, "the login was refused")}
        asked = enrolment_pb2.LogInRequest(id_token=token, signing_request=mine)
        assert log_in_call(asked) == log_in_call(asked)
        # A code is of one key, too, and a token of the device flow that somebody brings is none.
        code = by_code(description(issuer), CLIENT, "").code
        asked = enrolment_pb2.LogInRequest(device_code=code, signing_request=signing_request(new_key()))
        assert log_in_call(asked) == log_in_call(asked)
        for hostile in (code, f"{code}a"):
            with pytest.raises(grpc.RpcError) as refused:
                log_in_call(enrolment_pb2.LogInRequest(device_code=hostile, signing_request=thiefs))
            told.add((refused.value.code(), refused.value.details()))
        assert len(told) == 1
        with pytest.raises(grpc.RpcError) as both:
            log_in_call(enrolment_pb2.LogInRequest(id_token=token, device_code=code, signing_request=mine))
        assert both.value.code() is grpc.StatusCode.INVALID_ARGUMENT
        with pytest.raises(grpc.RpcError) as elsewhere:
            analyst_pb2_grpc.AnalystServiceStub(channel).GetIdentity(analyst_pb2.GetIdentityRequest())
        assert elsewhere.value.code() is grpc.StatusCode.UNIMPLEMENTED
        # A flood from one address is refused, and the server goes on.
        statuses = set()
        for _ in range(80):
            with pytest.raises(grpc.RpcError) as flooded:
                log_in_call(enrolment_pb2.LogInRequest(id_token="a", signing_request=thiefs))
            statuses.add(flooded.value.code())
        assert statuses == {grpc.StatusCode.UNAUTHENTICATED, grpc.StatusCode.RESOURCE_EXHAUSTED}
    for secret in (token, "eyJ"):
        assert secret not in server.log()


def test_an_account_that_was_entered_in_the_store_beside_the_log_gets_nothing(
    server: ServerProcess, tmp_path: Path
) -> None:
    allow_login(server.state, "olga", Role.OPERATOR, "olga-1")
    with closing(sqlite3.connect(server.state / "equipoise.db")) as store, store:
        store.execute("UPDATE logins SET subject = ?", (SUBJECT,))
    with pytest.raises(NotAuthenticated, match="the login was refused"):
        log_in(tmp_path / "olga", published(server), by_code)
    assert "login_not_on_record" in server.log()
    with pytest.raises(DataLoss, match="logins: 'olga' may log in with the account "):
        check_state(server.state)


def test_an_account_logs_in_as_often_a_day_as_is_configured(server: ServerProcess, tmp_path: Path) -> None:
    allow_login(server.state, "ann", Role.ANALYST, SUBJECT)
    for _ in range(3):
        log_in(tmp_path / "ann", published(server), by_code)
    with pytest.raises(TooFast, match="an account may log in 3 times a day; log in again later"):
        log_in(tmp_path / "ann", published(server), by_code)
    with Client.from_profile(tmp_path / "ann") as client:
        assert client.identity().name == "ann"
    assert check_state(server.state)["identities"] == 3
