"""The log: JSON lines on standard error."""

from __future__ import annotations

import io
import os
from contextlib import suppress
from typing import TextIO, cast

import structlog

STDERR = 2


def log_to_stderr(level: str) -> None:
    """Logs what is at least as severe as `level`, for the whole process."""
    structlog.configure(
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.JSONRenderer(),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        logger_factory=structlog.WriteLoggerFactory(cast("TextIO", _StandardError())),
    )


class _StandardError(io.TextIOBase):
    """Standard error, which no answer may depend on: what cannot be written, as where a disk is full, is dropped.

    Unbuffered, as what waits in a buffer would be written again, and fail again, at the end of the process.
    """

    def write(self, text: str) -> int:
        with suppress(OSError):
            os.write(STDERR, text.encode())
        return len(text)
