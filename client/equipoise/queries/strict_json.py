"""Reads JSON that people write: every key once, and only the numbers that JSON has."""

from __future__ import annotations

import json
from typing import Any

from equipoise.errors import InvalidArgument


def parse_json(text: str, field: str) -> Any:
    """Reads a JSON document.

    Args:
        text: The document.
        field: What an error names: a file, an option or a field.

    Returns:
        What the document says, as `json.loads` returns it.

    Raises:
        InvalidArgument: The text is not JSON, an object has a key twice, or it holds NaN or Infinity.
    """

    def refuse(constant: str) -> float:
        line = next(i for i, each in enumerate(text.splitlines(), start=1) if constant in each)
        raise InvalidArgument(field, f"holds {constant}, which is not JSON, in line {line:,}")

    def read_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        content = dict(pairs)
        if len(content) < len(pairs):
            keys = [key for key, _ in pairs]
            twice = next(key for i, key in enumerate(keys) if key in keys[:i])
            raise InvalidArgument(field, f"has the key {twice!r} twice in one object")
        return content

    try:
        return json.loads(text, parse_constant=refuse, object_pairs_hook=read_once)
    except (ValueError, RecursionError) as error:
        raise InvalidArgument(field, f"is not JSON: {error}") from None
