"""A Spark session, and one table of it as SQLAlchemy knows tables. Runs in a process of its own (`reader`)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession, types
from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Date,
    DateTime,
    Double,
    Integer,
    MetaData,
    Numeric,
    Select,
    Table,
    Text,
)
from sqlalchemy.types import TypeEngine, UserDefinedType

from equipoise.errors import InvalidArgument
from equipoise_server.datasets.spark.description import SNAPSHOTS
from equipoise_server.datasets.spark.dialect import SparkDialect
from equipoise_server.datasets.spark.messages import Place

VIEW = "equipoise_table"
SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.session.timeZone": "UTC",  # a time without an offset is one in UTC
    "spark.sql.caseSensitive": "true",
    "spark.log.level": "OFF",  # messages of failed tasks quote values
}
LOOPBACK = {"spark.driver.bindAddress": "127.0.0.1", "spark.driver.host": "127.0.0.1"}
GONE = ("PATH_NOT_FOUND", "TABLE_OR_VIEW_NOT_FOUND", "SCHEMA_NOT_FOUND", "UNABLE_TO_INFER_SCHEMA")
NO_JAVA = "JAVA_GATEWAY_EXITED"


@contextmanager
def told() -> Iterator[None]:
    """Turn Spark's errors into ours. Its messages may quote values: only the names of conditions are told."""
    try:
        yield
    except PySparkException as error:
        condition = error.getCondition() or type(error).__name__
        if condition.startswith(GONE):
            raise InvalidArgument("table", f"Spark finds no such table ({condition})") from None
        if condition == NO_JAVA:
            problem = "Spark did not start: it needs Java 17 or later, and settings that it accepts"
            raise InvalidArgument("table", problem) from None
        raise InvalidArgument("table", f"cannot be read by Spark ({condition})") from None
    except Py4JError as error:
        java = getattr(error, "java_exception", None)
        kind = type(error).__name__ if java is None else java.getClass().getSimpleName()
        raise InvalidArgument("table", f"cannot be read by Spark ({kind})") from None


def start(place: Place) -> SparkSession:
    """Start Spark, or connect to its cluster."""
    builder = SparkSession.builder.appName("equipoise").master(place.master)
    local = LOOPBACK if place.master.startswith("local") else {}
    for name, value in {**SETTINGS, **local}.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def open_table(session: SparkSession, place: Place) -> Table:
    """Make the table known under one name, and return it with its columns."""
    frame = _frame(session, place)
    frame.createOrReplaceTempView(VIEW)
    return Table(VIEW, MetaData(), *(Column(field.name, _type(field.dataType)) for field in frame.schema.fields))


def asked(session: SparkSession, statement: Select[*tuple[Any, ...]]) -> DataFrame:
    """Return what a statement selects; nothing is read yet. Values are bound, and never part of the text."""
    compiled = statement.compile(dialect=SparkDialect(), compile_kwargs={"render_postcompile": True})
    values: Sequence[object] = [compiled.params[name] for name in compiled.positiontup or ()]
    return session.sql(str(compiled), args=list(values))


def _frame(session: SparkSession, place: Place) -> DataFrame:
    if place.path is None:
        return session.read.table(place.table or "")
    reader = session.read.format(place.format)
    if place.snapshot is not None:
        reader = reader.option(SNAPSHOTS[place.format], place.snapshot)
    return reader.load(place.path)


class OtherType(UserDefinedType[object]):
    """A type that SQLAlchemy has no like of, such as an array; its values can be labels, as text, and no ids."""

    def __init__(self, name: str) -> None:
        self.name = name

    def get_col_spec(self, **_: object) -> str:
        return self.name


def _type(of: types.DataType) -> TypeEngine[Any]:
    """Return SQLAlchemy's type."""
    kinds: tuple[tuple[type[types.DataType] | tuple[type[types.DataType], ...], TypeEngine[Any]], ...] = (
        (types.StringType, Text()),
        (types.LongType, BigInteger()),
        ((types.ByteType, types.ShortType, types.IntegerType), Integer()),
        ((types.FloatType, types.DoubleType), Double()),
        (types.DecimalType, Numeric()),
        (types.BooleanType, Boolean()),
        (types.DateType, Date()),
        ((types.TimestampType, types.TimestampNTZType), DateTime(timezone=True)),
    )
    return next((known for kind, known in kinds if isinstance(of, kind)), OtherType(of.simpleString()))
