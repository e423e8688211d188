"""A console without its web server: what a browser would send to it, sent by a program."""

from __future__ import annotations

import secrets
import time
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import httpx2
from starlette.testclient import TestClient

from equipoise.console.access import Access
from equipoise.console.app import pages_of
from equipoise.console.desk import Desk
from harness.waiting import pauses

PORT = 8042
OWN = {"sec-fetch-site": "same-origin"}


class Browser:
    """Opens a console by its address, follows links and sends forms."""

    def __init__(self, desk: Desk) -> None:
        self.desk = desk
        self.client = TestClient(
            pages_of(desk), base_url=f"http://{desk.access.authority}", follow_redirects=True, headers=OWN
        )

    @classmethod
    def of(cls, profile: Path) -> Self:
        """One that has opened the console of a profile."""
        browser = cls(Desk.of(profile, Access(PORT)))
        assert browser.client.get(browser.desk.access.address).status_code == 200
        return browser

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.client.close()
        self.desk.connection.close()

    def get(self, path: str) -> httpx2.Response:
        """A page, by its path after the console's own part."""
        return self.client.get(self.desk.base + path)

    def post(self, path: str, files: Any = None, **fields: Any) -> httpx2.Response:
        """What comes of a form that is sent with its token, and of where that leads."""
        token: dict[str, Any] = {"form_token": self.desk.access.form_token, "request_id": secrets.token_hex(16)}
        return self.client.post(self.desk.base + path, data=token | fields, files=files)

    def finish(self, page: httpx2.Response) -> httpx2.Response:
        """The page of long work once it has ended."""
        pause = pauses()
        while "data-state" in page.text:
            time.sleep(next(pause))
            page = self.client.get(str(page.url))
        return page
