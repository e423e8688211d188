"""Who may use the console, and what each of its answers tells the browser.

The console acts with its user's certificate, so whoever reaches it is that user. Five things stand before it:

1. It listens on 127.0.0.1 alone, and answers only what is addressed to that address and its port. A name that an
   attacker's DNS server points at this machine is refused.
2. The address that the console prints holds a token, which works once. It is exchanged for a cookie that scripts
   cannot read and that no other site's link or form sends.
3. Cookies do not tell ports apart, so the cookie belongs to a path that is drawn for each run: what listens on
   another port of this machine is not sent it.
4. A request that another site or another port caused says so (`Sec-Fetch-Site`), and is refused.
5. Every form carries a token of its own, which other sites cannot read.
"""

from __future__ import annotations

import hmac
import secrets
from dataclasses import dataclass, field

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

HOST = "127.0.0.1"
COOKIE = "equipoise-console"
MAX_BODY_BYTES = 64 << 20
HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
        "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "Cache-Control": "no-store",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
    "Referrer-Policy": "same-origin",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}


def _draw_secret() -> str:
    return secrets.token_urlsafe(32)


@dataclass
class Access:
    """The secrets of one run of the console.

    Attributes:
        port: on which it listens.
        place: the first part of all of its paths.
        opening: the token of the address that is printed; empty once it was used.
        session: what the cookie holds.
        form_token: what every form holds.
    """

    port: int
    place: str = field(default_factory=lambda: secrets.token_urlsafe(9))
    opening: str = field(default_factory=_draw_secret, repr=False)
    session: str = field(default_factory=_draw_secret, repr=False)
    form_token: str = field(default_factory=_draw_secret, repr=False)

    @property
    def authority(self) -> str:
        """Host and port, as requests must name them."""
        return f"{HOST}:{self.port}"

    @property
    def base(self) -> str:
        """What all paths begin with."""
        return f"/{self.place}"

    @property
    def address(self) -> str:
        """The address that opens the console, once."""
        return f"http://{self.authority}{self.base}/open?token={self.opening}"

    def may_change(self, form_token: str) -> bool:
        """Tells whether a form that was sent is one of the console's own."""
        return _same(form_token, self.form_token)

    def use_opening(self, token: str) -> bool:
        """Tells whether the token opens the console, and uses it up if it does."""
        opens = bool(self.opening) and _same(token, self.opening)
        if opens:
            self.opening = ""
        return opens


def _same(given: str, held: str) -> bool:
    return hmac.compare_digest(given.encode(), held.encode())


class Guard:
    """Lets to the pages only what their own user's browser asks for, and gives every answer its headers."""

    def __init__(self, pages: ASGIApp, access: Access) -> None:
        self._pages = pages
        self._access = access

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers one request."""
        if scope["type"] != "http":
            await self._pages(scope, receive, send)
            return

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers[name] = value
            await send(message)

        request = Request(scope)
        answer = self._refusal(request) or self._opened(request) or self._stranger(request)
        await (answer or self._pages)(scope, receive, send_with_headers)

    def _refusal(self, request: Request) -> Response | None:
        """What is asked from anywhere but the console's own pages and the address bar is refused."""
        headers = request.headers
        if headers.getlist("host") != [self._access.authority]:
            return refused("This console answers at its own address only.", 421)
        if request.method not in ("GET", "HEAD", "POST"):
            return refused("The console knows GET and POST only.", 405)
        changes = request.method == "POST"
        allowed = ("same-origin",) if changes else ("same-origin", "none")
        site = headers.get("sec-fetch-site", "" if changes else "none")
        origin = headers.get("origin", self._own_origin)
        if site not in allowed or origin != self._own_origin:
            return refused("This was asked from another page than the console's own, and is refused.", 403)
        if changes and not _is_short(headers):
            return refused("What is sent must say its length, of at most 64 MiB.", 413)
        return None

    def _opened(self, request: Request) -> Response | None:
        """What the printed address leads to."""
        if request.url.path != f"{self._access.base}/open":
            return None
        if request.method != "GET" or not self._access.use_opening(request.query_params.get("token", "")):
            problem = "This address does not open the console: it works once, and was used, or is wrong."
            advice = "If it was not you who used it, stop the console now. To open it again, start it again."
            return refused(f"{problem}\n{advice}", 403)
        answer = RedirectResponse(f"{self._access.base}/", status_code=303)
        answer.set_cookie(
            COOKIE, self._access.session, path=self._access.base, httponly=True, samesite="strict", secure=False
        )
        return answer

    def _stranger(self, request: Request) -> Response | None:
        if _same(request.cookies.get(COOKIE, ""), self._access.session):
            return None
        return refused("Open the console by the address that it printed when it was started.", 403)

    @property
    def _own_origin(self) -> str:
        return f"http://{self._access.authority}"


def _is_short(headers: Headers) -> bool:
    length = headers.get("content-length", "")
    return length.isascii() and length.isdigit() and int(length[:12]) <= MAX_BODY_BYTES


def refused(why: str, status: int) -> Response:
    """Returns an answer of plain text.

    Args:
        why: the text.
        status: of HTTP.
    """
    return PlainTextResponse(why + "\n", status_code=status)
