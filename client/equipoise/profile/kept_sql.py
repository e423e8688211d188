"""The SQL of what was asked, kept in the profile beside the receipts, with what was understood of it.

    sql/ROUND.COMMITMENT.sql      of the workload that was submitted to a round
    sql/SESSION.COMMITMENT.sql    of questions that were asked together in a session or of a grant, a file for each

Receipts commit to statements, and to what was understood: the comments with which a file begins, up to its first
empty line. A file bears the beginning of a commitment in its name: of a round that to the workload, so that it is
never taken for the SQL of another one, and of a session that to what was understood, so that there can be many. It
is the analyst's own memory: the custodian sees statements and commitments only.
"""

from __future__ import annotations

from pathlib import Path

from equipoise.profile.receipt_store import ReceiptStore, read_receipt, write_whole

SQL = "sql"
_HASH_DIGITS = 16


def keep_sql(directory: Path, round_id: str, content: str) -> None:
    """Keeps the SQL of the workload that the newest receipt of a round is for.

    Args:
        directory: the profile's.
        round_id: the round.
        content: what was understood, as comments, an empty line, and the SQL.

    Raises:
        InvalidArgument: the file cannot be written.
    """
    path = _path(directory, round_id)
    if path is not None:
        write_whole(path, content.encode())


def keep_session_sql(directory: Path, session_id: str, commitment: bytes, content: str) -> None:
    """Keeps the SQL of questions that were answered in a session, beside that of all others.

    Args:
        directory: the profile's.
        session_id: the session or grant.
        commitment: what the statements commit to what was understood by; 32 bytes.
        content: what was understood, as comments, an empty line, and the SQL.

    Raises:
        InvalidArgument: the file cannot be written.
    """
    path = directory / SQL / _name(session_id, commitment)
    if not path.exists():
        write_whole(path, content.encode())


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


def kept_session_sql(directory: Path, session_id: str) -> tuple[Path, ...]:
    """Returns the files with the SQL of what was answered in a session of which a receipt is kept.

    Args:
        directory: the profile's.
        session_id: the session or grant.

    Raises:
        InvalidArgument: the receipt cannot be read.
    """
    if ReceiptStore(directory).session_receipt(session_id) is None:
        return ()
    return tuple(sorted((directory / SQL).glob(f"{session_id}.*.sql")))


def _path(directory: Path, round_id: str) -> Path | None:
    envelope = ReceiptStore(directory).receipt(round_id)
    commitment = None if envelope is None else read_receipt(envelope).commitment
    return None if commitment is None else directory / SQL / _name(round_id, commitment)


def _name(round_id: str, commitment: bytes) -> str:
    return f"{round_id}.{commitment.hex()[:_HASH_DIGITS]}.sql"
