"""The SQL of tables that other engines count, as SQLAlchemy writes it in their dialects."""
