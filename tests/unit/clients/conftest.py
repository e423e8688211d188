"""Clients that try again at once."""

from __future__ import annotations

import pytest

from equipoise.clients import connection


@pytest.fixture(autouse=True)
def _no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "MAX_PAUSE_SECONDS", 0.001)
