"""`low_sensitivity`: numbers that are no linear queries, one by one, hiding every statement from other analysts.

HRU section 5.4 runs the online mechanism over all databases of n records. There are |X|^n of them; here the
operator lists candidates instead, in public and not from the data, and the session learns which of them answer like
the data. Where none does, statements are answered afresh, while there are places: the list is never trusted. From
a prior there is one such database, the distribution fitted to a public measurement, and it stays
(`epochs.prior_plan`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from equipoise.errors import InvalidArgument
from equipoise.model.results import Answers
from equipoise.model.rounds import MechanismPlan
from equipoise.model.synopsis import Synopsis
from equipoise.queries.statistics import CompiledStatistic, Databases, grid_units
from equipoise.queries.workload_compiler import CompiledStatement
from equipoise_server.datasets.counts import Counts
from equipoise_server.mechanisms.epochs.cost import Session
from equipoise_server.mechanisms.epochs.epochs import Epochs
from equipoise_server.mechanisms.epochs.plan import OPTIONS, plan_epochs
from equipoise_server.mechanisms.epochs.prior_plan import plan_from_prior, prior_session_plan
from equipoise_server.mechanisms.epochs.question import Scale
from equipoise_server.mechanisms.epochs.session_plan import session_plan
from equipoise_server.mechanisms.expected_error import stated
from equipoise_server.mechanisms.interface import PublicParameters
from equipoise_server.mechanisms.low_sensitivity.candidates import CANDIDATES, read_candidates
from equipoise_server.mechanisms.low_sensitivity.database_question import (
    DatabaseQuestion,
    database_of,
    statistic_of,
)
from equipoise_server.mechanisms.low_sensitivity.parameters import (
    LowSensitivityParameters,
    PriorStatisticsParameters,
    declared_sensitivity,
    expected_error,
    parameters_of,
    sizes,
    with_rounding,
)
from equipoise_server.mechanisms.low_sensitivity.prior_database import PriorDatabases
from equipoise_server.mechanisms.options import check_options
from equipoise_server.mechanisms.prior.choice import NONE, OF_PRIOR, OWN, PRIOR, STANDING, Start, starts_of
from equipoise_server.mechanisms.prior.known_answers import MeasuredPrior
from equipoise_server.mechanisms.running_time import CELL_BYTES

ENTRY_SECONDS = 5e-8  # of a statement's values, for each cell that a candidate or the data list
ENTRY_BYTES = 100  # of what is made of each of these cells at once


class LowSensitivity:
    """The mechanism `low_sensitivity`, for the protected unit "query".

    Formal guarantees: those of `online_private`, with candidates in place of records. Every statement that is taken
    moves by at most the declared sensitivity where a record is replaced, proven with each statistic; tests and
    answers have noise for that, rounding included (`scale_for`). Only tests and answers see the data, and a prior's
    measurement before them, which is charged beside them: the list is public, and so is what a statement comes to
    on it or on the prior. Learning never moves an exponent by more than a linear query would, so the analysts are
    charged alike. With probability `1 - beta` all certified answers are within their half-widths, whatever the
    candidates or the prior are; that they are learnt from in time is promised for no list.
    """

    name = "low_sensitivity"
    slotted = True
    priced = False

    def plan(self, setting: PublicParameters) -> MechanismPlan:
        """`options`: `sensitivity`, `candidates` or `prior`, and what `epochs.plan` may be forced to.

        The option `prior`, "own", "standing" or "none", says whether the prior is the one database that is asked,
        and of which measurement it is; without it, the planner takes what is expected to err least. From a prior no
        candidates are needed.
        """
        return self.starts(setting)[0].plan

    def starts(self, setting: PublicParameters) -> list[Start]:
        """Plan a session from every prior that it may start from, best first."""
        check_options(setting.options, OPTIONS, others=(CANDIDATES, "length", "sensitivity", *OF_PRIOR))
        wanted, listed = setting.options.get(PRIOR), CANDIDATES in setting.options
        ways: dict[str, Callable[[], MechanismPlan]] = {
            OWN: lambda: self._from_prior(setting, OWN),
            STANDING: lambda: self._from_prior(setting, STANDING),
        }
        if listed and wanted in ways:
            raise InvalidArgument(f"options.{CANDIDATES}", f"belong to prior {NONE}, and prior is {wanted}")
        if listed or wanted == NONE:
            candidates = read_candidates(setting)
            ways = {NONE: lambda: self._from_candidates(setting, candidates), **ways}
        return starts_of(setting, ways)

    def _from_candidates(self, setting: PublicParameters, candidates: Databases) -> MechanismPlan:
        session = sizes(setting, len(candidates.starts))
        epochs = with_rounding(plan_epochs(setting, session))
        parameters = LowSensitivityParameters(declared_sensitivity(setting), setting.records, epochs)
        plan = session_plan(self.name, setting, session, epochs)
        return _with_databases(plan, setting, session, parameters, len(candidates.cells))

    def _from_prior(self, setting: PublicParameters, prior: str) -> MechanismPlan:
        session = sizes(setting, setting.universe_size)
        start = plan_from_prior(setting, session, prior)
        start = replace(start, epochs=with_rounding(start.epochs))
        parameters = PriorStatisticsParameters(declared_sensitivity(setting), setting.records, start)
        plan = prior_session_plan(self.name, setting, session, start, expected_error(setting, session, start))
        return _with_databases(plan, setting, session, parameters, setting.universe_size)

    def check_statement(self, plan: MechanismPlan, statement: CompiledStatement) -> None:
        """Accept single numbers of at most the declared sensitivity. Raises `InvalidArgument` for anything else."""
        asked, parameters = statistic_of(statement), parameters_of(plan)
        records, declared = parameters.table_records, parameters.sensitivity
        delta = asked.sensitivity(records)
        if grid_units(delta) > grid_units(declared):
            moves = f"moves by Delta = {float(delta):.9g} where one of {records:,} records is replaced"
            raise InvalidArgument(
                "statement", f"{moves}; the session's declared sensitivity is {float(declared):.9g}"
            )

    def start(
        self, setting: PublicParameters, plan: MechanismPlan, data: Counts, seed: bytes
    ) -> LowSensitivitySession:
        """Start a session over the candidates, or over the prior alone.

        A prior of its own is measured here. It is a function of the table, the plan and the seed, so that a session
        that is started again has the same one. The standing measurement comes with the setting.
        """
        parameters, table = parameters_of(plan), database_of(setting.attributes, data)
        if isinstance(parameters, LowSensitivityParameters):
            candidates = read_candidates(setting)
            slots = sizes(setting, len(candidates.starts)).slots
            epochs = Epochs(parameters.epochs, len(candidates.starts), slots, seed)
            return LowSensitivitySession(lambda _: candidates, table, parameters.epochs.scale, epochs)
        start = parameters.start
        known = MeasuredPrior.of(start.prior, start.chance, setting, data, seed)
        databases = PriorDatabases.of(known.prior, setting.attributes, setting.records)
        epochs = Epochs(start.epochs, 1, sizes(setting, setting.universe_size).slots, seed)
        return LowSensitivitySession(databases.database, table, start.epochs.scale, epochs, (known, start.promise))


@dataclass(frozen=True, eq=False)
class LowSensitivitySession:
    """A session that answers statistics of one table.

    `candidates`: the databases of which hypotheses are made, for each statistic. `known`: a prior's measurement,
    and the largest half-width up to which it answers; None without a prior.
    """

    candidates: Callable[[CompiledStatistic], Databases]
    data: Databases
    scale: Scale
    epochs: Epochs
    known: tuple[MeasuredPrior, int] | None = None

    def used_up_at(self, slot: int) -> bool:
        """Return whether all epochs have ended before this slot. The analysts are charged for this information."""
        self.epochs.pass_to(slot)
        return self.epochs.used_up

    def answer(
        self,
        slot: int,
        statement: CompiledStatement,
        encoded: bytes = b"",
        rho: int = 0,  # noqa: ARG002
    ) -> Answers:
        """Answer the statement in a slot."""
        statistic = statistic_of(statement)
        question = DatabaseQuestion(statistic, self.candidates(statistic), self.data, self.scale, self.known)
        return self.epochs.answer(slot, question, encoded)

    def finish(self) -> Synopsis:
        """Return an empty synopsis: the last hypothesis is a choice of databases, not of records."""
        return Synopsis()


def _with_databases(
    plan: MechanismPlan,
    setting: PublicParameters,
    session: Session,
    parameters: LowSensitivityParameters | PriorStatisticsParameters,
    cells: int,
) -> MechanismPlan:
    """Return the plan with these parameters, and with time and memory for databases that list so many cells."""
    entries = cells + min(setting.records, setting.universe_size)
    return replace(
        plan,
        parameters=parameters.to_json(),
        seconds=stated(plan.seconds + session.statements * ENTRY_SECONDS * entries),
        memory_bytes=plan.memory_bytes + ENTRY_BYTES * entries + 3 * CELL_BYTES * setting.universe_size,
    )
