"""Old questions asked again of a server that dies all the time: the answers must be the old ones."""

from __future__ import annotations

import random
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.crash.callers import ANALYSTS, analyst, operator
from harness.crash.dying_server import Persisting, Server
from harness.crash.promises import Promises

LATEST = 200  # questions that are asked again: a server remembers the newest `MAX_REQUESTS` of each caller


@dataclass
class Again:
    """Reads results again, and asks old questions again, as long as there are rounds."""

    server: Server
    profiles: Path
    promises: Promises
    random: random.Random
    names: Sequence[str] = ANALYSTS  # whoever has results
    asked: int = 0
    pulse: float = 0.0  # seconds to wait between questions, at most, beside a tenth of one

    def go_on(self, stopping: threading.Event) -> None:
        """The same question has the same answer, whatever has happened since."""
        callers: dict[str, Persisting[Any]] = {
            "operator": operator(self.server),
            **{name: analyst(self.server, self.profiles, name) for name in self.names},
        }
        while not stopping.wait(0.1 + self.pulse * self.random.random()):
            if self.promises.answers:
                old = self.random.choice(self.promises.answers[-LATEST:])
                assert callers[old.caller].ask(old.question) == old.answer
                self.asked += 1
            with self.promises.lock:
                read = list(self.promises.streams)
            if read:
                round_id, name = self.random.choice(read)
                self.promises.read(round_id, name, callers[name].ask(lambda it, of=round_id: list(it.stream(of))))  # type: ignore[misc]
        for caller in callers.values():
            caller.close()
