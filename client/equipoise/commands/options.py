"""Options that several commands share, and commands whose options are the fields of dataclasses."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import MISSING, fields, is_dataclass
from functools import wraps
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer

from equipoise.errors import InvalidArgument

Profile = Annotated[
    Path,
    typer.Option(
        "--profile",
        envvar="EQUIPOISE_PROFILE",
        help="The profile directory, with the server's address and your certificate and key.",
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object instead of text.")]
RoundId = Annotated[str, typer.Argument(metavar="ROUND", help="The round's identifier.")]
SessionId = Annotated[str, typer.Argument(metavar="SESSION", help="The session's identifier.")]
RequestId = Annotated[
    str | None,
    typer.Option(
        help="Any string that makes the command safe to repeat: the same one gets the first answer again. "
        "[default: a fresh one]",
        show_default=False,
    ),
]
Statements = Annotated[
    Path,
    typer.Argument(metavar="STATEMENTS", help="A JSON file with the statements, in order."),
]

DEFAULT_PROFILE = Path("profile")
TIME_FORMATS = ["%Y-%m-%dT%H:%M:%S%z", "%Y-%m-%dT%H:%M%z"]  # such as 2030-01-31T18:00Z


def percentage(text: str) -> float:
    """Return a part of 1 that is written as one, or in percent. Raises `InvalidArgument` for anything else.

    Args:
        text: such as `5%` or `0.05`.
    """
    try:
        return _number(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
    except ValueError:
        raise InvalidArgument("relative", f"must be such as 5% or 0.05, not {text!a}") from None


def weights_of(text: str | None) -> list[float] | None:
    """Return the weights of statements, which commas part. Raises `InvalidArgument` for anything else.

    Args:
        text: such as `2,1,0.5`; None stays None.
    """
    if text is None:
        return None
    try:
        return [_number(each) for each in text.split(",")]
    except ValueError:
        raise InvalidArgument("weights", f"must be such as 2,1,0.5, not {text!a}") from None


def _number(text: str) -> float:
    """A number that is written with the digits 0 to 9 alone, as `program` asks of all other options."""
    if "_" in text or not text.isascii():
        raise ValueError(text)
    return float(text)


def with_fields(command: Callable[..., None]) -> Callable[..., None]:
    """Make a command of a function that takes dataclasses of options, each of whose fields becomes an option.

    The options stand where the dataclass stands among the parameters, in the order of its fields. A field may be
    such a dataclass itself.

    Args:
        command: A function; the types of its parameters, and of the dataclasses' fields, are as typer reads them.

    Returns:
        A function for typer. It builds the dataclasses from the options and calls `command` with them.
    """
    hints = get_type_hints(command, include_extras=True)
    options: list[Parameter] = []
    for parameter in signature(command).parameters.values():
        options += _options(parameter.name, hints[parameter.name], parameter.default)

    @wraps(command)
    def with_options(**given: Any) -> None:
        command(**{name: _build(name, kind, given) for name, kind in hints.items() if name != "return"})

    with_options.__annotations__ = {option.name: option.annotation for option in options}
    vars(with_options)["__signature__"] = Signature(options)
    return with_options


def _options(name: str, kind: Any, default: object) -> Iterator[Parameter]:
    """The options that a parameter, or a field, of this type stands for."""
    if not is_dataclass(kind):
        yield Parameter(name, Parameter.KEYWORD_ONLY, default=default, annotation=kind)
        return
    types = get_type_hints(kind, include_extras=True)
    for field in fields(kind):
        yield from _options(
            field.name, types[field.name], Parameter.empty if field.default is MISSING else field.default
        )


def _build(name: str, kind: Any, given: Mapping[str, Any]) -> Any:
    """The value of a parameter, or of a field, of this type, from the options that were given."""
    if not is_dataclass(kind):
        return given[name]
    types = get_type_hints(kind, include_extras=True)
    build: Any = kind
    return build(**{field.name: _build(field.name, types[field.name], given) for field in fields(kind)})
