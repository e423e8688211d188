"""Tables in files, read through DuckDB."""
