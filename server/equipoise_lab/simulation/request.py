"""The checked request for a simulation. Every refusal names the option as it was written."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated

import typer

from equipoise.commands.person_options import PersonOptions
from equipoise.commands.planners import ChooseBy, ChooseByOption
from equipoise.errors import InvalidArgument
from equipoise_lab.options import Forced, FromPrior, Guarantees, Play, Unit, add_option, forced_options, number
from equipoise_lab.simulation.measurement import with_measurement
from equipoise_lab.simulation.session_task import SessionTask
from equipoise_lab.simulation.task import Task, seed_bytes
from equipoise_server.mechanisms.interface import PublicParameters
from equipoise_server.mechanisms.prior.choice import STANDING

MAX_REPEATS = 1000

OPTION_OF_FIELD = {
    "shares": "--workload, --analysts",
    "records": "--table",
    "universe_size": "--schema",
    "attributes": "--schema",
}


@dataclass(frozen=True, kw_only=True)
class Request:
    """The options of one simulation that are not files."""

    mechanism: Annotated[str, typer.Option(help="The mechanism by name; auto chooses one of rounds.")] = "auto"
    choose_by: ChooseByOption = ChooseBy.EXPECTED
    length: Annotated[
        int | None,
        typer.Option(
            help="For a session: how many turns it has, or how many statements in all if it has no turns. "
            "[default: as many as are needed]",
            show_default=False,
        ),
    ] = None
    play: Play = None
    prior: FromPrior = None
    whose: PersonOptions = field(default_factory=PersonOptions)
    unit: Unit = "query"
    analysts: Annotated[
        int | None,
        typer.Option(help="How many analysts get the statements, one each in turn. [default: up to 10]"),
    ] = None
    tables_per_analyst: Annotated[
        int | None,
        typer.Option(
            help="Instead, each analyst draws this many different statements of the workload, popular ones more "
            "often: the most popular twice as often as the second, three times as often as the third, and so on. "
            "--seed fixes the popularities, and who draws what, for all runs."
        ),
    ] = None
    guarantees: Guarantees = field(default_factory=Guarantees)
    seed: Annotated[
        int, typer.Option(help="A number with which a run can be repeated; further runs use the numbers after it.")
    ] = 0
    repeat: Annotated[int, typer.Option(help="How many runs.")] = 1
    budget_split: Annotated[
        str | None,
        typer.Option(help="game=SHARE: the game's share of the data budget; game=1 leaves nothing for repair."),
    ] = None
    forced: Forced = None

    def check(self) -> None:
        """Raises `InvalidArgument` for what no mechanism would look at."""
        if not 1 <= self.repeat <= MAX_REPEATS:
            raise InvalidArgument("--repeat", f"must lie between 1 and {MAX_REPEATS}, not {self.repeat}")
        if not 0 <= self.seed < 2**63:
            raise InvalidArgument("--seed", "must lie between 0 and 2^63 - 1")
        self.guarantees.check(self.unit)

    @property
    def option_of_field(self) -> Mapping[str, str]:
        """What each field of a refusal was written as, where it is not the option of the same name."""
        typed = {
            "play": ("--play", self.play),
            "prior": ("--prior", self.prior),
            "game_share": ("--budget-split", self.budget_split),
        }
        return OPTION_OF_FIELD | {f"options.{name}": option for name, (option, given) in typed.items() if given}

    def setting(self, task: Task | SessionTask) -> PublicParameters:
        """Return what the mechanism plans from."""
        self.check()
        options = forced_options(self.forced)
        add_option(options, "play", "--play", self.play)
        add_option(options, "prior", "--prior", self.prior)
        add_option(options, "game_share", "--budget-split", self._game_share())
        schema = task.schema
        setting = self.guarantees.parameters(
            task.records,
            schema.universe_size,
            schema.sizes,
            task.shares,
            self.unit,
            options,
            schema.ordered,
            self.whose.persons.records,
        )
        if STANDING in (self.mechanism, self.prior):
            return with_measurement(setting, schema, task.data, seed_bytes(self.seed))
        return setting

    def _game_share(self) -> float | None:
        if self.budget_split is None:
            return None
        part, _, text = self.budget_split.partition("=")
        share = number(text)
        if part != "game" or isinstance(share, str) or not 0 < share <= 1:
            problem = f"must be game=SHARE, a share above 0 and at most 1, not {self.budget_split!r}"
            raise InvalidArgument("--budget-split", problem)
        return float(share)
