"""Files that commands read."""

from __future__ import annotations

from pathlib import Path

from equipoise.errors import InvalidArgument
from equipoise.queries.priced_file import PricedStatements, priced_from_json
from equipoise.queries.statements import Statement
from equipoise.queries.statements_file import statements_from_json


def read_statements(path: Path) -> tuple[Statement, ...]:
    """The statements of a file. Raises `InvalidArgument` naming the file or the statement."""
    return statements_from_json(read_text(path))


def read_priced(path: Path) -> PricedStatements:
    """The statements of a file for a grant, and what each may cost. Raises as `read_statements` does."""
    return priced_from_json(read_text(path))


def read_text(path: Path) -> str:
    """A text file, also one with a byte order mark. Raises `InvalidArgument` naming it."""
    try:
        return path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise InvalidArgument(str(path), f"cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise InvalidArgument(str(path), "is not UTF-8 text") from None
