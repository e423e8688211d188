"""The provider's keys: from its own description alone, asked for seldom, believed for a while."""

from __future__ import annotations

import http.server
import json
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest

from equipoise.errors import InvalidArgument, Unavailable
from equipoise_server.config_file import make_config
from equipoise_server.identity.provider_keys import (
    AGAIN_AFTER_FAILURE_SECONDS,
    AGAIN_SECONDS,
    KEEP_SECONDS,
    ProviderKeys,
)


@dataclass
class Provider:
    """A web server whose answers a test chooses; `asked` are the paths."""

    pages: dict[str, Any] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)
    issuer: str = ""

    def describe(self, **other: Any) -> None:
        names = ("authorization_endpoint", "token_endpoint", "jwks_uri")
        said = {name: f"{self.issuer}/{name}" for name in names} | {"issuer": self.issuer}
        self.pages["/.well-known/openid-configuration"] = said | other


@pytest.fixture
def provider() -> Iterator[Provider]:
    made = Provider()

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            made.asked.append(self.path)
            page = made.pages.get(self.path)
            if isinstance(page, str):
                self.send_response(302)
                self.send_header("Location", page)
                self.end_headers()
                return
            content = page if isinstance(page, bytes) else json.dumps(page).encode()
            self.send_response(200 if page is not None else 404)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_: object) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        made.issuer = f"http://127.0.0.1:{server.server_port}"
        made.describe()
        made.pages["/jwks_uri"] = {"keys": [{"kid": "1"}, {"kid": "2", "kty": "RSA"}]}
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield made
        server.shutdown()
        thread.join()


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.mark.slow
def test_keys_are_fetched_once_and_again_where_a_name_is_unknown_or_time_has_passed(provider: Provider) -> None:
    clock = Clock()
    keys = ProviderKeys(provider.issuer, clock)
    assert keys.named("2") == [{"kid": "2", "kty": "RSA"}]
    assert (keys.named("1"), len(provider.asked)) == ([{"kid": "1"}], 2)
    # A stranger who names keys that there are not has them fetched once in a while only.
    for _ in range(5):
        assert keys.named("3") == []
    assert len(provider.asked) == 2
    provider.pages["/jwks_uri"] = {"keys": [{"kid": "3"}]}
    clock.now += AGAIN_SECONDS
    assert (keys.named("3"), keys.named("1")) == ([{"kid": "3"}], [])
    clock.now += KEEP_SECONDS + 1
    provider.pages["/jwks_uri"] = {"keys": []}
    assert keys.named("3") == []


@pytest.mark.slow
@pytest.mark.parametrize("page", [{}, {"keys": {}}, {"keys": ["a"]}, {"keys": [{}] * 65}, b"[]", b"{", None])
def test_what_is_no_key_set_is_a_failure_that_is_tried_again_soon(provider: Provider, page: Any) -> None:
    provider.pages["/jwks_uri"] = page
    clock = Clock()
    keys = ProviderKeys(provider.issuer, clock)
    for _ in range(2):
        with pytest.raises(Unavailable):
            keys.named("1")
    assert len(provider.asked) == 2
    provider.pages["/jwks_uri"] = {"keys": [{"kid": "1"}]}
    clock.now += AGAIN_AFTER_FAILURE_SECONDS
    assert keys.named("1") == [{"kid": "1"}]


@pytest.mark.slow
def test_a_provider_under_another_name_or_elsewhere_is_not_believed(provider: Provider) -> None:
    for other in ({"issuer": f"{provider.issuer}/tenant-2"}, {"jwks_uri": "http://evil.example/keys"}):
        provider.describe(**other)
        with pytest.raises(Unavailable):
            ProviderKeys(provider.issuer).named("1")
    provider.describe()
    provider.pages["/jwks_uri"] = "https://evil.example/keys"  # a redirection
    with pytest.raises(Unavailable):
        ProviderKeys(provider.issuer).named("1")


@pytest.mark.parametrize(
    ("settings", "named"),
    [
        ({"login_issuer": "http://login.example"}, "login_issuer"),
        ({"login_issuer": "https://user@login.example"}, "login_issuer"),
        ({"login_issuer": "https://login.example/#a"}, "login_issuer"),
        ({"login_issuer": "https://login .example/"}, "login_issuer"),
        ({"login_listen": "127.0.0.1:0"}, "login_issuer and login_client"),
        ({"login_listen": "7444", "login_issuer": "https://a", "login_client": "b"}, "login_listen"),
        ({"login_minutes": 0}, "login_minutes"),
    ],
)
def test_a_provider_that_cannot_be_one_is_refused_in_the_configuration(
    settings: dict[str, Any], named: str
) -> None:
    with pytest.raises(InvalidArgument, match=named):
        make_config(deployment="here", **settings)
