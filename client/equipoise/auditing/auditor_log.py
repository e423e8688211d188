"""What an auditor remembers between audits, in its profile: none of it is secret, all of it is what a custodian
could otherwise deny.

    nonces/ROUND    32 bytes in hexadecimal: the auditor's part of a round's randomness
    reads/ROUND     a line for each time that a round's seed was asked for

`equipoise.profile.accepted_losses` keeps the losses that were accepted.

The newest checkpoint that an audit found in order is kept as `equipoise.profile.receipt_store` keeps an analyst's.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from equipoise.auditing.archive import AuditorLog
from equipoise.errors import AlreadyExists, InvalidArgument, NotFound, VerificationFailed, WrongState
from equipoise.profile.accepted_losses import accepted_losses
from equipoise.profile.profile import read_file, read_settings
from equipoise.profile.receipt_store import write_whole
from equipoise.records.canonical import from_hex
from equipoise.records.sealed_seeds import NONCE_BYTES

NONCES, READS = "nonces", "reads"
REFUSALS = (AlreadyExists, InvalidArgument, NotFound, WrongState)  # after which a nonce is certainly in no round
_ROUND = re.compile(r"[0-9a-f]{1,64}")


def own_acts(profile: Path) -> AuditorLog:
    """Returns what the auditor of this profile did. Raises `InvalidArgument` naming a file that is damaged."""
    _, name = read_settings(profile)
    nonces = {path.name: _nonce(path).hex() for path in _files(profile / NONCES)}
    reads = {path.name: len(read_file(path).splitlines()) for path in _files(profile / READS)}
    return AuditorLog(name, nonces, reads, accepted_losses(profile))


@contextmanager
def offered_nonce(profile: Path, round_id: str) -> Iterator[bytes]:
    """The nonce of a round: the one that was drawn before, or a fresh one, on disk before anybody gets it.

    A fresh one that is refused within the context is forgotten: it is in no round, and no audit may look for it.
    """
    path = _place(profile / NONCES, round_id)
    fresh = not path.exists()
    if fresh:
        write_whole(path, secrets.token_bytes(NONCE_BYTES).hex().encode() + b"\n")
    try:
        yield _nonce(path)
    except REFUSALS:
        if fresh:
            path.unlink()
        raise


def note_read(profile: Path, round_id: str, time: str) -> None:
    """Note in the auditor's profile that a seed was given to this auditor.

    Args:
        profile: the profile's directory.
        round_id: the round whose seed it is.
        time: when, in ISO 8601.

    Raises:
        InvalidArgument: `round_id` is not the identifier of a round.
    """
    path = _place(profile / READS, round_id)
    before = read_file(path) if path.exists() else b""
    write_whole(path, before + time.encode() + b"\n")


def _place(directory: Path, round_id: str) -> Path:
    if not _ROUND.fullmatch(round_id):
        raise InvalidArgument("round", "is not the identifier of a round")
    return directory / round_id


def _files(directory: Path) -> list[Path]:
    return sorted(path for path in directory.glob("*") if _ROUND.fullmatch(path.name))


def _nonce(path: Path) -> bytes:
    try:
        return from_hex(read_file(path).decode("ascii", "replace").strip(), NONCE_BYTES, "a nonce")
    except VerificationFailed as error:
        raise InvalidArgument(str(path), error.message) from None
