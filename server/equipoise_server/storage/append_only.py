"""Triggers by which the database itself refuses to change or remove what was charged, delivered or answered."""

from __future__ import annotations

from sqlalchemy import Connection

# Rows that may be removed: those of analysts who were deleted, and results of runs and answers of sessions that are
# kept no longer. While a session goes on its answers are needed.
_RELEASED = "EXISTS (SELECT 1 FROM rounds WHERE rounds.run_id = OLD.run_id)"
_NEEDED = (
    "EXISTS (SELECT 1 FROM rounds WHERE rounds.id = OLD.round_id "
    "AND (rounds.run_id IS NOT NULL OR rounds.state NOT IN ('released', 'aborted')))"
)
_DELETED = (
    "EXISTS (SELECT 1 FROM identities WHERE identities.name = OLD.analyst AND identities.deleted IS NOT NULL)"
)
# Each append-only table, and the condition under which one of its rows must stay.
APPEND_ONLY = {
    "journal": "TRUE",
    "result_chunks": f"{_RELEASED} AND NOT {_DELETED}",
    "measurements": _RELEASED,
    "asked": f"{_NEEDED} AND NOT {_DELETED}",
}


def refuse_changes(connection: Connection) -> None:
    """Create the triggers of every append-only table, in the transaction of the connection."""
    refuse = _refuse_on_sqlite if connection.dialect.name == "sqlite" else _refuse_on_postgresql
    for table, kept in APPEND_ONLY.items():
        refuse(connection, table, kept)


def _refuse_on_sqlite(connection: Connection, table: str, kept: str) -> None:
    for change, condition in (("UPDATE", "TRUE"), ("DELETE", kept)):
        connection.exec_driver_sql(
            f"CREATE TRIGGER {table}_no_{change.lower()} BEFORE {change} ON {table} WHEN {condition} "
            f"BEGIN SELECT RAISE(ABORT, '{table} is append-only'); END"
        )


def _refuse_on_postgresql(connection: Connection, table: str, kept: str) -> None:
    refuse = f"RAISE '{table} is append-only' USING ERRCODE = 'integrity_constraint_violation'"
    for function, body in (
        (f"{table}_refuses", f"{refuse};"),
        (f"{table}_keeps", f"IF {kept} THEN {refuse}; END IF; RETURN OLD;"),
    ):
        connection.exec_driver_sql(
            f"CREATE FUNCTION {function}() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN {body} END $$"
        )
    # TRUNCATE deletes without looking at rows.
    for change, scope, function in (
        ("UPDATE", "STATEMENT", "refuses"),
        ("TRUNCATE", "STATEMENT", "refuses"),
        ("DELETE", "ROW", "keeps"),
    ):
        connection.exec_driver_sql(
            f"CREATE TRIGGER {table}_no_{change.lower()} BEFORE {change} ON {table} "
            f"FOR EACH {scope} EXECUTE FUNCTION {table}_{function}()"
        )
