"""What a plan is asked for, read from options: every refusal names the option as it was written."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

from equipoise.errors import BudgetExhausted, InvalidArgument
from equipoise.model.accounts import Budget
from equipoise.model.rounds import Share
from equipoise_lab.simulation.request import forced_options, in_words_of_options, usual_delta
from equipoise_lab.simulation.session_simulate import of_session
from equipoise_server.mechanisms.interface import PublicParameters
from equipoise_server.mechanisms.online.interface import SessionMechanism
from equipoise_server.mechanisms.planner import AnswerChain, Comparison, compare
from equipoise_server.mechanisms.registry import MECHANISMS, SESSION_MECHANISMS, mechanism

MAX_ANALYSTS = 1 << 17  # whose shares are planned for one by one
MAX_SHOWN = 40  # characters of what is no number

OPTION_OF_FIELD = {
    "mechanism": "--mechanism",
    "unit": "--unit",
    "shares": "--analysts, --queries, --statements, --sensitivity, --support",
    "records": "--records",
    "universe_size": "--universe",
    "attributes": "--universe",
    "beta": "--beta",
    "data_budget": "--eps-data, --delta-data",
    "analyst_budget": "--eps-analyst, --delta-analyst",
    "session.length": "--length",
}

_NUMBER = re.compile(r"(?P<base>[0-9]{1,13})(?:\^(?P<power>[0-9]{1,2}))?", re.ASCII)


@dataclass(frozen=True)
class PlanRequest:
    """The options as they were typed. `delta_data` None: 1/n^2, or 10^-17 if that is more.

    `universe`: a number, or the sizes of attributes such as `16x7x15`. `queries` and `statements`: one number in
    all, dealt out as evenly as can be, or one for each analyst; without statements every query is one.
    `sensitivity`: one number for each analyst alike, or one for each; without it, what the statements allow.
    `support`: likewise; without it, half of the universe. `length`: of a session, None for as long as the shares
    allow. `forced`: parameters of the mechanism, such as `rounds=100`.
    """

    records: str
    universe: str
    queries: str
    unit: str
    eps_data: float
    delta_data: float | None
    eps_analyst: float
    delta_analyst: float
    beta: float
    analysts: str | None = None
    statements: str | None = None
    sensitivity: str | None = None
    support: str | None = None
    mechanism: str = "auto"
    length: int | None = None
    forced: Sequence[str] = ()

    @property
    def session(self) -> SessionMechanism | None:
        """The mechanism, where it is one of sessions."""
        return SESSION_MECHANISMS.get(self.mechanism)

    def setting(self) -> PublicParameters:
        """What the mechanisms plan from. Raises `InvalidArgument` naming the option."""
        if self.unit not in ("query", "analyst"):
            raise InvalidArgument("--unit", f"must be query or analyst, not {self.unit[:MAX_SHOWN]}")
        if not 0 < self.eps_data < math.inf:
            raise InvalidArgument("--eps-data", "must be above 0 and finite")
        if not self.eps_analyst > 0:
            raise InvalidArgument("--eps-analyst", "must be above 0, or inf for no protection of the analysts")
        records = _number("--records", self.records)
        sizes = [_number("--universe", part) for part in self.universe.split("x")]
        if records == 0:
            raise InvalidArgument("--records", "must be at least 1")
        if 0 in sizes:
            raise InvalidArgument("--universe", "must be at least 1, and so must every attribute's size")
        setting = PublicParameters(
            records=records,
            universe_size=math.prod(sizes),
            shares=self.shares(math.prod(sizes)),
            unit=self.unit,
            data_budget=Budget(self.eps_data, usual_delta(records) if self.delta_data is None else self.delta_data),
            analyst_budget=Budget(self.eps_analyst, self.delta_analyst),
            beta=self.beta,
            options=forced_options(self.forced),
            attributes=tuple(sizes) if len(sizes) > 1 else (),
        )
        if self.session is not None:
            return of_session(setting, self.session.slotted, self.length)
        if self.length is not None:
            raise InvalidArgument("--length", "is of sessions; name one of their mechanisms")
        return setting

    def shares(self, universe: int) -> tuple[Share, ...]:
        """What each analyst may ask. Raises `InvalidArgument` where the numbers do not fit together.

        `universe`: how many different records can exist.
        """
        count = self.queries.count(",") + 1 if self.analysts is None else _number("--analysts", self.analysts)
        if not 1 <= count <= MAX_ANALYSTS:
            raise InvalidArgument("--analysts", f"must lie between 1 and {MAX_ANALYSTS:,}, not {count:,}")
        queries = _dealt("--queries", self.queries, count)
        statements = queries if self.statements is None else _dealt("--statements", self.statements, count)
        l1_sensitivity = (
            [0] * count if self.sensitivity is None else _each("--sensitivity", self.sensitivity, count)
        )
        supports = [0] * count if self.support is None else _each("--support", self.support, count)
        if self.support is not None and not all(1 <= support <= universe for support in supports):
            raise InvalidArgument("--support", f"must lie between 1 and the universe's {universe:,} records")
        shares = []
        dealt = zip(statements, queries, l1_sensitivity, supports, strict=True)
        for place, (asked, cells, declared, support) in enumerate(dealt, start=1):
            if asked > cells:
                problem = f"analyst {place} would have {asked:,} statements but {cells:,} queries to ask by them"
                raise InvalidArgument("--statements", problem)
            if self.sensitivity is not None and not 1 <= declared <= 2 * asked:
                problem = f"of analyst {place} must lie between 1 and {2 * asked:,}, 2 for each of its statements"
                raise InvalidArgument("--sensitivity", f"{problem}, not {declared:,}")
            shares.append(Share(f"analyst-{place}", asked, cells, declared, support))
        return tuple(shares)


def compared(request: PlanRequest, setting: PublicParameters, told: AnswerChain) -> Comparison:
    """The comparison of all mechanisms, or of the forced one alone. Raises in the words of options."""
    try:
        if request.session is not None:
            return compare(setting, {request.mechanism: request.session}, told)
        forced = {} if request.mechanism == "auto" else {request.mechanism: mechanism(request.mechanism)}
        return compare(setting, forced or MECHANISMS, told)
    except (InvalidArgument, BudgetExhausted) as error:
        raise in_words(error) from None


def in_words(error: InvalidArgument | BudgetExhausted) -> InvalidArgument:
    """The same refusal, naming the options of this command."""
    told = in_words_of_options(error, OPTION_OF_FIELD)
    return told if isinstance(told, InvalidArgument) else InvalidArgument(*told.message.split(": ", 1))


def _dealt(option: str, text: str, count: int) -> list[int]:
    """One number dealt to all, or one of each."""
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
    """One number for all alike, or one of each."""
    numbers = [_number(option, part) for part in text.split(",")]
    if len(numbers) == 1:
        return numbers * count
    if len(numbers) != count:
        raise InvalidArgument(option, f"has {len(numbers):,} numbers for {count:,} analysts")
    return numbers


def _number(option: str, text: str) -> int:
    found = _NUMBER.fullmatch(text.strip())
    if found is None:
        raise InvalidArgument(option, f"must be a whole number, such as 1000 or 10^3, not {text[:MAX_SHOWN]!r}")
    number: int = int(found["base"]) ** int(found["power"] or 1)
    return number
