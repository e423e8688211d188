"""Sessions one after the other: analysts attach, ask, hang up in the middle, and attach again."""

from __future__ import annotations

import itertools
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from harness.answers import flat
from harness.crash.callers import ANALYSTS
from harness.crash.clients import ANALYST_BUDGET, DATA_BUDGET, WORKLOADS, Table
from harness.dangers import SMALL_TABLE

from equipoise.clients.analyst import Client
from equipoise.clients.statement_answer import StatementAnswer
from equipoise.errors import WrongState
from equipoise.model.results import Answers
from equipoise.model.rounds import Ending, RoundState, SessionTerms, Share, Terms
from equipoise.queries.statements import Statement

STATEMENTS = tuple(itertools.chain(*WORKLOADS))
ASKED = 6  # statements of an analyst's share
MAX_CELLS = 8
TURNS, TURN_SECONDS = 10, 1
FEW_UPDATES = 3  # of some sessions at once, which come to their ending
GUEST_ASKS = 100  # statements of a share of one query each
HANGS_UP = 0.3  # after an answer, so often


@dataclass
class SessionTable(Table):
    """One dataset whose rounds are sessions. `others` have shares of their own, with single queries only.

    `unit`: of sessions that answer at once; those by turns protect single statements. Analysts are away for up to
    `pulse` seconds before they attach again, and for none once it is `stopping`.
    """

    stopping: threading.Event = field(default_factory=threading.Event)
    pulse: float = 0.0
    asked: int = 0  # statements, by analysts of its own
    _answers: dict[tuple[str, str], dict[int, StatementAnswer]] = field(default_factory=dict)

    def play(self) -> None:
        """One session, from its opening to its end."""
        by_turns = self.random.random() < 0.4
        end = self.random.choice(("release", "release", "release", "abort", "abort sealed"))
        self._answers.clear()
        session_id = self._open(by_turns)
        asked = {name: self.random.choices(STATEMENTS, k=self.random.randint(0, ASKED)) for name in ANALYSTS}
        with ThreadPoolExecutor(len(ANALYSTS)) as pool:
            list(pool.map(lambda name: self._ask(session_id, name, asked[name]), ANALYSTS))
        if by_turns:
            self._wait(session_id, lambda detail: detail.round.state is RoundState.RELEASED)
        elif end == "abort":
            return self._abort(session_id)
        else:
            self._take(session_id, lambda it, request: it.close_session(session_id, request))
            if end == "abort sealed":
                return self._abort(session_id)
            self._take(session_id, lambda it, request: it.run(session_id, request))
            self._wait(session_id, lambda detail: detail.progress.complete)
            self._take(session_id, lambda it, request: it.release(session_id, request))
        self.rounds += 1
        for name in ANALYSTS:
            self._compare(session_id, name)
        return None

    def _terms(self, by_itself: bool) -> Terms:
        """A session by turns ends by itself; any other may stop once its updates are used up."""
        shares = (
            *(Share(name, ASKED, ASKED * MAX_CELLS) for name in ANALYSTS),
            *(Share(name, GUEST_ASKS, GUEST_ASKS) for name in self.others),
        )
        if by_itself:
            return Terms(
                self.name,
                shares,
                DATA_BUDGET,
                ANALYST_BUDGET,
                mechanism="online_private",
                session=SessionTerms(TURNS, TURN_SECONDS),
                accepted=SMALL_TABLE,
            )
        return Terms(
            self.name,
            shares,
            DATA_BUDGET,
            None,
            self.unit,
            mechanism="online",
            options=self.random.choice(({}, {"updates": FEW_UPDATES})),
            session=SessionTerms(ending=self.random.choice(tuple(Ending))),
            accepted=SMALL_TABLE,
        )

    def _ask(self, session_id: str, name: str, statements: list[Statement]) -> None:
        """Everything, in as many visits as it takes; what was answered before must be answered the same."""
        caller, over = self.analysts[name], False
        while not over:
            over = caller.ask(lambda it: self._visit(it, session_id, name, statements))
            if self.random.random() < HANGS_UP:
                caller.close()
            self.stopping.wait(self.pulse * self.random.random())

    def _visit(self, it: Client, session_id: str, name: str, statements: list[Statement]) -> bool:
        """Asks from the first statement on; whether nothing is left to ask."""
        known = self._answers.setdefault((session_id, name), {})
        window = self.random.choice((1, 3))
        try:
            for answer in it.ask(session_id, statements, window=window, accept_unprotected=True):
                self.promises.answered(session_id, name, answer.sequence, answer.receipt)
                self.asked += answer.sequence not in known
                known[answer.sequence] = answer
                if answer.sequence < len(statements) and self.random.random() < HANGS_UP:
                    return False
        except WrongState:  # the last turn is over, or the updates are used up
            pass
        return True

    def _compare(self, session_id: str, name: str) -> None:
        """What was released is what was answered, and the analyst can prove it."""
        self._read(session_id, name)
        answers = [answer.results for _, answer in sorted(self._answers[session_id, name].items())]
        if not answers:
            return
        released = self.analysts[name].ask(lambda it: it.results(session_id))
        self.promises.read(session_id, name, self.analysts[name].ask(lambda it: list(it.stream(session_id))))
        told = Answers.join(each.answers for each in answers)
        assert flat(released.answers[: len(told)]) == flat(told), (session_id, name)
