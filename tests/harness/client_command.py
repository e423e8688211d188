"""The command `equipoise` with a profile, in this process."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from equipoise.cli import main


def answered(capsys: pytest.CaptureFixture[str], profile: Path, *arguments: object) -> Any:
    """The object that a command prints with --json."""
    with pytest.raises(SystemExit) as ended:
        main([*map(str, arguments), "--profile", str(profile), "--json"])
    printed = capsys.readouterr()
    assert not ended.value.code, printed.err or printed.out
    return json.loads(printed.out)


def refusal(capsys: pytest.CaptureFixture[str], profile: Path, *arguments: object) -> str:
    """What a command says that must fail with exit code 1."""
    with pytest.raises(SystemExit) as ended:
        main([*map(str, arguments), "--profile", str(profile)])
    assert ended.value.code == 1
    return capsys.readouterr().err


def lines(capsys: pytest.CaptureFixture[str], profile: Path, *arguments: object) -> list[Any]:
    """The objects that a command prints with --json, one a line."""
    with pytest.raises(SystemExit) as ended:
        main([*map(str, arguments), "--profile", str(profile), "--json"])
    printed = capsys.readouterr()
    assert not ended.value.code, printed.err
    return [json.loads(line) for line in printed.out.splitlines()]
