"""The options that make the statistical audit large: `make audit` gives them, `make test` does not."""

from __future__ import annotations

import pytest
from harness.audit_size import SIZES, AuditSize


def pytest_addoption(parser: pytest.Parser) -> None:
    """`--audit-size` and `--other-numpy`."""
    parser.addoption("--audit-size", choices=sorted(SIZES), default="fast", help="how long the audit may take")
    parser.addoption("--other-numpy", default="", help="a directory with another numpy, to replay rounds with")


@pytest.fixture(scope="session")
def audit_size(request: pytest.FixtureRequest) -> AuditSize:
    """What `--audit-size` names; `fast` where all tests run, since pytest reads this file too late to ask."""
    return SIZES[request.config.getoption("--audit-size", "fast")]


@pytest.fixture(scope="session")
def other_numpy(request: pytest.FixtureRequest) -> str:
    """What `--other-numpy` names, or nothing."""
    directory: str = request.config.getoption("--other-numpy", "")
    return directory
