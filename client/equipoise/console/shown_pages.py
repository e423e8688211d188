"""Pages that answer a form, each at an address of its own: a browser can go back to them and load them again."""

from __future__ import annotations

import secrets

from starlette.responses import HTMLResponse, Response

from equipoise.console.asked import Asked
from equipoise.console.desk import Desk
from equipoise.console.pages import Pages
from equipoise.errors import NotFound

KIND = "shown"
MAX_PAGES = 30  # that are remembered


def keep(desk: Desk, page: HTMLResponse) -> Response:
    """Remembers a page, and returns the answer that leads to it.

    Args:
        desk: the user's.
        page: that answers a form.
    """
    token = secrets.token_urlsafe(16)
    desk.remembered((KIND, token), lambda: (bytes(page.body), page.status_code), MAX_PAGES)
    return desk.go(f"/shown/{token}")


def show(desk: Desk, asked: Asked) -> Response:
    """The page, as it was. Raises `NotFound` where it is forgotten."""
    kept = desk.kept.get((KIND, asked.path["token"]))
    if kept is None:
        raise NotFound("the console does not remember this page any more; open the form again")
    content, status = kept
    return HTMLResponse(content, status)


PAGES: Pages = (("GET", "/shown/{token}", show),)
