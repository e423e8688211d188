"""The options that the commands of auditors share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

ArchiveDirectory = Annotated[
    Path | None,
    typer.Argument(
        metavar="[DIR]",
        help="An archive that `equipoise audit download` made. [default: what the server has now]",
        show_default=False,
    ),
]
KeyFile = Annotated[
    Path | None,
    typer.Option(
        "--key",
        help="A file with the custodian's verifier keys, one a line, from a source that you trust. "
        "[default: the profile's]",
        show_default=False,
    ),
]
Checkpoints = Annotated[
    list[Path] | None,
    typer.Option(
        "--checkpoint",
        help="A checkpoint of the log from elsewhere, or an analyst's bundle. Repeat the option for each.",
        show_default=False,
    ),
]
Receipts = Annotated[
    list[Path] | None,
    typer.Option(
        "--receipt", help="A receipt that an analyst received. Repeat the option for each.", show_default=False
    ),
]
Replays = Annotated[
    list[Path] | None,
    typer.Option(
        "--replay",
        help="What equipoise-server audit replay --json printed. Repeat the option for each.",
        show_default=False,
    ),
]
Report = Annotated[
    Path | None, typer.Option("--report", help="Write the report here, in Markdown.", show_default=False)
]
