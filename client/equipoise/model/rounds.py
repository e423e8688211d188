"""Rounds and sessions: what is asked of them, what they promise, and where they stand.

Epsilons and deltas are floats, times are aware datetimes in UTC, errors are fractions of the records.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from equipoise.accounting import Cost
from equipoise.errors import InvalidArgument
from equipoise.model.accounts import AccountCharge, Budget, Danger

AUTO, AUTO_BY_PROMISE = "auto", "auto_by_promise"  # the names of the planner, by what it goes
# A round in which nobody has a share, and the rounds and sessions that answer from what it has measured.
MEASUREMENT, STANDING = "measurement", "standing"
STANDING_OPTION = "standing"  # the option that names the measurement, for rounds, sessions and grants
GRANT = "grant"  # a session of one analyst, who says what each statement may cost
NO_EVENTS = '{"events":[]}'


class RoundState(StrEnum):
    """Where a round stands. Analysts are shown SEALED while it runs."""

    OPEN = "open"
    SEALED = "sealed"
    RUNNING = "running"
    RELEASED = "released"
    ABORTED = "aborted"

    @property
    def ended(self) -> bool:
        """Whether nothing will change any more."""
        return self in (RoundState.RELEASED, RoundState.ABORTED)


class Ending(StrEnum):
    """What a session does with statements once its updates are used up."""

    HYPOTHESIS = "hypothesis"  # answers them from the last hypothesis, without an interval
    STOP = "stop"  # refuses them


@dataclass(frozen=True)
class SessionTerms:
    """What makes a round a session, in which statements are answered one at a time while it is open.

    `length`: how many statements there are in all, or, where the mechanism protects analysts, how many turns of
    `turn_seconds` each, in each of which every share has a slot; 0: as many as the shares allow. `ending`: what
    happens once the updates are used up.
    """

    length: int = 0
    turn_seconds: int = 0
    ending: Ending = Ending.HYPOTHESIS


@dataclass(frozen=True)
class Share:
    """What one analyst may ask: statements, and linear queries (cells) of all of them together.

    `sensitivity`: by how much all its counts together may move, in sum, when one record is replaced; a predicate
    moves by 1, a marginal by 2. 0 where none is declared: then all statements may be marginals.
    `support`: how many records of the universe one query may cover or leave out, whichever are fewer; half of the
    universe is the most there is. 0 where none is declared: then it may be any query.
    `ways`: how many attributes one statement may be about together, those of its conditions with them. 0 where none
    is declared: then it may be about all.
    """

    analyst: str
    statements: int
    queries: int
    sensitivity: int = 0
    support: int = 0
    ways: int = 0

    @property
    def l1_sensitivity(self) -> int:
        """The sensitivity that is declared, or the most that so many statements can have."""
        return self.sensitivity or 2 * self.statements


@dataclass(frozen=True)
class Terms:
    """What an operator wants of a round or of a session; all of it public.

    `unit` is "query" (one statement of one analyst may change unseen) or "analyst" (all of one analyst's may);
    `mechanism` is "auto" or a name; `options` are JSON values for the mechanism. From `close_time` (aware) on the
    server seals, runs and releases the round by itself; None: the operator asks for each step. Results open at
    multiples of `release_grid_seconds` since 1970; 0 stands for the server's own setting. With `session` it is a
    session; then None for the `analyst_budget` says that analysts are not protected from one another. `accepted`:
    the dangers of its budgets and its plan that the operator knows and wants.
    """

    dataset: str
    shares: tuple[Share, ...]
    data_budget: Budget
    analyst_budget: Budget | None
    unit: str = "query"
    beta: float = 0.05
    mechanism: str = "auto"
    options: Mapping[str, object] = field(default_factory=dict)
    close_time: datetime | None = None
    release_grid_seconds: int = 0
    session: SessionTerms | None = None
    accepted: tuple[Danger, ...] = ()


@dataclass(frozen=True)
class PlanNumbers:
    """What a mechanism would do in a round, from public things only.

    `parameters` is a JSON object, enough to run it again. `analyst_cost` is None where analysts are not protected:
    nothing bounds what they lose. `max_half_width` is the largest half-width of any answer's interval; 1, which
    says nothing, where none has one. `seconds`: of a run on one ordinary core, good to a factor of 3 where shares
    are used up; fewer where they are not. `expected_error`: the mean error over all
    declared queries that is expected, in the unit of `max_half_width`; no promise rests on it.
    """

    mechanism: str
    parameters: str
    data_cost: Cost
    analyst_cost: Cost | None
    max_half_width: float
    max_uncertified: int
    seconds: float
    memory_bytes: int
    expected_error: float

    @property
    def counts_records(self) -> bool:
        """Whether errors are parts of the records; statistics have ranges of their own."""
        return self.mechanism != "low_sensitivity"

    @property
    def errors_are_parts_of(self) -> str:
        """What errors are parts of, in words."""
        return "the records" if self.counts_records else "each statement's range"


@dataclass(frozen=True)
class MechanismPlan(PlanNumbers):
    """A mechanism's plan, with the events of both costs, as `accounting.events_to_json` writes them."""

    data_events: str = NO_EVENTS
    analyst_events: str = NO_EVENTS

    @property
    def charged_analyst_cost(self) -> Cost:
        """What a round charges each analyst. Raises `InvalidArgument` where analysts are not protected."""
        if self.analyst_cost is None:
            raise InvalidArgument("analyst_budget", "a round must protect its analysts; only simulations need not")
        return self.analyst_cost


@dataclass(frozen=True, kw_only=True)
class Plan(PlanNumbers):
    """A plan with its costs also as pairs, at the deltas of the round's budgets.

    `analyst_budget` is None in a session that does not protect its analysts from one another. `charges`: what the
    round counts on its accounts: the data's first, then one of its analysts', on each of which it counts alike; of
    a plan, the first that refuses it, if any does.
    """

    data_budget: Budget
    analyst_budget: Budget | None
    charges: tuple[AccountCharge, ...] = ()

    @property
    def refusal(self) -> str:
        """Why the accounts do not admit the round that was planned; empty where they do."""
        return next((charge.refusal for charge in self.charges if charge.refusal), "")


@dataclass(frozen=True)
class Progress:
    """How far a run has come: `done` of `total` steps of `phase`. `complete`: the answers can be released.

    `phase` is empty where no run is known, and starts with "failed" where the worker ended without answers.
    `seconds_left` is an estimate for the phase; `peak_memory_bytes` is 0 until the worker has ended. While a
    session is open, the steps are the statements that have their answers, of those that its shares allow.
    """

    phase: str
    done: int
    total: int
    seconds_left: float
    complete: bool
    peak_memory_bytes: int


@dataclass(frozen=True)
class Grant:
    """What a grant allows, and what its statements with answers have cost: zCDP in units of 10^-12 of rho.

    `standing`: the measurement that its answers are combined with, as JSON (`residuals.released`); empty without
    one, and in lists.
    """

    total: int
    spent: int
    standing: str = ""

    @property
    def left(self) -> int:
        """What can still be spent."""
        return self.total - self.spent


@dataclass(frozen=True, kw_only=True)
class Round:
    """A round or a session, as everybody who may see it does.

    `terms`: analysts are shown their own share alone, and nobody the `options`. `dataset_version`: the version of
    the dataset that it is about, the newest when it was opened; `records`: how many its table has. `mechanism`: the
    one that was chosen, or asked for. `release_time` is None until it is released, `abort_reason` empty unless it
    was aborted. `answered`: how many statements of the caller's, an analyst's, have their answers, where it is a
    session. `grant`: what the caller may spend and has spent, where it is a grant.
    """

    id: str
    terms: Terms
    dataset_version: int
    records: int
    state: RoundState
    mechanism: str
    open_time: datetime
    release_time: datetime | None
    abort_reason: str
    seed_commitment: bytes
    answered: int = 0
    grant: Grant | None = None


@dataclass(frozen=True)
class RoundDetail:
    """A round as operators and auditors see it."""

    round: Round
    plan: Plan
    progress: Progress
