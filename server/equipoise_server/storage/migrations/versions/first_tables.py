"""The first tables: every table that the code declares, and the triggers that keep some of them append-only.

Made from the declarations, so that nothing is stated twice. That is right as long as this is the only revision:
before a second one is added, this one must be written out as the tables are in the stores of released versions.
"""

from __future__ import annotations

from alembic import op

from equipoise_server.storage.append_only import refuse_changes
from equipoise_server.storage.tables import metadata

revision = "0001"
down_revision = None


def upgrade() -> None:
    connection = op.get_bind()
    metadata.create_all(connection)
    refuse_changes(connection)
