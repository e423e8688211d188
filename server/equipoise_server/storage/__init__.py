"""The store: tables, migrations, connection policy and remembered requests. Private data never enter it."""
