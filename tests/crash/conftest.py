"""How many random kills."""

from __future__ import annotations

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--kills", type=int, default=20, help="random kills of a server on each store")
    parser.addoption("--kills-seed", default="1", help="what the moments of the kills are drawn from")
