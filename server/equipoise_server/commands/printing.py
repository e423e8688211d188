"""What the commands share: two options, where they print to, and how they print JSON."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

State = Annotated[
    Path,
    typer.Option(
        "--state",
        envvar="EQUIPOISE_STATE",
        help="The state directory: configuration, keys, store. Keep it private and back it up.",
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object, the last line of the output.")]

DEFAULT_STATE = Path("equipoise-state")
OUT = Console(emoji=False)
ERR = Console(stderr=True, emoji=False)


def print_json(value: object) -> None:
    """Prints one object on a line of its own."""
    # Not through rich, which would wrap lines at the terminal's width; flushed for those who wait for it.
    print(json.dumps(value), flush=True)
