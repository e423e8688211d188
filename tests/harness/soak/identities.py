"""Analysts who come and go: enrolled, renewed, revoked and deleted, while everybody else goes on."""

from __future__ import annotations

import random
import shutil
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from harness.crash.callers import admit, analyst, operator
from harness.crash.dying_server import Persisting, Server
from harness.crash.promises import Promises

from equipoise.clients.analyst import Client
from equipoise.clients.operator import Operator
from equipoise.errors import NotAuthenticated, WrongState
from equipoise.profile.enrolment import begin, install
from equipoise.queries.predicates import attribute
from equipoise.queries.statements import Statement

STATEMENT = attribute("colour") == "red"
PROMISED_SECONDS = 60  # until the open calls of a revoked identity have ended
PAUSE_SECONDS = 1.0  # between two statements of a revoked identity


@dataclass
class ComingsAndGoings:
    """An operator who lets guests in and sends them away, and revokes and renews `name`, who asks in sessions.

    `pulse`: the seconds between two of them, at most.
    """

    server: Server
    profiles: Path
    promises: Promises
    random: random.Random
    name: str
    pulse: float = 1.0
    revoked: int = 0
    _guests: int = 0
    _operator: Persisting[Operator] = field(init=False)

    def __post_init__(self) -> None:
        self._operator = operator(self.server)

    def go_on(self, stopping: threading.Event) -> None:
        """One identity after the other."""
        while not stopping.wait(self.pulse * self.random.random()):
            self._guest()
            if self.promises.sessions:
                self._asking()
        self._operator.close()

    def _guest(self) -> None:
        """One who is admitted, renewed, revoked and, now and then, renewed again; at last deleted."""
        self._guests += 1
        name = f"guest-{self._guests}"
        admit(self.server, self.profiles, (name,))
        self._let_in(name)
        if self.random.random() < 0.5:
            self._renew(name)
            self._let_in(name)
        self._revoke(name)
        self._refused(name)
        if self.random.random() < 0.5:
            self._renew(name)
            self._let_in(name)
        request = f"delete {name}"
        self._operator.ask(lambda it: it.delete_analyst(name, request))
        self._refused(name)
        shutil.rmtree(self.profiles / name)

    def _asking(self) -> None:
        """Revoked in the middle of a session: the stream ends; renewed, the answers are those of before."""
        session_id = [each for each in list(self.promises.states) if each in self.promises.sessions][-1]
        caller = analyst(self.server, self.profiles, self.name)
        revocations = self.revoked

        def statements() -> Iterator[Statement]:
            yield from (STATEMENT, STATEMENT)
            self._revoke(self.name)
            self._refused(self.name)
            ending = time.monotonic() + PROMISED_SECONDS
            while True:
                assert time.monotonic() < ending, "a revoked identity was answered for longer than a minute"
                yield STATEMENT
                time.sleep(PAUSE_SECONDS)

        def ask(it: Client) -> None:
            for answer in it.ask(session_id, statements(), window=1, accept_unprotected=True):
                self.promises.answered(session_id, self.name, answer.sequence, answer.receipt)

        try:
            with pytest.raises((NotAuthenticated, WrongState)):  # the latter where the session is over before
                caller.ask(ask)
        finally:
            caller.close()
        if self.revoked > revocations:
            self._refused(self.name)
            self._renew(self.name)
        self._let_in(self.name)

    def _let_in(self, name: str) -> None:
        caller = analyst(self.server, self.profiles, name)
        assert caller.ask(lambda it: it.identity()).name == name
        caller.close()

    def _refused(self, name: str) -> None:
        caller = analyst(self.server, self.profiles, name)
        with pytest.raises(NotAuthenticated):
            caller.ask(lambda it: it.identity())
        caller.close()

    def _renew(self, name: str) -> None:
        signing_request = begin(self.profiles / name)
        install(self.profiles / name, self._operator.ask(lambda it: it.renew_analyst(name, signing_request)))

    def _revoke(self, name: str) -> None:
        self.revoked += 1
        request = f"revoke {name} {self.revoked}"
        self._operator.ask(lambda it: it.revoke_analyst(name, request))
