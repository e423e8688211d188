"""Migrates a store to the current schema, or refuses it."""

from __future__ import annotations

from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, inspect

from equipoise.errors import InvalidArgument

MIGRATIONS = Path(__file__).parent / "migrations"


def migrate(connection: Connection) -> None:
    """Apply the missing migrations, in the transaction of `connection`.

    After a crash nothing was applied, and the next start applies them.

    Raises:
        InvalidArgument: the database is not ours, or a newer version has written it.
    """
    script = _script()
    known = {revision.revision for revision in script.walk_revisions()}
    current = MigrationContext.configure(connection).get_current_revision()
    if current is None and inspect(connection).get_table_names():
        raise InvalidArgument("store", "must be an empty database, or one that Equipoise has made")
    if current is not None and current not in known:
        newest = script.get_current_head()
        raise InvalidArgument(
            "store", f"was written by a newer version: its schema is {current}, this version knows {newest}"
        )
    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS).replace("%", "%%"))
    config.attributes["connection"] = connection
    command.upgrade(config, "head")


def check_current(connection: Connection) -> None:
    """Raise `InvalidArgument` for a database whose schema is not the current one. Changes nothing."""
    current = MigrationContext.configure(connection).get_current_revision()
    newest = _script().get_current_head()
    if current != newest:
        problem = f"has the schema {current or 'of something else'}, not {newest}; a server that starts updates it"
        raise InvalidArgument("store", problem)


def _script() -> ScriptDirectory:
    return ScriptDirectory(str(MIGRATIONS))
