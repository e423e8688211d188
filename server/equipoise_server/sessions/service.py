"""All that can be done with sessions, for whoever serves them. Synchronous and thread-safe."""

from __future__ import annotations

from concurrent.futures import Future

from equipoise.errors import NotServed
from equipoise_server.rounds.records import RoundRecord, Terms
from equipoise_server.rounds.service import RoundPage
from equipoise_server.sessions.records import AnsweredRecord

NOT_YET = "sessions are not served by this version"


class Attachment:
    """One analyst's stream in one session. `salt` is the one in force; `answered` counts its answers so far.

    `open`: statements were still taken when it was attached. `ended` ends when that is over: with None where the
    session is closed, with an error where the stream was attached elsewhere or the session cannot go on.
    """

    answered: int
    salt: bytes
    open: bool
    ended: Future[None]

    def stored(self, after: int, limit: int) -> list[AnsweredRecord]:
        """At most `limit` answers after a sequence number, in order, as they are stored."""
        raise NotServed(NOT_YET)

    def ask(self, sequence: int, statement: bytes) -> Future[AnsweredRecord]:
        """Ask a statement, after checking it; the future ends when the answer is stored and due.

        Raises `InvalidArgument` naming `statement...`, `BudgetExhausted` beyond the share, `WrongState` where
        nothing is taken any more, `AlreadyExists` where this sequence number has another statement, `OutOfRange`
        beyond the next one.
        """
        raise NotServed(NOT_YET)

    def detach(self) -> None:
        """Let go of the stream. What was not being answered yet is forgotten. Does not block."""


class Sessions:
    """The service. `caller` is the operator's name: a `request_id` belongs to one caller."""

    def open(self, terms: Terms, request_id: str, caller: str = "") -> RoundRecord:
        """Open a session, and charge both budgets. Raises as `Rounds.open` does."""
        raise NotServed(NOT_YET)

    def close(self, session_id: str, request_id: str, caller: str = "") -> RoundRecord:
        """Seal a session: no more statements are answered. Raises as `Rounds.seal` does; `NotFound` for a round."""
        raise NotServed(NOT_YET)

    def list_for_analyst(self, analyst: str, page_size: int = 0, page_token: str = "") -> RoundPage:
        """The sessions in which the analyst has a share, newest first."""
        raise NotServed(NOT_YET)

    def attach(
        self, analyst: str, session_id: str, after_sequence: int, salt: bytes, accept_unprotected: bool
    ) -> Attachment:
        """Attach a stream of the analyst's; an earlier one of the same session ends.

        Raises `NotFound` without a share, `InvalidArgument` for a malformed salt, `WrongState` where the session
        protects no analysts and that is not accepted, `OutOfRange` beyond the answers that there are,
        `Unavailable` where another server answers the session.
        """
        raise NotServed(NOT_YET)

    def look_after(self) -> None:
        """Start and end workers as the store says: called every second or so."""

    def stop(self) -> None:
        """End every worker. Sessions stay as they are in the store."""
