"""How much is tried here goes by the size of the statistical audit, too."""

from __future__ import annotations

from statistical.conftest import audit_size

__all__ = ["audit_size"]
