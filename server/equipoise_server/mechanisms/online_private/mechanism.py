"""`online_private`: statements one by one, each answered at once, hiding every statement from all other analysts.

HRU Algorithm 5 with its corrections. Of the two sound ways to test, this is the one with a public threshold and
fresh noise in each test: a threshold without noise cannot tie two analysts' tests together, and the data pay once
for each positive (`accounting.threshold_tests`), an eighth of what a sparse vector would ask for tests as sharp.
"""

from __future__ import annotations

from dataclasses import dataclass

from equipoise.errors import BudgetExhausted
from equipoise.model.results import Answers
from equipoise.model.rounds import MechanismPlan
from equipoise.model.synopsis import Synopsis
from equipoise.queries.workload_compiler import CompiledStatement
from equipoise_server.datasets.counts import Counts
from equipoise_server.mechanisms.checking import check_enumerable
from equipoise_server.mechanisms.epochs.cost import Session
from equipoise_server.mechanisms.epochs.epochs import EpochParameters, Epochs
from equipoise_server.mechanisms.epochs.plan import OPTIONS, plan_epochs, promised
from equipoise_server.mechanisms.epochs.prior_plan import (
    PriorEpochParameters,
    plan_from_prior,
    prior_session_plan,
)
from equipoise_server.mechanisms.epochs.question import LinearQuestion, Scale
from equipoise_server.mechanisms.epochs.session_plan import session_plan, statements_asked
from equipoise_server.mechanisms.interface import GRID_BITS, PublicParameters
from equipoise_server.mechanisms.noise_calibration import MAX_MOVED
from equipoise_server.mechanisms.online.interface import linear, session_length
from equipoise_server.mechanisms.options import check_options
from equipoise_server.mechanisms.parameters import read_either
from equipoise_server.mechanisms.prior.choice import NONE, OF_PRIOR, OWN, STANDING, Start, starts_of
from equipoise_server.mechanisms.prior.forecast import expected_of_session
from equipoise_server.mechanisms.prior.known_answers import MeasuredPrior
from equipoise_server.mechanisms.prior.support import support_size
from equipoise_server.mechanisms.repair.weights_hypothesis import TOTAL_BITS


class OnlinePrivate:
    """The mechanism `online_private`, for the protected unit "query".

    Formal guarantees. For the people in the table, however statements are chosen: at most `E (s + x)` of them are
    answered afresh and every test's sign is theta-DP, both charged in full (`private_cost.data_parts`). For the
    analysts, and for sequences fixed in advance: replacing one statement changes what all others see by at most
    `private_cost.analyst_parts`. (Statements that were chosen by the answer to it would be replaced with it, and
    are protected as so many.) With probability `1 - beta` all truths lie in their intervals. Sums are no exception
    (`epochs.question.LinearQuestion` has the proof).
    """

    name = "online_private"
    slotted = True
    priced = False

    def plan(self, setting: PublicParameters) -> MechanismPlan:
        """See `epochs.plan` and `prior_plan`; the former lists what `options` may force beside `length`.

        The option `prior`, "own", "standing" or "none", says whether the hypothesis is a prior, and of which
        measurement; without it, the planner takes what is expected to err least.
        """
        return self.starts(setting)[0].plan

    def starts(self, setting: PublicParameters) -> list[Start]:
        """Plan a session from every prior that it may start from, best first."""
        session = sizes(setting)
        check_options(setting.options, OPTIONS, others=("length", *OF_PRIOR))
        return starts_of(
            setting,
            {
                NONE: lambda: self._from_nothing(setting, session),
                OWN: lambda: self._from_prior(setting, session, OWN),
                STANDING: lambda: self._from_prior(setting, session, STANDING),
            },
        )

    def _from_nothing(self, setting: PublicParameters, session: Session) -> MechanismPlan:
        check_enumerable(f"{self.name} without a prior", setting)
        return session_plan(self.name, setting, session, plan_epochs(setting, session))

    def _from_prior(self, setting: PublicParameters, session: Session, prior: str) -> MechanismPlan:
        parameters = plan_from_prior(setting, session, prior)
        if promised(parameters.epochs) >= 1:
            raise BudgetExhausted("data_budget: is too small for a prior and so many statements; raise it")
        expected = expected_of_session(parameters.prior, setting)
        return prior_session_plan(self.name, setting, session, parameters, expected)

    def check_statement(self, plan: MechanismPlan, statement: CompiledStatement) -> None:  # noqa: ARG002
        """Accept linear queries only, sums too. Raises `InvalidArgument` for anything else."""
        linear(statement)

    def start(self, setting: PublicParameters, plan: MechanismPlan, data: Counts, seed: bytes) -> LinearSession:
        """Start a session over the records of the universe, from each of them once, or over a prior's support.

        A prior of its own is measured here. It is a function of the table, the plan and the seed, so that a session
        that is started again has the same one. The standing measurement comes with the setting.
        """
        slots = sizes(setting).slots
        parameters = read_either(plan.parameters, EpochParameters, PriorEpochParameters)
        if isinstance(parameters, EpochParameters):
            epochs = Epochs(parameters, data.universe_size, slots, seed)
            return LinearSession(data, setting.records, setting.axes, epochs)
        known = MeasuredPrior.of(parameters.prior, parameters.chance, setting, data, seed)
        start = known.prior.weights >> TOTAL_BITS - GRID_BITS
        epochs = Epochs(parameters.epochs, known.support.size, slots, seed, start)
        return LinearSession(data, setting.records, setting.axes, epochs, (known, parameters.promise))


@dataclass(frozen=True, eq=False)
class LinearSession:
    """A session that answers linear queries of one table, from weights of the universe or a support."""

    data: Counts
    records: int
    sizes: tuple[int, ...]
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
        asked = linear(statement)
        queries = self.known[0].support.queries(asked) if self.known else asked
        return self.epochs.answer(slot, LinearQuestion(queries, self.data, self.records, self.known), encoded)

    def finish(self) -> Synopsis:
        """Return the records of the last hypothesis; none from a prior, which nothing is learnt to."""
        return Synopsis() if self.known else Synopsis.of_cells(self.epochs.finish(), self.sizes)


def sizes(setting: PublicParameters) -> Session:
    """Return the public size of a session over the universe or a support."""
    slots = session_length(setting, slotted=True) * len(setting.shares)
    asked = statements_asked(setting, slots)
    return Session(support_size(setting.axes), Scale(setting.records, 1), MAX_MOVED, slots, asked, setting.queries)
