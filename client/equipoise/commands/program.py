"""What both programs share: commands that are imported when they are called, and how a program ends."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import metadata
from typing import Annotated, Any, ClassVar

import typer
from rich.console import Console
from typer.core import TyperGroup

from equipoise.errors import EquipoiseError, InvalidArgument
from equipoise.wire.printable import printable


@dataclass(frozen=True)
class LazyCommand:
    """A command, or a group of commands, that is imported when it is called.

    Attributes:
        home: Where it is defined, `module:name`; the name is of a function or of a `typer.Typer`.
        summary: What the list of commands says about it: the first paragraph of its own help.
    """

    home: str
    summary: str

    def load(self, name: str) -> Any:
        """Import the command.

        Args:
            name: What people type for it.

        Returns:
            The command as typer makes it; of which library its class is differs between typer's versions.
        """
        module, _, attribute = self.home.partition(":")
        command = getattr(importlib.import_module(module), attribute)
        if isinstance(command, typer.Typer):
            return _with_plain_numbers(typer.main.get_group(command))
        alone = typer.Typer(add_completion=False)
        alone.command(name)(command)
        return _with_plain_numbers(typer.main.get_command(alone))


def _with_plain_numbers(command: Any) -> Any:
    """Let all numbers of a command, or of a group's commands, be written as people write them.

    Python reads `1_0` as 10, and the digits of every script: a budget that was mistyped would be another one.
    """
    for each in getattr(command, "commands", {}).values():
        _with_plain_numbers(each)
    parse_args = command.parse_args

    def parse_plain(context: Any, arguments: list[str]) -> list[str]:
        typed = [each.partition("=")[2] if each.startswith("--") and "=" in each else each for each in arguments]
        rest: list[str] = parse_args(context, arguments)
        taken = {number for value in context.params.values() for number in _numbers(value)}
        for text in typed:
            if ("_" in text or not text.isascii()) and _number(text) in taken:
                raise typer.BadParameter(f"{text!r} must be written with the digits 0 to 9 alone.")
        return rest

    command.parse_args = parse_plain
    return command


def _numbers(value: object) -> list[float]:
    """The numbers that a parameter has: one, several or none."""
    values = value if isinstance(value, list | tuple) else [value]
    return [each for each in values if isinstance(each, int | float) and not isinstance(each, bool)]


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


class LazyGroup(TyperGroup):
    """Commands of which only the called one is imported, so that help comes at once."""

    lazy: ClassVar[Mapping[str, LazyCommand]] = {}

    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[str | None, Any, list[str]]:
        """Find the command that the arguments name, and import it."""
        name, command, rest = super().resolve_command(ctx, args)
        if name is not None and name in self.lazy:
            command = self.lazy[name].load(name)
        return name, command, rest


def lazy_app(summary: str, commands: Mapping[str, LazyCommand]) -> typer.Typer:
    """Make an application of commands that are imported when they are called.

    Args:
        summary: The help of the application.
        commands: Its commands by what people type, in the order in which help lists them.
    """
    group = type("Group", (LazyGroup,), {"lazy": commands})
    app = typer.Typer(help=summary, cls=group, no_args_is_help=True, pretty_exceptions_enable=False)
    for name, command in commands.items():
        app.command(name, help=command.summary)(_placeholder)
    return app


def _placeholder() -> None:
    """Stands in the list of commands for one that is not imported; `LazyGroup` calls that one instead."""


def program(summary: str, commands: Mapping[str, LazyCommand]) -> typer.Typer:
    """Make the application that a program is: `lazy_app`, and `--version`.

    Args:
        summary: The help of the program.
        commands: Its commands by what people type, in the order in which help lists them.
    """
    app = lazy_app(summary, commands)
    app.callback()(_with_version)
    return app


def _say_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"equipoise {metadata.version('equipoise')}")
        raise typer.Exit


def _with_version(
    _version: Annotated[
        bool, typer.Option("--version", help="Print the version and exit.", is_eager=True, callback=_say_version)
    ] = False,
) -> None:
    pass


def run(app: typer.Typer, arguments: Sequence[str] | None) -> None:
    """Run the command. Exit codes: 0, 1 for a refusal or failure in one clear line, 2 for wrong usage.

    Args:
        app: The program's commands.
        arguments: What was typed after the program's name; None for what this process was started with.
    """
    try:
        app(arguments)
    except EquipoiseError as error:
        err = Console(stderr=True, emoji=False)
        err.print(f"error: {printable(error.message)}", style="red", markup=False, highlight=False, soft_wrap=True)
        if not isinstance(error, InvalidArgument):
            err.print(error.advice, markup=False, highlight=False, soft_wrap=True)
        sys.exit(1)
