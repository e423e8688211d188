"""Alembic's environment and the revisions, packaged so that a server can migrate its own store."""
