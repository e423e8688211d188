"""Options of all commands that need no deployment: what is protected, how far, and with which forced parameters."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from equipoise.errors import BudgetExhausted, InvalidArgument
from equipoise.model.accounts import Budget
from equipoise.model.rounds import Share
from equipoise.queries.strict_json import parse_json
from equipoise_server.mechanisms.interface import PublicParameters

MIN_DELTA = 1e-17  # by default; the samplers' truncation takes some 10^-18
MAX_SHOWN = 40  # characters of what is refused

OPTION_OF_FIELD = {
    "mechanism": "--mechanism",
    "unit": "--unit",
    "records": "--records",
    "universe_size": "--universe",
    "attributes": "--universe",
    "beta": "--beta",
    "data_budget": "--eps-data, --delta-data",
    "analyst_budget": "--eps-analyst, --delta-analyst",
    "options": "--set",
}

Unit = Annotated[
    str, typer.Option(help="What of an analyst is protected: one query (statement), or all of the analyst.")
]
Play = Annotated[
    str | None,
    typer.Option(help="How the game is played: mixed, sampled, or hru (as published). [default: planned]"),
]
FromPrior = Annotated[
    str | None,
    typer.Option(
        "--prior",
        help="What the mechanism starts from: own measures pairs of attributes first; none starts as published; "
        "standing, where a table is given, measures all pairs once before the runs, with as large a budget, which "
        "no run is charged for. [default: own or none, as planned]",
        show_default=False,
    ),
]
EpsData = Annotated[float, typer.Option(help="Epsilon of the people in the table.")]
DeltaAnalyst = Annotated[float, typer.Option(help="Delta of the analysts.")]
Beta = Annotated[float, typer.Option(help="All intervals hold with at least one less this probability.")]
Forced = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        help="NAME=VALUE forces a parameter, such as rounds=100, or NAME=@FILE one that is JSON; repeat for "
        "several.",
    ),
]


@dataclass(frozen=True, kw_only=True)
class Guarantees:
    """How well both sides are protected, and how surely intervals hold. `delta_data` None: `usual_delta`."""

    eps_data: EpsData = 1.0
    delta_data: Annotated[
        float | None,
        typer.Option(help="Delta of the people in the table. [default: 1/n^2 for n persons, at least 1e-17]"),
    ] = None
    eps_analyst: Annotated[
        float, typer.Option(help="Epsilon of the analysts; inf does not protect them from one another.")
    ] = 1.0
    delta_analyst: DeltaAnalyst = 1e-6
    beta: Beta = 0.05

    def parameters(
        self,
        records: int,
        universe_size: int,
        attributes: Sequence[int],
        shares: Sequence[Share],
        unit: str,
        options: Mapping[str, object],
        ordered: Sequence[int] = (),
        person_records: int = 1,
    ) -> PublicParameters:
        """Make what mechanisms plan from.

        Args:
            records: How many records the table has.
            universe_size: How many different records can exist.
            attributes: The number of categories of each attribute; empty where they are not known.
            shares: What each analyst may ask.
            unit: What of an analyst is protected, `query` or `analyst`.
            options: Forced parameters of the mechanism.
            ordered: The places of attributes whose categories have an order.
            person_records: How many of the records each person has.

        Raises:
            InvalidArgument: Naming an option whose value no mechanism would look at.
        """
        self.check(unit)
        delta = usual_delta(max(1, records // person_records)) if self.delta_data is None else self.delta_data
        return PublicParameters(
            records=records,
            universe_size=universe_size,
            shares=tuple(shares),
            unit=unit,
            data_budget=Budget(self.eps_data, delta),
            analyst_budget=Budget(self.eps_analyst, self.delta_analyst),
            beta=self.beta,
            options=options,
            attributes=tuple(attributes),
            ordered=tuple(ordered),
            person_records=person_records,
        )

    def check(self, unit: str) -> None:
        """Raise `InvalidArgument` naming an option whose value no mechanism would look at."""
        if unit not in ("query", "analyst"):
            raise InvalidArgument("--unit", f"must be query or analyst, not {unit[:MAX_SHOWN]}")
        if not 0 < self.eps_data < math.inf:
            raise InvalidArgument("--eps-data", "must be above 0 and finite")
        if not self.eps_analyst > 0:
            raise InvalidArgument("--eps-analyst", "must be above 0, or inf for no protection of the analysts")
        for option, delta in (("--delta-data", self.delta_data), ("--delta-analyst", self.delta_analyst)):
            if delta is not None and not 0 < delta < 1:
                raise InvalidArgument(option, "must lie between 0 and 1")
        if not 0 < self.beta < 1:
            raise InvalidArgument("--beta", "must lie between 0 and 1")


def add_option(options: dict[str, object], name: str, option: str, value: object) -> None:
    """Add what an option of its own says of a parameter, unless it is None.

    Raises `InvalidArgument` where `--set` says the same.

    Args:
        options: of the mechanism, by name; one is added.
        name: of the mechanism's option.
        option: of the command line, with its dashes.
        value: what the command line gave.
    """
    if value is None:
        return
    if name in options:
        raise InvalidArgument("--set", f"{name} is also what {option} says")
    options[name] = value


def forced_options(forced: Sequence[str] | None) -> dict[str, object]:
    """Return what each `NAME=VALUE` sets; `@FILE` stands for the JSON value that a file holds.

    Raises `InvalidArgument` for another form, and where one name is set twice.
    """
    options: dict[str, object] = {}
    for pair in forced or ():
        name, equals, value = pair.partition("=")
        if not (name and equals and value):
            raise InvalidArgument("--set", f"must be NAME=VALUE, such as rounds=100, not {pair!r}")
        if name in options:
            raise InvalidArgument("--set", f"{name} is set twice")
        options[name] = _from_file(value.removeprefix("@")) if value.startswith("@") else number(value)
    return options


def _from_file(name: str) -> object:
    try:
        text = Path(name).read_text(encoding="utf-8")
    except OSError as error:
        raise InvalidArgument("--set", f"{name} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise InvalidArgument("--set", f"{name} is not UTF-8 text") from None
    return parse_json(text, f"--set: {name}")


def usual_delta(persons: int) -> float:
    """Return the data's delta where none is given: 1/n^2, within what mechanisms can do."""
    return max(MIN_DELTA, min(0.1, 1 / persons**2))


