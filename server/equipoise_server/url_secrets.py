"""Finds secrets in the URLs of databases, where lists of processes, backups and messages would show them."""

from __future__ import annotations

import re
from urllib.parse import unquote_plus

# Wherever it stands: also where no driver looks for it, it would be kept and shown. Names of files may stand there.
_SECRET = re.compile(
    r"(password|passwd|pwd|passcode|secret|token|private_key|credentials_(base64|info)|scram_\w+_key)\s*=",
    re.IGNORECASE,
)


def holds_secret(url: str) -> bool:
    """Return whether an option of a database's URL is a password or another secret, however it is written."""
    return _SECRET.search(unquote_plus(url)) is not None
