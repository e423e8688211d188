"""What operators see of the planner: the option by which it chooses, and the candidates that it compared."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import StrEnum
from typing import Annotated

import typer

from equipoise.commands.printing import print_table
from equipoise.errors import InvalidArgument
from equipoise.model.plan_choices import Forecast, PlanCandidate
from equipoise.model.rounds import AUTO, AUTO_BY_PROMISE

COLUMNS = ("mechanism", "expected", "promise", "open", "eps_D", "eps_A", "time", "memory")
MAX_SECONDS = 1e7  # beyond which a prediction is no number that anybody wants


class ChooseBy(StrEnum):
    """What `auto` compares mechanisms by."""

    EXPECTED = "expected"  # the mean error that each plan expects
    PROMISE = "promise"  # the half-width that each plan promises

    def mechanism(self, asked: str) -> str:
        """Return the mechanism to ask for.

        Args:
            asked: A mechanism's name, or a planner's.

        Raises:
            InvalidArgument: There is nothing to choose where one mechanism is named.
        """
        if self is ChooseBy.EXPECTED:
            return asked
        if asked not in (AUTO, AUTO_BY_PROMISE):
            raise InvalidArgument("--choose-by", f"needs --mechanism auto; {asked} leaves nothing to choose")
        return AUTO_BY_PROMISE


ChooseByOption = Annotated[
    ChooseBy,
    typer.Option(help="What auto goes by: the mean error that is expected, or the largest half-width promised."),
]


def print_candidates(candidates: Sequence[PlanCandidate], chosen: str, queries: int) -> None:
    """Print a row for each mechanism that can serve a round.

    Args:
        candidates: What was compared.
        chosen: The mechanism that was chosen; its row is marked.
        queries: How many queries the round has.
    """
    able = (each for each in candidates if each.forecast is not None)
    rows = ((("> " if each.mechanism == chosen else "  ") + each.mechanism, row_of(each, queries)) for each in able)
    print_table(COLUMNS, ((name, *cells[1:]) for name, cells in rows))


def row_of(candidate: PlanCandidate, queries: int) -> list[str]:
    """Return what the columns say of a mechanism that can serve.

    Args:
        candidate: the mechanism, with its forecast.
        queries: how many queries the round has.
    """
    assert candidate.forecast is not None
    return [candidate.mechanism, *_cells(candidate.forecast, queries)]


def explained(candidates: Sequence[PlanCandidate]) -> Iterator[tuple[str, str]]:
    """Yield why mechanisms cannot serve or come last, and what the columns of the table say: names and texts."""
    for each in candidates:
        if each.refusal:
            yield "cannot", f"{each.mechanism}: {each.refusal}"
        elif each.beyond_limits:
            yield "beyond", f"{each.mechanism}: {each.beyond_limits}"
    yield "expected", "the mean error over all queries that is expected; no promise rests on it"
    yield "promise", "the largest half-width of an interval"
    yield "open", "the part of the answers that may end without an interval, at most"
    yield "eps_D", "what the round costs the people in the table"
    yield "eps_A", "what the round costs one unit of the analysts; - where they are not protected"


def _cells(forecast: Forecast, queries: int) -> Iterator[str]:
    # As many digits of both, so that no expected error is shown above a larger half-width.
    yield f"{forecast.expected_error:.3g}"
    yield f"{min(1.0, forecast.max_half_width):.3g}"
    yield f"{min(1.0, forecast.max_uncertified / queries):.2%}"
    yield f"{forecast.data_budget.epsilon:.3g}"
    yield "-" if forecast.analyst_budget is None else f"{forecast.analyst_budget.epsilon:.3g}"
    yield _duration(forecast.seconds)
    yield f"{forecast.memory_bytes / 2**30:,.1f} GiB"


def _duration(seconds: float) -> str:
    if not seconds < MAX_SECONDS:
        return f"{MAX_SECONDS / 3600:,.0f} h or more"
    if seconds < 100:
        return f"{seconds:.1f} s"
    return f"{seconds / 60:,.0f} min" if seconds < 6000 else f"{seconds / 3600:,.0f} h"


PriorOption = Annotated[
    str | None,
    typer.Option(
        help="What the mechanism starts from, where it can: own measures pairs of attributes first; standing was "
        "measured by equipoise operator dataset measure, and costs nothing; none starts from nothing. [default: "
        "planned]",
        show_default=False,
    ),
]
