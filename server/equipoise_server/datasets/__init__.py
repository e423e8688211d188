"""Private tables: read through DuckDB, held only as integer counts over the schema's universe."""
