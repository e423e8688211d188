"""What a test has to know of a server, and nobody may see: put in place by the test's own program only."""

from __future__ import annotations

from pathlib import Path

from equipoise.accounting import Offer
from equipoise.queries.workload_compiler import CompiledStatement
from equipoise_server.sessions.pending_statements import AnalystProgress, PendingStatement
from equipoise_server.sessions.session_loop import SessionLoop

ACCEPTED = "accepted"

accepted = SessionLoop._accept


def tell_what_is_accepted(state: Path) -> None:
    """Whose statements wait for their turn: the clock must not move before they do."""

    def told(
        self: SessionLoop,
        progress: AnalystProgress,
        sequence: int,
        statement: bytes,
        compiled: CompiledStatement,
        offer: Offer,
    ) -> PendingStatement:
        waits = accepted(self, progress, sequence, statement, compiled, offer)
        with (state / ACCEPTED).open("a") as file:
            file.write(f"{progress.share.analyst}\n")
        return waits

    SessionLoop._accept = told  # type: ignore[method-assign]
