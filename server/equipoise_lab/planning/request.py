"""The request for a plan, read from options. Every refusal names the option as it was written."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field
from typing import Annotated

import typer

from equipoise.commands.planners import ChooseBy, ChooseByOption
from equipoise.errors import BudgetExhausted, InvalidArgument
from equipoise.model.persons import MAX_PERSON_RECORDS
from equipoise.model.rounds import AUTO, AUTO_BY_PROMISE, Share
from equipoise_lab.options import (
    MAX_SHOWN,
    Forced,
    FromPrior,
    Guarantees,
    Unit,
    add_option,
    forced_options,
    in_words_of_options,
)
from equipoise_lab.simulation.session_simulate import of_session
from equipoise_server.mechanisms.choice import by_expected_error, by_promise
from equipoise_server.mechanisms.interface import OnStep, PublicParameters
from equipoise_server.mechanisms.online.interface import SessionMechanism
from equipoise_server.mechanisms.planner import Comparison, compare
from equipoise_server.mechanisms.registry import MECHANISMS, SESSION_MECHANISMS, mechanism

MAX_ANALYSTS = 1 << 17  # whose shares are planned for one by one

OPTION_OF_FIELD = {
    "shares": "--analysts, --queries, --statements, --sensitivity, --support",
    "session.length": "--length",
}

_NUMBER = re.compile(r"(?P<base>[0-9]{1,13})(?:\^(?P<power>[0-9]{1,2}))?", re.ASCII)


@dataclass(frozen=True, kw_only=True)
class PlanRequest:
    """The options as they were typed; those that may be one number or one for each analyst are texts."""

    records: Annotated[
        str,
        typer.Option(
            help="How many records the table has: as many as rows or, where persons have several each, those of "
            "all persons.",
            metavar="N",
        ),
    ]
    universe: Annotated[
        str,
        typer.Option(
            help="How many different records can exist, such as 336000 or 2^40; or how many categories each "
            "attribute has, such as 16x7x15: mechanisms that measure tables of attributes need these.",
            metavar="X",
        ),
    ]
    queries: Annotated[
        str,
        typer.Option(
            help="How many linear queries (cells of tables count one by one) all analysts may ask together, dealt "
            "out evenly; or a number for each analyst, such as 600,600,50.",
            metavar="K|A,B,C",
        ),
    ]
    analysts: Annotated[
        str | None, typer.Option(help="How many analysts. [default: as many as --queries has]", metavar="M")
    ] = None
    statements: Annotated[
        str | None,
        typer.Option(
            help="How many statements these queries make, written like --queries; a table is one statement. "
            "[default: every query is a statement]",
            metavar="S|A,B,C",
        ),
    ] = None
    sensitivity: Annotated[
        str | None,
        typer.Option(
            help="How much replacing one record may move an analyst's counts in sum: 1 for each condition, 2 for "
            "each table. One number for all analysts alike, or one for each. [default: 2 for each statement]",
            metavar="D|A,B,C",
        ),
    ] = None
    support: Annotated[
        str | None,
        typer.Option(
            help="How many universe cells one query may cover or exclude, whichever are fewer: 16800 "
            "for tables of 20 cells over 336000. One number for all analysts alike, or one for each. "
            "[default: half of the universe]",
            metavar="C|A,B,C",
        ),
    ] = None
    person_records: Annotated[
        str,
        typer.Option(
            help="How many of the records each person has, who is protected with all of them; --records of a "
            "registration.",
            metavar="M",
        ),
    ] = "1"
    unit: Unit = "query"
    guarantees: Guarantees = field(default_factory=Guarantees)
    mechanism: Annotated[
        str,
        typer.Option(
            help="The mechanism to plan, of rounds or of sessions; auto compares all mechanisms of rounds."
        ),
    ] = "auto"
    choose_by: ChooseByOption = ChooseBy.EXPECTED
    length: Annotated[
        int | None,
        typer.Option(
            help="For a session: how many turns it has, or how many statements in all if it has no turns. "
            "[default: as the shares allow]",
            show_default=False,
        ),
    ] = None
    prior: FromPrior = None
    forced: Forced = None
    data_cap: Annotated[
        str | None,
        typer.Option(
            help="Show what the round counts on a data account of this cap, and how many such rounds fit on it.",
            metavar="EPSILON/DELTA[/ORDER]",
        ),
    ] = None
    analyst_cap: Annotated[
        str | None,
        typer.Option(
            help="The same for an analyst's account; give an order only if the unit is analyst.",
            metavar="EPSILON/DELTA[/ORDER]",
        ),
    ] = None

    @property
    def session(self) -> SessionMechanism | None:
        """The mechanism, where it is one of sessions."""
        return SESSION_MECHANISMS.get(self.mechanism)

    def setting(self) -> PublicParameters:
        """Return what the mechanisms plan from. Raises `InvalidArgument` naming the option."""
        records = _number("--records", self.records)
        sizes = [_number("--universe", part) for part in self.universe.split("x")]
        if records == 0:
            raise InvalidArgument("--records", "must be at least 1")
        person_records = _number("--person-records", self.person_records)
        if not 1 <= person_records <= MAX_PERSON_RECORDS or records % person_records:
            problem = f"must lie between 1 and {MAX_PERSON_RECORDS:,}, and divide the {records:,} records evenly"
            raise InvalidArgument("--person-records", problem)
        if 0 in sizes:
            raise InvalidArgument("--universe", "must be at least 1, and so must every attribute's size")
        universe = math.prod(sizes)
        options = forced_options(self.forced)
        add_option(options, "prior", "--prior", self.prior)
        setting = self.guarantees.parameters(
            records,
            universe,
            sizes if len(sizes) > 1 else (),
            self.shares(universe),
            self.unit,
            options,
            person_records=person_records,
        )
        if self.session is not None:
            return of_session(setting, self.session.slotted, self.length)
        if self.length is not None:
            raise InvalidArgument("--length", "is of sessions; name one of their mechanisms")
        return setting

    def shares(self, universe: int) -> tuple[Share, ...]:
        """Return what each analyst may ask. Raises `InvalidArgument` where the numbers do not fit together.

        `universe`: how many different records can exist.
        """
        count = self.queries.count(",") + 1 if self.analysts is None else _number("--analysts", self.analysts)
        if not 1 <= count <= MAX_ANALYSTS:
            raise InvalidArgument("--analysts", f"must lie between 1 and {MAX_ANALYSTS:,}, not {count:,}")
        queries = _dealt("--queries", self.queries, count)
        statements = queries if self.statements is None else _dealt("--statements", self.statements, count)
        sensitivities = [0] * count if self.sensitivity is None else _each("--sensitivity", self.sensitivity, count)
        supports = [0] * count if self.support is None else _each("--support", self.support, count)
        if self.support is not None and not all(1 <= support <= universe for support in supports):
            raise InvalidArgument("--support", f"must lie between 1 and the universe's {universe:,} records")
        shares = []
        dealt = zip(statements, queries, sensitivities, supports, strict=True)
        for place, (asked, cells, declared, support) in enumerate(dealt, start=1):
            if asked > cells:
                problem = f"analyst {place} would have {asked:,} statements but {cells:,} queries to ask by them"
                raise InvalidArgument("--statements", problem)
            if self.sensitivity is not None and not 1 <= declared <= 2 * asked:
                problem = f"of analyst {place} must lie between 1 and {2 * asked:,}, 2 for each of its statements"
                raise InvalidArgument("--sensitivity", f"{problem}, not {declared:,}")
            shares.append(Share(f"analyst-{place}", asked, cells, declared, support))
        return tuple(shares)


def compared(request: PlanRequest, setting: PublicParameters, report: OnStep) -> Comparison:
    """Return the comparison of all mechanisms, or of the forced one alone. Raises in the words of options."""
    try:
        if request.session is not None:
            return compare(setting, {request.mechanism: request.session}, report)
        asked = request.choose_by.mechanism(request.mechanism)
        rule = by_promise if asked == AUTO_BY_PROMISE else by_expected_error
        named = {} if asked in (AUTO, AUTO_BY_PROMISE) else {asked: mechanism(asked)}
        return compare(setting, named or MECHANISMS, report, rule)
    except (InvalidArgument, BudgetExhausted) as error:
        raise in_words(error) from None


def in_words(error: InvalidArgument | BudgetExhausted) -> InvalidArgument:
    """Return the same refusal, naming the options of this command."""
    renamed = in_words_of_options(error, OPTION_OF_FIELD)
    return renamed if isinstance(renamed, InvalidArgument) else InvalidArgument(*renamed.message.split(": ", 1))


def _dealt(option: str, text: str, count: int) -> list[int]:
    """Return one number dealt to all, or one of each."""
    if "," in text:
        numbers = _each(option, text, count)
        if 0 in numbers:
            raise InvalidArgument(option, f"must be at least 1 for each of {count:,} analysts")
        return numbers
    whole, rest = divmod(_number(option, text), count)
    if whole == 0:
        raise InvalidArgument(option, f"must be at least 1 for each of {count:,} analysts")
    return [whole + (place < rest) for place in range(count)]


def _each(option: str, text: str, count: int) -> list[int]:
    """Return one number for all alike, or one of each."""
    numbers = [_number(option, part) for part in text.split(",")]
    if len(numbers) == 1:
        return numbers * count
    if len(numbers) != count:
        raise InvalidArgument(option, f"has {len(numbers):,} numbers for {count:,} analysts")
    return numbers


def _number(option: str, text: str) -> int:
    match = _NUMBER.fullmatch(text.strip())
    if match is None:
        raise InvalidArgument(option, f"must be a whole number, such as 1000 or 10^3, not {text[:MAX_SHOWN]!r}")
    number: int = int(match["base"]) ** int(match["power"] or 1)
    return number
