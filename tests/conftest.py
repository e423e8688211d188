"""Fixtures of all tests: the store that they run on."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture
def store_url(tmp_path: Path) -> str:
    """The URL of an empty store."""
    return f"sqlite:///{tmp_path / 'equipoise.db'}"
