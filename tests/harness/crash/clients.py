"""An operator and its analysts who go through one round after the other on a server that dies all the time."""

from __future__ import annotations

import hashlib
import itertools
import random
import re
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

from harness.crash.callers import ANALYSTS, analyst, operator
from harness.crash.dying_server import Answer, Server
from harness.crash.evidence import verify_part
from harness.crash.promises import Answered, Promises
from harness.dangers import LARGE_CAPS, SMALL_TABLE

from equipoise.clients.analyst import Client
from equipoise.clients.operator import Operator
from equipoise.errors import BudgetExhausted, InvalidArgument, WrongState
from equipoise.model.accounts import Budget
from equipoise.model.rounds import Round, RoundDetail, RoundState, Share, Terms
from equipoise.model.submissions import Receipt
from equipoise.queries.predicates import attribute
from equipoise.queries.schema import Attribute, Schema
from equipoise.queries.statements import Marginal, Statement
from equipoise.wire.workloads import workload_to_bytes

SCHEMA = Schema((Attribute("colour", ("red", "green")), Attribute("size", ("s", "m", "l", "xl"))))
WORKLOADS: tuple[list[Statement], ...] = (
    [attribute("colour") == "red"],
    [Marginal(("size",))],
    [attribute("size") == "xl", Marginal(("colour", "size"))],
)
EACH = 3, 12  # statements and queries of a share
SHARES = tuple(Share(name, *EACH) for name in ANALYSTS)
DATA_BUDGET, ANALYST_BUDGET = Budget(8.0, 1e-4), Budget(8.0, 1e-4)
CAP_STEP, CAP_DELTA = 20.0, 1e-3  # an account is full after a few rounds, and gets so much more
OPTIONS = {"rounds": 2}
OPEN_SECONDS = 3  # of rounds that close by themselves

Workloads = Sequence[list[Statement] | None]


