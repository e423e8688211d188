"""What forms came to, at addresses of their own: the same page each time, and the oldest ones are forgotten."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import cast

import pytest
from starlette.datastructures import QueryParams
from starlette.responses import HTMLResponse

from equipoise.clients.connection import Connection
from equipoise.console.access import Access
from equipoise.console.asked import Asked
from equipoise.console.desk import Desk
from equipoise.console.shown_pages import MAX_PAGES, keep, show
from equipoise.errors import NotFound
from equipoise.model.identities import Caller, Role


def test_a_page_is_shown_as_it_was_until_it_is_forgotten() -> None:
    end = datetime(2030, 1, 31, tzinfo=UTC)
    nobody = cast(Connection, None)
    desk = Desk(Path("profile"), nobody, Caller("ann", Role.ANALYST), end, Access(8042))
    tokens = []
    for number in range(MAX_PAGES + 1):
        led = keep(desk, HTMLResponse(f"page {number}", 400))
        assert led.status_code == 303
        tokens.append(led.headers["location"].rpartition("/shown/")[2])
    for number, token in list(enumerate(tokens))[1:] * 2:
        page = show(desk, Asked({"token": token}, QueryParams(), {}, {}))
        assert (page.body, page.status_code) == (f"page {number}".encode(), 400)
    for token in (tokens[0], "", "x" * 22):
        with pytest.raises(NotFound, match="does not remember this page"):
            show(desk, Asked({"token": token}, QueryParams(), {}, {}))
