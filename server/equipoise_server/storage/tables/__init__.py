"""Every table, declared in the module of what it is about and imported from there.

The first migration builds them all from `metadata`, with the triggers of `append_only`. Times are microseconds (see
`times`), privacy amounts integers in the units of `equipoise.accounting`. Workloads are here, so whoever reads the
store reads every analyst's questions; private data are not.
"""

from __future__ import annotations

from equipoise_server.storage.tables import clock, identity, ledger, round, session, transparency
from equipoise_server.storage.tables.metadata import metadata

# Imported so that `metadata` has the tables of all.
MODULES = (clock, identity, ledger, round, session, transparency)

__all__ = ["MODULES", "metadata"]
