"""SQL where its parser is installed; what to install where it is not."""

from __future__ import annotations

from equipoise.errors import InvalidArgument
from equipoise.queries.schema import Schema
from equipoise.questions.questions import Questions

PARSER = "sqlglot"


def questions_of(text: str, schema: Schema, table: str = "") -> Questions:
    """Returns the questions of a text.

    Args:
        text: one SELECT or several, parted by `;`.
        schema: of the table.
        table: what FROM must name; anything, where it is empty.

    Raises:
        InvalidArgument: what cannot be asked, or sqlglot is not installed.
    """
    try:
        from equipoise.questions.sql import questions_from_sql  # noqa: PLC0415 - optional
    except ModuleNotFoundError:
        raise InvalidArgument(PARSER, "is not installed; run: pip install 'equipoise[sql]'") from None
    return Questions(questions_from_sql(text, schema, table), text)
