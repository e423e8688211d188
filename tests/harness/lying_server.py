"""A real server that tells one of `harness.lies`, and the commands that people type, each in its own process."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from equipoise.clients.operator import Operator
from equipoise.model.accounts import Budget
from equipoise.model.rounds import SessionTerms, Share, Terms
from equipoise.profile.profile import Profile
from equipoise.queries.schema import Attribute, Schema
from harness.dangers import SMALL_TABLE
from harness.preloaded import start
from harness.server_process import HURRIED, make_state, running

SCHEMA = Schema((Attribute("colour", ("red", "green")),))
CAP, BUDGET = Budget(20.0, 1e-3), Budget(8.0, 1e-4)
TERMS = Terms(
    "shop", (Share("ann", 2, 2), Share("bob", 2, 2)), BUDGET, BUDGET, mechanism="gaussian", accepted=SMALL_TABLE
)
# What a prior tells has the measurement's noise, so that every answer shows the session's randomness.
SESSION = Terms(
    "shop",
    (Share("ann", 2, 2), Share("bob", 2, 2)),
    BUDGET,
    None,
    mechanism="online",
    options={"prior": "own"},
    session=SessionTerms(),
    accepted=SMALL_TABLE,
)
STATEMENTS = {"version": 1, "statements": [{"among": {"attribute": "colour", "categories": ["red"]}}]}
SCRIPT = """
import asyncio, pathlib, sys
from equipoise_server.app import serve
from equipoise_server.transparency.seed_encryption import system_seeds
from harness import lies

if __name__ == "__main__":
    state, seeds = pathlib.Path(sys.argv[1]), lies.LIE() or system_seeds
    asyncio.run(serve(state, seeds=seeds, ready=lambda port: print(port, flush=True)))
"""


@dataclass(frozen=True)
class Outcome:
    """How a command ended: its exit code, and all that it printed, each run of white space as one space."""

    code: int
    text: str


@dataclass(frozen=True)
class Place:
    """A server's people. `directory` has the profiles of ann and bob, and the state directory."""

    directory: Path
    operator: Operator

    @property
    def state(self) -> Path:
        """The server's state directory."""
        return self.directory / "state"

    @property
    def statements(self) -> Path:
        """A statements file."""
        return self.directory / "statements.json"

    def profile(self, who: str) -> Path:
        """Somebody's profile."""
        return self.state / "profiles" / who if who == "auditor" else self.directory / who

    def run(self, who: str, *arguments: object) -> Outcome:
        """What `equipoise` says to somebody."""
        return command(self.directory, "equipoise.cli", *arguments, "--profile", self.profile(who))

    def held(self, *arguments: object) -> Outcome:
        """What `equipoise-server` says to the holder of the state directory."""
        return command(self.directory, "equipoise_server.cli", *arguments, "--state", self.state)

    def sealed(self, nonce: bool = False) -> str:
        """A sealed round of ann's, who has submitted by the command."""
        round_id = self.operator.open(TERMS).round.id
        if nonce:
            assert self.run("auditor", "audit", "nonce", round_id).code == 0
        submitted = self.run("ann", "submit", round_id, self.statements)
        assert submitted.code == 0, submitted.text
        self.operator.seal(round_id)
        return round_id

    def released(self, nonce: bool = False) -> str:
        """Such a round, released."""
        return self.finished(self.sealed(nonce))

    def finished(self, round_id: str) -> str:
        """A sealed round, computed and released, whose results can be read."""
        self.operator.run_to_completion(round_id)
        self.operator.release(round_id)
        assert self.run("ann", "wait", round_id).code == 0
        return round_id


def command(directory: Path, module: str, *arguments: object) -> Outcome:
    """How a program ends that is a process of its own."""
    with (directory / "printed").open("w+") as printed:
        source = f"import sys; sys.argv[0] = 'program'; from {module} import main; main()"
        with start(source, *arguments, stdout=subprocess.PIPE, stderr=printed, workers=False) as program:
            assert program.stdout is not None
            told = program.stdout.read()
            code = program.wait(120)
        printed.seek(0)
        return Outcome(code, " ".join((told + printed.read()).split()))


@contextmanager
def lying_server(directory: Path, lie: str) -> Iterator[Place]:
    """A new deployment whose server tells this lie, with a table, and the analysts ann and bob."""
    state = directory / "state"
    if not state.exists():
        make_state(state, HURRIED)
    (state / "data" / "shop.csv").write_text("colour\n" + "red\ngreen\n" * 50)
    (directory / "statements.json").write_text(json.dumps(STATEMENTS))
    with ExitStack() as stack:
        server = stack.enter_context(running(state, script=SCRIPT.replace("LIE", lie)))
        for name in ("operator", "auditor"):
            path = state / "profiles" / name / "profile.toml"
            target = Profile.load(path.parent).target
            path.write_text(path.read_text().replace(target, f"127.0.0.1:{server.port}"))
        operator = stack.enter_context(Operator.from_profile(state / "profiles" / "operator"))
        operator.register_dataset("shop", "shop.csv", SCHEMA, CAP, CAP)
        for name in ("ann", "bob"):
            operator.add_analyst(name, directory / name)
        yield Place(directory, operator)