@dataclass
class Table:
    """One dataset, its operator and its analysts; the rounds on it come one after the other.

    `others` have a share in every round, too; what they do with it is not this table's business.
    """

    name: str
    unit: str
    server: Server
    profiles: Path
    promises: Promises
    random: random.Random
    others: Sequence[str] = ()
    rounds: int = 0
    _numbers: Iterator[int] = field(default_factory=itertools.count)

    def __post_init__(self) -> None:
        self.operator = operator(self.server)
        self.analysts = {name: analyst(self.server, self.profiles, name) for name in ANALYSTS}

    def register(self) -> None:
        """Before the first round."""
        # No other dataset has these rows.
        choice = self.random.choice
        rows = [f"{choice(('red', 'green'))},{choice(('s', 'm', 'l', 'xl'))}" for _ in range(400)]
        source = f"{self.name}.csv"
        (self.server.state / "data" / source).write_text("\n".join(["colour,size", *rows]) + "\n")
        cap, request = Budget(CAP_STEP, CAP_DELTA), self._request()
        with self.promises.asking(("cap", f"data/{self.name}"), cap.epsilon):
            self._told(
                lambda it: it.register_dataset(
                    self.name, source, SCHEMA, cap, cap, request, people="new", accepted=LARGE_CAPS
                )
            )

    def play(self) -> None:
        """One round, from its opening to its end."""
        by_itself = self.random.random() < 0.25
        end = self.random.choice(("release", "release", "release", "release", "abort sealed", "abort running"))
        workloads = {
            name: [*self.random.choices([*WORKLOADS, None], k=2), self.random.choice(WORKLOADS)]
            for name in ANALYSTS
        }
        round_id = self._open(by_itself)
        with ThreadPoolExecutor(len(ANALYSTS)) as pool:
            list(pool.map(lambda name: self._submit(round_id, name, workloads[name], by_itself), ANALYSTS))
        if by_itself:
            self._wait(round_id, lambda detail: detail.round.state is RoundState.RELEASED)
        else:
            self._take(round_id, lambda it, request: it.seal(round_id, request))
            if end == "abort sealed":
                return self._abort(round_id)
            self._take(round_id, lambda it, request: it.run(round_id, request))
            if end == "abort running":
                return self._abort(round_id)
            self._wait(round_id, lambda detail: detail.progress.complete)
            self._take(round_id, lambda it, request: it.release(round_id, request))
        self.rounds += 1
        with ThreadPoolExecutor(len(ANALYSTS)) as pool:
            list(pool.map(lambda name: self._read(round_id, name), ANALYSTS))
        return None

    def close(self) -> None:
        """End all connections."""
        self.operator.close()
        for caller in self.analysts.values():
            caller.close()

    def _request(self) -> str:
        return f"{self.name} {next(self._numbers)}"

    def _told(self, question: Callable[[Operator], Answer]) -> Answer:
        """What the operator is told; the same question will be asked again at other times."""
        answer = self.operator.ask(question)
        self.promises.answers.append(Answered("operator", question, answer))
        return answer

    def _terms(self, by_itself: bool) -> Terms:
        """What the next round is to be."""
        return Terms(
            self.name,
            (*SHARES, *(Share(name, *EACH) for name in self.others)),
            DATA_BUDGET,
            ANALYST_BUDGET,
            self.unit,
            mechanism="equilibrium",
            options=OPTIONS,
            close_time=datetime.now(UTC) + timedelta(seconds=OPEN_SECONDS) if by_itself else None,
            accepted=SMALL_TABLE,
        )

    def _open(self, by_itself: bool) -> str:
        while True:
            terms = self._terms(by_itself)
            request = self._request()
            with self.promises.lock:
                self.promises.opens += 1
            try:
                round_id = self._told(partial(_open_round, terms=terms, request=request)).id
            except BudgetExhausted as error:
                self._raise_cap(error)
            except InvalidArgument as error:
                # The server was away for too long.
                if not (by_itself and error.field.endswith("close_time")):
                    raise
            else:
                if terms.session is not None:
                    with self.promises.lock:
                        self.promises.sessions.add(round_id)
                self.promises.reached(round_id, RoundState.OPEN)
                return round_id

    def _raise_cap(self, error: BudgetExhausted) -> None:
        found = re.search(r"account (\S+):", error.message)
        assert found is not None, error
        account, request = found[1], self._request()
        held = self.promises.facts.setdefault(("cap", account), (CAP_STEP,))[0]
        assert isinstance(held, float)
        cap = Budget(held + CAP_STEP, CAP_DELTA)
        with self.promises.asking(("cap", account), cap.epsilon):
            self.operator.ask(lambda it: it.set_cap(account, cap, request, LARGE_CAPS))

    def _submit(self, round_id: str, name: str, workloads: Workloads, by_itself: bool) -> None:
        """One workload after the other, None takes it back; the last one before the closing time stays."""
        caller, fact = self.analysts[name], ("workload", round_id, name)
        for workload in workloads:
            request = self._request()
            try:
                if workload is not None:
                    digest = hashlib.sha256(workload_to_bytes(workload)).digest()

                    def submit(it: Client, workload: list[Statement] = workload, request: str = request) -> Receipt:
                        return it.submit(round_id, workload, request)

                    with self.promises.asking(fact, digest):
                        receipt = caller.ask(submit)
                    assert receipt.workload_digest == digest
                    self.promises.answers.append(Answered(name, submit, receipt))
                elif self.promises.facts.get(fact, (None,)) != (None,):
                    with self.promises.asking(fact, None):
                        caller.ask(lambda it, request=request: it.withdraw(round_id, request))  # type: ignore[misc]
            except WrongState:
                if not by_itself:
                    raise
                return

    def _take(self, round_id: str, step: Callable[[Operator, str], RoundDetail]) -> None:
        request = self._request()
        shown = self._told(lambda it: step(it, request).round)
        self.promises.reached(round_id, shown.state)

    def _abort(self, round_id: str) -> None:
        with self.promises.lock:
            self.promises.may_abort.add(round_id)
        self._take(round_id, lambda it, request: it.abort(round_id, "a public reason", request))

    def _wait(self, round_id: str, done: Callable[[RoundDetail], bool]) -> None:
        start = time.monotonic()
        while not done(detail := self.operator.ask(lambda it: it.round(round_id))):
            assert not detail.progress.phase.startswith("failed"), detail
            assert self.server.patient(start), detail
            time.sleep(0.1)
        self.promises.reached(round_id, detail.round.state)

    def _read(self, round_id: str, name: str) -> None:
        caller = self.analysts[name]
        assert caller.ask(lambda it: it.wait(round_id)).state is RoundState.RELEASED
        if self.promises.facts.get(("workload", round_id, name), (None,)) != (None,):
            self.promises.read(round_id, name, caller.ask(lambda it: list(it.stream(round_id))))
        verify_part(caller, self.profiles / name, round_id)


def _open_round(it: Operator, terms: Terms, request: str) -> Round:
    opened = it.open(terms, request) if terms.session is None else it.open_session(terms, request)
    return opened.round
