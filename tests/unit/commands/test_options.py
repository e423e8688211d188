"""Commands whose options are the fields of dataclasses."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated

import pytest
import typer
from typer.testing import CliRunner

from equipoise.commands.options import percentage, weights_of, with_fields
from equipoise.errors import InvalidArgument


@dataclass(frozen=True, kw_only=True)
class Inner:
    """Options that several commands share."""

    second: Annotated[int, typer.Option(help="The second.")] = 2


@dataclass(frozen=True, kw_only=True)
class Outer:
    """Options of one command, with the shared ones between its own."""

    first: Annotated[str, typer.Option(help="The first.")]
    inner: Inner = field(default_factory=Inner)
    third: Annotated[float, typer.Option("--last", help="The third.")] = 3.0


def run(arguments: list[str]) -> tuple[list[object], str]:
    """What the command is called with, and what it prints."""
    called: list[object] = []
    app = typer.Typer()

    @app.command()
    @with_fields
    def command(outer: Outer, loud: bool = False) -> None:
        """Do something."""
        called.extend((outer, loud))

    result = CliRunner().invoke(app, arguments, env={"COLUMNS": "100"})
    return called, result.output


@pytest.mark.parametrize(
    ("arguments", "outer", "loud"),
    [
        (["--first", "a"], Outer(first="a"), False),
        (
            ["--loud", "--last", "0.5", "--second", "7", "--first", "b"],
            Outer(first="b", inner=Inner(second=7), third=0.5),
            True,
        ),
    ],
)
def test_every_field_is_an_option_and_the_dataclasses_are_made_of_them(
    arguments: list[str], outer: Outer, loud: bool
) -> None:
    assert run(arguments)[0] == [outer, loud]


def test_options_stand_in_the_order_of_the_fields_and_keep_their_help() -> None:
    shown = run(["--help"])[1]
    places = [shown.index(text) for text in ("--first", "The first", "--second", "The second", "--last", "--loud")]
    assert places == sorted(places)
    assert "Do something." in shown


def test_what_has_no_default_must_be_given() -> None:
    called, shown = run([])
    assert not called
    assert "--first" in shown


@pytest.mark.parametrize("text", ["1_0%", "0_1", "\u0661%", "five"])
def test_a_percentage_is_written_with_plain_digits(text: str) -> None:
    assert percentage("5%") == percentage("0.05") == 0.05
    with pytest.raises(InvalidArgument, match="relative"):
        percentage(text)


@pytest.mark.parametrize("text", ["1_0", "2,\u0661", "2,,1"])
def test_weights_are_written_with_plain_digits(text: str) -> None:
    assert weights_of("2,1,0.5") == [2.0, 1.0, 0.5]
    with pytest.raises(InvalidArgument, match="weights"):
        weights_of(text)
