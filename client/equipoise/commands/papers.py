"""Files that people bring to a verification."""

from __future__ import annotations

from pathlib import Path

from equipoise.errors import InvalidArgument, VerificationFailed
from equipoise.profile.profile import read_file
from equipoise.verification.log_history import EarlierCheckpoint


def held(file: Path) -> EarlierCheckpoint:
    """The checkpoint in a file, a signed note or a bundle. Raises `InvalidArgument` naming the file."""
    try:
        return EarlierCheckpoint.from_file(read_file(file))
    except VerificationFailed as error:
        raise InvalidArgument(str(file), error.message) from None
