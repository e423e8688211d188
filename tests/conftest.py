"""The option that makes the statistical audit large: `make audit` gives it, `make test` does not."""

from __future__ import annotations

import pytest
from statistical.audit_size import SIZES, AuditSize


def pytest_addoption(parser: pytest.Parser) -> None:
    """`--audit-size`."""
    parser.addoption("--audit-size", choices=sorted(SIZES), default="fast", help="how long the audit may take")


@pytest.fixture(scope="session")
def audit_size(request: pytest.FixtureRequest) -> AuditSize:
    """What `--audit-size` names."""
    return SIZES[request.config.getoption("--audit-size")]
