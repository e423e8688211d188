"""What Alembic runs to migrate: always on a connection whose transaction `migrate` began."""

from __future__ import annotations

from alembic import context

from equipoise_server.storage.tables import metadata

context.configure(
    connection=context.config.attributes["connection"], target_metadata=metadata, transactional_ddl=True
)
context.run_migrations()
