"""Logging in at a provider: only who was sent there comes back, and a code is left to the server."""

from __future__ import annotations

import threading
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from equipoise.clients import provider_login
from equipoise.clients.provider import Description, ProviderFailed
from equipoise.clients.provider_login import DeviceCode, by_browser, by_device

PROVIDER = Description(
    "https://login.example/auth?a=b", "https://login.example/token", "", "https://login.example/d"
)
BEGUN = {"device_code": "d", "user_code": "ABCD", "verification_uri": "https://v", "expires_in": 60, "interval": 5}


def answering(monkeypatch: pytest.MonkeyPatch, *answers: Any) -> list[dict[str, str]]:
    """Give these answers in the place of the provider's, one after the other, and return what is posted."""
    left, posted = list(answers), []

    def fetched(_: str, form: Mapping[str, str]) -> Any:
        posted.append(dict(form))
        answer = left.pop(0)
        if isinstance(answer, str):
            raise ProviderFailed(answer, answer)
        return answer

    monkeypatch.setattr(provider_login, "fetched", fetched)
    return posted


def coming_back(change: Callable[[dict[str, str]], dict[str, str]]) -> tuple[Callable[[str], object], list[int]]:
    """A browser that comes back from the provider at once with what `change` makes of its answer."""
    statuses: list[int] = []

    def visit(page: str) -> None:
        asked = dict(urllib.parse.parse_qsl(urllib.parse.urlsplit(page).query))
        direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        for answer in (
            change({"code": "c", "state": asked["state"]}),
            {"error": "denied", "state": asked["state"]},
        ):
            try:
                with direct.open(
                    f"{asked['redirect_uri']}?{urllib.parse.urlencode(answer)}", timeout=5
                ) as response:
                    statuses.append(response.status)
            except urllib.error.HTTPError as error:
                with error:
                    statuses.append(error.code)
            except OSError:
                return

    return lambda page: threading.Thread(target=visit, args=(page,), daemon=True).start(), statuses


def test_the_code_that_comes_back_is_exchanged_with_its_proof(monkeypatch: pytest.MonkeyPatch) -> None:
    posted = answering(monkeypatch, {"id_token": "t"})
    open_page, _ = coming_back(lambda answer: answer)
    assert by_browser(PROVIDER, "client", "nonce", open_page, 10) == "t"
    (form,) = posted
    assert (form["code"], form["client_id"]) == ("c", "client")
    assert len(form["code_verifier"]) >= 43


def test_a_code_without_the_state_is_not_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    answering(monkeypatch)
    open_page, statuses = coming_back(lambda answer: answer | {"state": "of somebody else"})
    with pytest.raises(ProviderFailed, match="denied"):
        by_browser(PROVIDER, "client", "nonce", open_page, 10)
    assert statuses[0] == 404


def test_nobody_who_comes_back_is_waited_for_only_so_long() -> None:
    with pytest.raises(ProviderFailed, match="in time"):
        by_browser(PROVIDER, "client", "nonce", lambda _: None, 0.05)


def test_a_device_shows_a_code_and_leaves_the_token_to_the_server(monkeypatch: pytest.MonkeyPatch) -> None:
    posted = answering(monkeypatch, BEGUN)
    told: list[tuple[str, str]] = []
    had = by_device(PROVIDER, "client", lambda *page: told.append(page))
    assert had == DeviceCode("d", 60.0, 5.0)
    assert told == [("https://v", "ABCD")]
    assert posted == [{"client_id": "client", "scope": "openid"}]


@pytest.mark.parametrize("answer", [{}, "access_denied", BEGUN | {"expires_in": "soon"}])
def test_a_device_that_is_refused_says_so(monkeypatch: pytest.MonkeyPatch, answer: Any) -> None:
    answering(monkeypatch, answer)
    with pytest.raises(ProviderFailed):
        by_device(PROVIDER, "client", lambda *_: None)
    with pytest.raises(ProviderFailed, match="--device"):
        by_device(Description("", "", "", ""), "client", lambda *_: None)
