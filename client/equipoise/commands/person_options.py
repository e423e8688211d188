"""Whose privacy a table's accounts count: the options that say so."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import typer

from equipoise.model.persons import PersonMode, Persons


@dataclass(frozen=True, kw_only=True)
class PersonOptions:
    """Who is a person in a table. `person`: the column of ids; None: each row is its own person."""

    person: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN",
            help="The column with the id of each row's person, who may have several rows. [default: each row is "
            "its own person, so that whoever has several rows is protected less]",
            show_default=False,
        ),
    ] = None
    mode: Annotated[
        PersonMode | None,
        typer.Option(
            help="What a person's records are: events, at most so many of its rows; average, so many dealt over "
            "all of its rows; one, the usual category of each attribute. [default: events, with --person]",
            show_default=False,
        ),
    ] = None
    records: Annotated[
        int, typer.Option(help="How many records every person has. Noise on counts grows with it.", min=1)
    ] = 1

    @property
    def persons(self) -> Persons:
        """What a person's records are. Raises `InvalidArgument` where a mode and a number do not go together."""
        return Persons(self.mode or (PersonMode.EVENTS if self.person else PersonMode.ROWS), self.records)
