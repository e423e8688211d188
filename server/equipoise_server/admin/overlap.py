"""Until when two authorities are honoured together, where whoever exchanged them has stated an end.

The time stands in a file beside the authority. A server that runs, or starts, retires the old authority then.
"""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from equipoise.errors import InvalidArgument
from equipoise_server.identity.keyfiles import find_private, write_private
from equipoise_server.storage.durable import sync_directory

END_FILE = "ca/overlap-end"
_FORMAT = "%Y-%m-%dT%H:%M:%SZ"


def state_end(state: Path, end: datetime, now: datetime) -> None:
    """Keep until when the old authority is honoured, durably, in the place of what was stated before.

    Args:
        state: the state directory.
        end: the time, aware; full seconds count.
        now: the time.

    Raises:
        InvalidArgument: the end has passed.
    """
    if end <= now:
        raise InvalidArgument("until", "must be in the future; to end the old authority now, run: ca retire")
    # A server that runs reads the file every few seconds, so it never sees a half of it.
    prepared = state / f"{END_FILE}.next"
    prepared.unlink(missing_ok=True)  # of an exchange that was cut off
    write_private(prepared, f"{end.astimezone(UTC):{_FORMAT}}\n".encode())
    prepared.replace(state / END_FILE)
    sync_directory(prepared.parent)


def stated_end(state: Path) -> datetime | None:
    """Return until when the old authority is honoured; None where no end was stated. Raises `InvalidArgument`.

    Args:
        state: the state directory.
    """
    path = state / END_FILE
    content = find_private(path)  # one step: another process may retire the authority just now
    if content is None:
        return None
    try:
        return datetime.strptime(content.decode("ascii", "replace").strip(), _FORMAT).replace(tzinfo=UTC)
    except ValueError:
        raise InvalidArgument(str(path), "does not hold a time such as 2030-01-31T18:00:00Z") from None


def forget_end(state: Path) -> None:
    """Remove what was stated.

    Args:
        state: the state directory.
    """
    (state / END_FILE).unlink(missing_ok=True)
