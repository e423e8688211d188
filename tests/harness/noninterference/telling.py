"""What a test has to know of a server, and nobody may see: put in place by the test's own program only."""

from __future__ import annotations

from pathlib import Path

from equipoise_server.sessions.open_session import Question
from equipoise_server.sessions.pending_statements import AnalystProgress, PendingStatement
from equipoise_server.sessions.session_loop import SessionLoop

ACCEPTED = "accepted"

accepted = SessionLoop._accept


def tell_what_is_accepted(state: Path) -> None:
    """Whose statements wait for their turn: the clock must not move before they do."""

    def told(
        self: SessionLoop, progress: AnalystProgress, sequence: int, statement: bytes, question: Question
    ) -> PendingStatement:
        waits = accepted(self, progress, sequence, statement, question)
        with (state / ACCEPTED).open("a") as file:
            file.write(f"{progress.share.analyst}\n")
        return waits

    SessionLoop._accept = told  # type: ignore[method-assign]
