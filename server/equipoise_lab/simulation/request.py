"""What a simulation is asked for, checked: every refusal names the option as it was written."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from equipoise.errors import BudgetExhausted, InvalidArgument
from equipoise.model.accounts import Budget
from equipoise_lab.simulation.session_task import SessionTask
from equipoise_lab.simulation.task import Task
from equipoise_server.mechanisms.interface import PublicParameters

MAX_REPEATS = 1000
MIN_DELTA = 1e-17  # by default; the samplers' truncation takes some 10^-18

OPTION_OF_FIELD = {
    "mechanism": "--mechanism",
    "unit": "--unit",
    "shares": "--workload, --analysts",
    "records": "--table",
    "beta": "--beta",
    "data_budget": "--eps-data, --delta-data",
    "analyst_budget": "--eps-analyst, --delta-analyst",
    "universe_size": "--schema",
    "options": "--set",
}


@dataclass(frozen=True)
class Request:
    """The options of one simulation that are not files. `delta_data` None: `usual_delta`.

    `budget_split`: such as `game=1`. `forced`: parameters of the mechanism, such as `rounds=100`.
    """

    mechanism: str
    unit: str
    eps_data: float
    delta_data: float | None
    eps_analyst: float
    delta_analyst: float
    beta: float
    seed: int
    repeat: int
    play: str | None = None
    budget_split: str | None = None
    forced: Sequence[str] = ()

    def check(self) -> None:
        """Raises `InvalidArgument` for what no mechanism would look at."""
        if not 1 <= self.repeat <= MAX_REPEATS:
            raise InvalidArgument("--repeat", f"must lie between 1 and {MAX_REPEATS}, not {self.repeat}")
        if not 0 <= self.seed < 2**63:
            raise InvalidArgument("--seed", "must lie between 0 and 2^63 - 1")
        if self.unit not in ("query", "analyst"):
            raise InvalidArgument("--unit", f"must be query or analyst, not {self.unit}")
        if not 0 < self.eps_data < math.inf:
            raise InvalidArgument("--eps-data", "must be above 0 and finite")
        if not self.eps_analyst > 0:
            raise InvalidArgument("--eps-analyst", "must be above 0, or inf for no protection of the analysts")
        for option, delta in (("--delta-data", self.delta_data), ("--delta-analyst", self.delta_analyst)):
            if delta is not None and not 0 < delta < 1:
                raise InvalidArgument(option, "must lie between 0 and 1")
        if not 0 < self.beta < 1:
            raise InvalidArgument("--beta", "must lie between 0 and 1")

    @property
    def option_of_field(self) -> Mapping[str, str]:
        """What each field of a refusal was written as."""
        typed = {"play": ("--play", self.play), "game_share": ("--budget-split", self.budget_split)}
        return OPTION_OF_FIELD | {f"options.{name}": option for name, (option, given) in typed.items() if given}

    def setting(self, task: Task | SessionTask) -> PublicParameters:
        """What the mechanism plans from."""
        self.check()
        delta = usual_delta(task.records) if self.delta_data is None else self.delta_data
        return PublicParameters(
            records=task.records,
            universe_size=task.schema.universe_size,
            shares=task.shares,
            unit=self.unit,
            data_budget=Budget(self.eps_data, delta),
            analyst_budget=Budget(self.eps_analyst, self.delta_analyst),
            beta=self.beta,
            options=self._options(),
            attributes=task.schema.sizes,
        )

    def _options(self) -> dict[str, object]:
        options = forced_options(self.forced)
        for option, name, given in (
            ("--play", "play", self.play),
            ("--budget-split", "game_share", self.budget_split),
        ):
            if given is not None and name in options:
                raise InvalidArgument("--set", f"{name} is also what {option} says")
        if self.play is not None:
            options["play"] = self.play
        if self.budget_split is not None:
            part, _, text = self.budget_split.partition("=")
            share = _number(text)
            if part != "game" or isinstance(share, str) or not 0 < share <= 1:
                problem = f"must be game=SHARE, a share above 0 and at most 1, not {self.budget_split!r}"
                raise InvalidArgument("--budget-split", problem)
            options["game_share"] = float(share)
        return options


def forced_options(forced: Sequence[str]) -> dict[str, object]:
    """What each `NAME=VALUE` sets; `@FILE` stands for the JSON value that a file holds.

    Raises `InvalidArgument` for another form, and where one name is set twice.
    """
    options: dict[str, object] = {}
    for each in forced:
        name, equals, value = each.partition("=")
        if not (name and equals and value):
            raise InvalidArgument("--set", f"must be NAME=VALUE, such as rounds=100, not {each!r}")
        if name in options:
            raise InvalidArgument("--set", f"{name} is set twice")
        options[name] = _from_file(value.removeprefix("@")) if value.startswith("@") else _number(value)
    return options


def _from_file(name: str) -> object:
    try:
        return json.loads(Path(name).read_text(encoding="utf-8"))
    except OSError as error:
        raise InvalidArgument("--set", f"{name} cannot be read: {error.strerror}") from None
    except (ValueError, RecursionError):
        raise InvalidArgument("--set", f"{name} is not JSON") from None


def usual_delta(records: int) -> float:
    """The data's delta where none is given: 1/n^2, within what mechanisms can do."""
    return max(MIN_DELTA, min(0.1, 1 / records**2))


def in_words_of_options(
    error: InvalidArgument | BudgetExhausted, names: Mapping[str, str] = OPTION_OF_FIELD
) -> InvalidArgument | BudgetExhausted:
    """The same refusal of a mechanism, naming the option instead of the field. `names`: a command's options."""
    field, colon, problem = error.message.partition(": ")
    if colon and field in names:
        option = names[field]
    elif field.startswith("options."):
        option, problem = "--set", f"{field.removeprefix('options.')}: {problem}"
    elif isinstance(error, BudgetExhausted):
        option, problem = "--eps-data, --eps-analyst", error.message
    else:
        return error
    if isinstance(error, InvalidArgument):
        return InvalidArgument(option, problem)
    return BudgetExhausted(f"{option}: {problem}")


def _number(text: str) -> int | float | str:
    """What a parameter's value says: a whole number, another number, or a word."""
    try:
        return int(text)
    except ValueError:
        pass
    try:
        return float(text)
    except ValueError:
        return text
