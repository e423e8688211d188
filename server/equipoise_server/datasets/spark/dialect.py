"""SQLAlchemy's dialect of Spark SQL, as far as the statements of `datasets.sql` go.

Names are quoted with backticks, and values are parameters by position, which `SparkSession.sql` binds.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy.engine.default import DefaultDialect
from sqlalchemy.sql.compiler import GenericTypeCompiler, IdentifierPreparer


class SparkNames(IdentifierPreparer):
    """Quotes every name, so that none is taken for a keyword."""

    def __init__(self, dialect: DefaultDialect) -> None:
        super().__init__(dialect, initial_quote="`", escape_quote="`")

    def _requires_quotes(self, value: str) -> bool:  # noqa: ARG002
        return True


class SparkTypes(GenericTypeCompiler):
    """Names the types that values are cast to."""

    def visit_TEXT(self, type_: object, **_: Any) -> str:  # noqa: ARG002, N802
        return "STRING"


class SparkDialect(DefaultDialect):
    """Compiles statements; it has no driver."""

    name = "spark"
    preparer: type[IdentifierPreparer] = SparkNames
    type_compiler_cls = SparkTypes
    default_paramstyle = "qmark"
    supports_statement_cache = False
