"""Codes of the device flow: exchanged once, at the provider alone, and what the provider says of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from equipoise.clients.provider import Description, ProviderFailed
from equipoise.errors import TooFast, Unavailable, WrongState
from equipoise_server.identity import device_codes
from equipoise_server.identity.device_codes import MAX_CODE, MAX_KEPT, DeviceCodes
from equipoise_server.identity.login_tokens import BadToken

ISSUER = "https://login.example"


def answering(monkeypatch: pytest.MonkeyPatch, *answers: Any) -> list[dict[str, str]]:
    """Give these answers in the place of the provider's, one after the other, and return what is posted."""
    left, posted = list(answers), []

    def fetched(address: str, form: Mapping[str, str]) -> Any:
        assert address == f"{ISSUER}/token"
        posted.append(dict(form))
        answer = left.pop(0)
        if isinstance(answer, ProviderFailed):
            raise answer
        return answer

    monkeypatch.setattr(device_codes, "description", lambda issuer: Description("", f"{issuer}/token", "", ""))
    monkeypatch.setattr(device_codes, "fetched", fetched)
    return posted


def test_a_code_is_exchanged_once_and_the_same_code_has_the_same_token(monkeypatch: pytest.MonkeyPatch) -> None:
    posted = answering(monkeypatch, {"id_token": "t"}, *({"id_token": f"t{number}"} for number in range(MAX_KEPT)))
    codes = DeviceCodes(ISSUER, "equipoise")
    assert [codes.token("code"), codes.token("code")] == ["t", "t"]
    assert posted == [{"grant_type": device_codes.GRANT, "device_code": "code", "client_id": "equipoise"}]
    for number in range(MAX_KEPT):
        assert codes.token(f"code {number}".replace(" ", "-")) == f"t{number}"
    assert len(codes._had) == MAX_KEPT


@pytest.mark.parametrize(
    ("said", "error"),
    [
        (ProviderFailed("", "authorization_pending"), WrongState),
        (ProviderFailed("", "slow_down"), TooFast),
        (ProviderFailed("", "expired_token"), BadToken),
        (ProviderFailed("", "access_denied"), BadToken),
        (ProviderFailed("", "invalid_grant"), BadToken),
        (ProviderFailed("it cannot be reached"), Unavailable),
        ({}, BadToken),
        ({"id_token": 1}, BadToken),
    ],
    ids=str,
)
def test_what_the_provider_says_of_a_code(
    monkeypatch: pytest.MonkeyPatch, said: Any, error: type[Exception]
) -> None:
    answering(monkeypatch, said, {"id_token": "t"})
    codes = DeviceCodes(ISSUER, "equipoise")
    with pytest.raises(error):
        codes.token("code")
    # Nothing of a failure is kept.
    assert codes.token("code") == "t"


@pytest.mark.parametrize("code", ["a b", "\x00", "\u0661", "a" * (MAX_CODE + 1)])
def test_what_is_no_code_is_not_sent_anywhere(monkeypatch: pytest.MonkeyPatch, code: str) -> None:
    answering(monkeypatch)
    with pytest.raises(BadToken):
        DeviceCodes(ISSUER, "equipoise").token(code)