def records_in_words(setting: PublicParameters) -> str:
    """Say how many records there are, and how many of them each person has."""
    persons = f", {setting.person_records:,} of each person," if setting.person_records > 1 else ""
    return f"{setting.records:,} records{persons}"


def in_words_of_options(
    error: InvalidArgument | BudgetExhausted, names: Mapping[str, str]
) -> InvalidArgument | BudgetExhausted:
    """The same refusal of a mechanism, naming the option instead of the field. `names`: what a command adds."""
    names = {**OPTION_OF_FIELD, **names}
    field, colon, problem = error.message.partition(": ")
    part = field.partition("[")[0]  # of a list, such as shares[2].queries
    if colon and part in names:
        option, problem = names[part], problem if part == field else error.message
    elif field.startswith("options."):
        option, problem = "--set", f"{field.removeprefix('options.')}: {problem}"
    elif isinstance(error, BudgetExhausted):
        option, problem = "--eps-data, --eps-analyst", error.message
    else:
        return error
    if isinstance(error, InvalidArgument):
        return InvalidArgument(option, problem)
    return BudgetExhausted(f"{option}: {problem}")


def number(text: str) -> int | float | str:
    """Return what a value says: a whole number, another number, or a word, which may stand in quotes."""
    if len(text) >= 2 and text[0] == text[-1] == '"':
        return text[1:-1]
    # Python also reads 1_0 and digits of other scripts.
    if not text.isascii() or "_" in text:
        return text
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            pass
    return text
