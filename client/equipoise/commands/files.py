"""Files of statements that commands read."""

from __future__ import annotations

from pathlib import Path

from equipoise.queries.priced_file import PricedStatements, priced_from_json
from equipoise.queries.statements import Statement
from equipoise.queries.statements_file import statements_from_json
from equipoise.queries.text_file import read_text


def read_statements(path: Path) -> tuple[Statement, ...]:
    """The statements of a file. Raises `InvalidArgument` naming the file or the statement."""
    return statements_from_json(read_text(path))


def read_priced(path: Path) -> PricedStatements:
    """The statements of a file for a grant, and what each may cost. Raises as `read_statements` does."""
    return priced_from_json(read_text(path))
