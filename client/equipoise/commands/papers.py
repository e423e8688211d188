"""Files that people bring to a verification."""

from __future__ import annotations

from pathlib import Path

from equipoise.errors import InvalidArgument, VerificationFailed
from equipoise.profile.profile import read_file
from equipoise.verification.log_history import Held


def held(file: Path) -> Held:
    """The checkpoint in a file, a signed note or a bundle. Raises `InvalidArgument` naming the file."""
    try:
        return Held.from_file(read_file(file))
    except VerificationFailed as error:
        raise InvalidArgument(str(file), error.message) from None
