"""Options that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

Profile = Annotated[
    Path,
    typer.Option(
        "--profile",
        envvar="EQUIPOISE_PROFILE",
        help="The profile directory: where the server is, and the certificate and key that let you in.",
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object instead of text.")]
RoundId = Annotated[str, typer.Argument(metavar="ROUND", help="The round's identifier.")]
SessionId = Annotated[str, typer.Argument(metavar="SESSION", help="The session's identifier.")]
RequestId = Annotated[
    str | None,
    typer.Option(
        help="A string of your own that makes repeating safe: the same one gets the first answer again. "
        "[default: a fresh one]",
        show_default=False,
    ),
]
Statements = Annotated[
    Path,
    typer.Argument(metavar="STATEMENTS", help="A JSON file of statements: what is asked, in order."),
]

DEFAULT_PROFILE = Path("profile")
