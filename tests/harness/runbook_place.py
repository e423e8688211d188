"""The runbook's commands, and a deployment on which they are carried out."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from string import Template
from typing import Any

import pytest

from equipoise_lab.demo.process import serving
from equipoise_server.cli import main as server_main
from harness.client_command import answered, refusal
from harness.dangers import SMALL_TABLE_TYPED

RUNBOOK = (Path(__file__).parents[2] / "deploy" / "RUNBOOK.md").read_text(encoding="utf-8")
SECTIONS = dict(re.findall(r"^## (.+?)\n(.*?)(?=^## |\Z)", RUNBOOK, re.MULTILINE | re.DOTALL))
TERMS = (
    "shop",
    "--share",
    "ann=2/9",
    "--share",
    "bob=2/9",
    "--data-epsilon",
    8,
    "--data-delta",
    1e-4,
    *SMALL_TABLE_TYPED,
)
OPTIONS = (
    "--mechanism",
    "equilibrium",
    "--analyst-epsilon",
    8,
    "--options",
    '{"rounds": 2, "play": "mixed"}',
    "--release-grid",
    1,
)


def block(section: str, number: int = 0) -> str:
    """A block of commands of a section."""
    found: list[str] = re.findall(r"^```sh\n(.*?)^```", SECTIONS[section], re.MULTILINE | re.DOTALL)
    return found[number]


def said(section: str, state: Path) -> str:
    """What a section quotes as an error, as a regular expression for any numbers."""
    quoted = " ".join(re.findall(r"^    (.+)$", SECTIONS[section], re.MULTILINE))
    return re.sub(r"\d+", r"\\d+", re.escape(quoted).replace("STATE", re.escape(str(state))))


@dataclass(frozen=True)
class Place:
    """A deployment as the runbook sees it, and its people."""

    directory: Path
    state: Path
    variables: dict[str, str]
    capsys: pytest.CaptureFixture[str]

    def shell(self, commands: str) -> subprocess.CompletedProcess[str]:
        """Carry out commands of the runbook up to the first that fails."""
        return subprocess.run(
            ["sh", "-euc", commands],
            env={**os.environ, **self.variables},
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )

    def done(self, commands: str) -> str:
        """What commands print that must succeed."""
        ended = self.shell(commands)
        assert ended.returncode == 0, ended.stderr
        return ended.stdout

    def held(self, commands: str, code: int = 0) -> str:
        """What `equipoise-server` says to commands of the runbook, in this process: quicker than one for each."""
        for command in commands.splitlines():
            program, *words = shlex.split(Template(command).substitute(self.variables))
            assert program == "equipoise-server"
            with pytest.raises(SystemExit) as ended:
                server_main(words)
            assert (ended.value.code or 0) == code
        printed = self.capsys.readouterr()
        return printed.err if code else printed.out

    def failed(self, commands: str) -> str:
        """What a command says that must fail in one clear line."""
        ended = self.shell(commands)
        assert (ended.returncode, "Traceback" in ended.stderr) == (1, False), ended.stderr
        return ended.stderr

    def serving(self) -> AbstractContextManager[None]:
        """The server, as the command starts it."""
        return serving(self.state, self.directory / "server.log")

    def profile(self, who: str) -> Path:
        """Of the operator or the auditor, or of an analyst."""
        return self.state / "profiles" / who if who in ("operator", "auditor") else self.directory / who

    def ask(self, who: str, *arguments: object) -> Any:
        """What `equipoise` answers."""
        return answered(self.capsys, self.profile(who), *arguments)

    def refused(self, who: str, *arguments: object) -> str:
        """What `equipoise` says that is refused."""
        return refusal(self.capsys, self.profile(who), *arguments)

    def refuse_for_want_of_budget(self) -> None:
        """No round fits under the cap of the data."""
        assert "account data/shop" in self.refused("operator", "operator", "round", "open", *TERMS, *OPTIONS)

    def operate(self, *arguments: object) -> Any:
        """What `equipoise operator` answers."""
        return self.ask("operator", "operator", *arguments)

    def opened(self) -> str:
        """The id of a new round."""
        return str(self.operate("round", "open", *TERMS, *OPTIONS)["round"]["id"])

    def submitted(self, round_id: str) -> Any:
        """The receipts of ann and bob, who send the same requests however often."""
        request = ("submit", round_id, self.directory / "statements.json", "--request-id", round_id)
        return [self.ask(who, *request) for who in ("ann", "bob")]

    def released(self, round_id: str) -> Any:
        """The answers of a round that is brought to its end."""
        for step in ("seal", "run", "release"):
            self.operate("round", step, round_id)
        assert self.ask("ann", "wait", round_id)["state"] == "released"
        return self.answers(round_id)

    def answers(self, round_id: str) -> Any:
        """What ann and bob read."""
        request = ("results", round_id, "--statements", self.directory / "statements.json")
        return [self.ask(who, *request)["answers"] for who in ("ann", "bob")]

    def charged(self) -> dict[str, Any]:
        """Every account as it is shown."""
        return {each["name"]: each for each in self.operate("budget", "show", "shop")["accounts"]}
