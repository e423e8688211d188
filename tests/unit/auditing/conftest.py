"""What most tests of the audit begin with."""

from __future__ import annotations

import pytest
from harness.custodian import Custodian


@pytest.fixture
def custodian() -> Custodian:
    """A custodian of a table and of a whole round."""
    custodian = Custodian()
    custodian.register()
    custodian.play("aa")
    return custodian
