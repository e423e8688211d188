"""The SQL of what was submitted, kept in the profile beside the receipt, with what was understood of it.

A receipt commits to statements, and to what was understood: the comments with which the file begins, up to its
first empty line. The file bears the beginning of the statements' commitment in its name, so that it is never taken
for the SQL of another workload. It is the analyst's own memory: the custodian sees statements and commitments only.
"""

from __future__ import annotations

from pathlib import Path

from equipoise.profile.receipt_store import ReceiptStore, read_receipt, write_whole

SQL = "sql"
_HASH_DIGITS = 16


def keep_sql(directory: Path, round_id: str, understood: str, text: str) -> None:
    """Keeps the SQL of the workload that the newest receipt of a round is for.

    Args:
        directory: the profile's.
        round_id: the round.
        understood: what was understood, as comments, a line each.
        text: the SQL as it was typed.

    Raises:
        InvalidArgument: the file cannot be written.
    """
    path = _path(directory, round_id)
    if path is not None:
        write_whole(path, f"{understood}\n{text}".encode())


def kept_sql(directory: Path, round_id: str) -> Path | None:
    """Returns the file with the SQL of the workload that the newest receipt of a round is for; None for none.

    Args:
        directory: the profile's.
        round_id: the round.

    Raises:
        InvalidArgument: the receipt cannot be read.
    """
    path = _path(directory, round_id)
    return path if path is not None and path.exists() else None


def _path(directory: Path, round_id: str) -> Path | None:
    envelope = ReceiptStore(directory).receipt(round_id)
    commitment = None if envelope is None else read_receipt(envelope).commitment
    return None if commitment is None else directory / SQL / f"{round_id}.{commitment.hex()[:_HASH_DIGITS]}.sql"
