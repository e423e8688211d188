"""Text files that people write."""

from __future__ import annotations

from pathlib import Path

from equipoise.errors import InvalidArgument


def read_text(path: Path) -> str:
    """Return the text of a file, also of one with a byte order mark. Raises `InvalidArgument` naming it."""
    try:
        return path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise InvalidArgument(str(path), f"cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise InvalidArgument(str(path), "is not UTF-8 text") from None
