"""What all tables share: one catalogue, the names of constraints, and how rows are numbered."""

from __future__ import annotations

from sqlalchemy import BigInteger, Dialect, Integer, MetaData, Text, TypeDecorator

metadata = MetaData(
    naming_convention={
        "pk": "pk_%(table_name)s",
        "fk": "fk_%(table_name)s_%(column_0_name)s",
        "ix": "ix_%(table_name)s_%(column_0_name)s",
        "uq": "uq_%(table_name)s_%(column_0_name)s",
        "ck": "ck_%(table_name)s_%(constraint_name)s",
    }
)

# SQLite numbers rows by itself only in a column declared INTEGER.
Position = BigInteger().with_variant(Integer(), "sqlite")


class AnyInteger(TypeDecorator[int]):
    """Whole numbers of any size, stored as their decimal digits: databases have none beyond 64 bits."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: int | None, dialect: Dialect) -> str | None:  # noqa: ARG002
        return None if value is None else str(value)

    def process_result_value(self, value: str | None, dialect: Dialect) -> int | None:  # noqa: ARG002
        return None if value is None else int(value)
