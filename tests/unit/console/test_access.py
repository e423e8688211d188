"""Who gets to the console's pages: only the browser that opened it, and only from the console's own pages."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from starlette.responses import PlainTextResponse
from starlette.testclient import TestClient

from equipoise.console.access import COOKIE, HEADERS, Access, Guard

PORT = 8042
HOME = "the pages"
SAME = {"sec-fetch-site": "same-origin"}


@pytest.fixture
def access() -> Access:
    return Access(PORT)


@pytest.fixture
def browser(access: Access) -> TestClient:
    pages = Guard(PlainTextResponse(HOME), access)
    return TestClient(pages, base_url=f"http://127.0.0.1:{PORT}", follow_redirects=False)


def open_console(browser: TestClient, access: Access) -> None:
    answer = browser.get(access.address, headers={"sec-fetch-site": "none"})
    assert (answer.status_code, answer.headers["location"]) == (303, f"{access.base}/")


def test_the_address_opens_the_console_once(browser: TestClient, access: Access) -> None:
    address = access.address
    open_console(browser, access)
    assert browser.get(f"{access.base}/").text == HOME
    browser.cookies.clear()
    stolen = browser.get(address)
    assert stolen.status_code == 403
    assert "stop the console" in stolen.text
    assert "set-cookie" not in stolen.headers
    assert browser.get(f"{access.base}/").status_code == 403


@pytest.mark.parametrize("token", ["", "x", "ä"])
def test_a_wrong_token_opens_nothing_and_leaves_the_right_one(
    browser: TestClient, access: Access, token: str
) -> None:
    assert browser.get(f"{access.base}/open", params={"token": token}).status_code == 403
    open_console(browser, access)


def test_the_token_is_not_taken_from_a_form(browser: TestClient, access: Access) -> None:
    assert browser.post(access.address, headers={**SAME, "content-length": "0"}).status_code == 403
    open_console(browser, access)


def test_the_cookie_is_kept_from_scripts_other_sites_and_other_ports(browser: TestClient, access: Access) -> None:
    answer = browser.get(access.address)
    value, *attributes = answer.headers["set-cookie"].split("; ")
    assert value == f"{COOKIE}={access.session}"
    assert {each.lower() for each in attributes} == {"httponly", "samesite=strict", f"path={access.base}".lower()}


@pytest.mark.parametrize(
    ("method", "headers", "status"),
    [
        ("GET", {}, 200),
        ("GET", {"sec-fetch-site": "none"}, 200),
        ("GET", SAME, 200),
        ("GET", {"sec-fetch-site": "same-site"}, 403),  # another port of this machine
        ("GET", {"sec-fetch-site": "cross-site"}, 403),
        ("GET", {"host": "127.0.0.1"}, 421),
        ("GET", {"host": f"localhost:{PORT}"}, 421),
        ("GET", {"host": f"rebound.example:{PORT}"}, 421),
        ("POST", SAME, 200),
        ("POST", {**SAME, "origin": f"http://127.0.0.1:{PORT}"}, 200),
        ("POST", {**SAME, "origin": f"http://127.0.0.1:{PORT + 1}"}, 403),
        ("POST", {**SAME, "origin": "null"}, 403),
        ("POST", {}, 403),
        ("POST", {"sec-fetch-site": "none"}, 403),
        ("POST", {"sec-fetch-site": "same-site"}, 403),
        ("POST", {"sec-fetch-site": "cross-site"}, 403),
        ("POST", {**SAME, "content-length": str(1 << 40)}, 413),
        ("PUT", SAME, 405),
        ("OPTIONS", SAME, 405),
    ],
)
def test_only_the_consoles_own_pages_ask(
    browser: TestClient, access: Access, method: str, headers: Mapping[str, str], status: int
) -> None:
    open_console(browser, access)
    assert browser.request(method, f"{access.base}/", headers=headers).status_code == status


def test_a_body_of_unknown_length_is_refused(browser: TestClient, access: Access) -> None:
    open_console(browser, access)
    answer = browser.post(f"{access.base}/", headers=SAME, content=iter([b"x"]))
    assert answer.status_code == 413


@pytest.mark.parametrize("path", ["/", "/nowhere", "/open?token=x"])
def test_every_answer_has_the_headers_also_a_refusal(browser: TestClient, access: Access, path: str) -> None:
    answer = browser.get(access.base + path)
    assert answer.status_code == 403
    assert {name: answer.headers[name] for name in HEADERS} == HEADERS
    assert "default-src 'none'" in answer.headers["content-security-policy"]
    assert "unsafe" not in answer.headers["content-security-policy"]


def test_no_secret_is_shown_by_repr(access: Access) -> None:
    shown = repr(access)
    assert not any(secret in shown for secret in (access.opening, access.session, access.form_token))
