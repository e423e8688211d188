"""The shares of a round or a session as operators type them."""

from __future__ import annotations

import re
from collections.abc import Sequence

from equipoise.errors import InvalidArgument
from equipoise.model.rounds import Share

SHARE = "ANALYST=STATEMENTS[/QUERIES[/SENSITIVITY[/SUPPORT[/WAYS]]]]"
_SHARE = re.compile(
    r"(?P<analyst>[^=]+)=(?P<statements>[0-9]{1,13})"
    r"(?:/(?P<queries>[0-9]{1,13})(?:/(?P<sensitivity>[0-9]{1,13})(?:/(?P<support>[0-9]{1,13})"
    r"(?:/(?P<ways>[0-9]{1,13}))?)?)?)?",
    re.ASCII,
)


def parse_shares(texts: Sequence[str], field: str = "--share") -> tuple[Share, ...]:
    """Return the shares that texts such as `SHARE` name. Raises `InvalidArgument`.

    Args:
        texts: one a share; queries that are left out are as many as the statements.
        field: what errors call them.
    """
    shares = []
    for text in texts:
        match = _SHARE.fullmatch(text)
        if match is None:
            raise InvalidArgument(field, f"{text!r} is not {SHARE}")
        queries = int(match["queries"] or match["statements"])
        declared = (int(match[name] or 0) for name in ("sensitivity", "support", "ways"))
        shares.append(Share(match["analyst"], int(match["statements"]), queries, *declared))
    return tuple(shares)
