"""A real OpenID Connect provider in a process of its own, and a person with a browser."""

from __future__ import annotations

import http.cookiejar
import os
import re
import shutil
import subprocess
import urllib.parse
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from harness.waiting import PATIENCE

NODE = Path(__file__).parent / "node"
CLIENT = "equipoise"


def need_node() -> str:
    """The program `node`; leaves the test out where it or its packages are missing, but not in CI."""
    node = shutil.which("node")
    if node is None or not (NODE / "node_modules").is_dir():
        assert "CI" not in os.environ, "CI has node and what tests/harness/node names"
        pytest.skip("needs node, and: make .venv/node.stamp")
    return node


@contextmanager
def provider(subject: str) -> Iterator[str]:
    """The identifier of a provider at which everybody is logged in as `subject`."""
    command = [need_node(), "provider.mjs", subject, CLIENT]
    with subprocess.Popen(
        command, cwd=NODE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as process:
        try:
            assert process.stdout is not None
            yield f"http://127.0.0.1:{int(process.stdout.readline())}"
        finally:
            process.terminate()
            process.wait(PATIENCE)


class Browser:
    """Opens pages and follows them, with cookies."""

    def __init__(self) -> None:
        jar = urllib.request.HTTPCookieProcessor(http.cookiejar.CookieJar())
        self._opener = urllib.request.build_opener(jar, urllib.request.ProxyHandler({}))

    def open(self, page: str, form: dict[str, str] | None = None) -> str:
        """The text of the page at the end of all redirections."""
        data = None if form is None else urllib.parse.urlencode(form).encode()
        with self._opener.open(page, data, timeout=PATIENCE) as response:
            text: str = response.read().decode()
            return text

    def confirm_device(self, page: str, code: str) -> None:
        """Types a code at the provider's page for devices, and confirms it."""
        text = self.open(page)
        while (xsrf := re.search(r'name="xsrf" value="([^"]+)"', text)) is not None:
            form = {"xsrf": xsrf[1], "user_code": code, "confirm": "yes"}
            text = self.open(page.partition("?")[0], form)
