"""`grant`: one analyst's statements, each answered with Gaussian noise for what the analyst pays for it.

Statements come one at a time and may depend on all earlier answers. Each says what it may cost. A privacy filter
adds the costs up and refuses what would exceed the grant.
"""

from __future__ import annotations

from fractions import Fraction
from hashlib import sha256

from equipoise.accounting import RHO_UNIT, Offer, PrivacyFilter
from equipoise.errors import InvalidArgument
from equipoise.model.results import Answers
from equipoise.model.rounds import GRANT, MechanismPlan
from equipoise.model.synopsis import Synopsis
from equipoise.queries.workload_compiler import CompiledStatement
from equipoise_server.datasets.counts import Counts
from equipoise_server.mechanisms.grant.plan import plan_grant
from equipoise_server.mechanisms.interface import PublicParameters
from equipoise_server.mechanisms.noise_calibration import GaussianNoise, fresh_answers
from equipoise_server.mechanisms.online.interface import linear
from equipoise_server.mechanisms.repair.statement_repair import half_width_on_grid
from equipoise_server.randomness.stream import KeyedStream


class GrantMechanism:
    """The mechanism `grant`.

    Formal guarantees. For the people in the table: the grant's `rho` in zCDP, whatever is asked, however it depends
    on earlier answers, and whenever it ends (`accounting.privacy_filter`). A statement that costs `r` is answered
    once with discrete Gaussian noise of variance `s M^2 / 2 r`, where a replaced record moves its counts by at most
    `sqrt(s)` in L2 and a person has `M` records. That is `r`-zCDP (`accounting.gaussian_rho`,
    `mechanisms.persons`), and the sampler is exact. Once the grant has ended, an account needs to count only what
    was spent.

    For the analysts: nothing, for either unit. Answers are a function of the table, of the grant's own seed and of
    its own analyst's statements, and nothing that others ask is an input.

    Errors: with probability `1 - beta` all truths lie in their intervals. The j-th statement that is paid for has
    `beta / (j (j + 1))` of it, shared evenly by its cells; over all j these add up to `beta`. Values are unbiased.
    """

    name = GRANT
    slotted = False
    priced = True

    def plan(self, setting: PublicParameters) -> MechanismPlan:
        """Plan a grant from its budget. There are no options."""
        return plan_grant(self.name, setting)

    def check_statement(self, plan: MechanismPlan, statement: CompiledStatement) -> None:  # noqa: ARG002
        """Accept every linear statement. Raises `InvalidArgument` for anything else."""
        if linear(statement).statement_count != 1:
            raise InvalidArgument("statement", "must be one")

    def start(self, setting: PublicParameters, plan: MechanismPlan, data: Counts, seed: bytes) -> GrantSession:
        """Start a grant, of which nothing is spent yet."""
        return GrantSession(setting, plan, data, seed)


class GrantSession:
    """A grant while it runs: what was paid for each question, and how wide its interval is. No answer is held."""

    def __init__(self, setting: PublicParameters, plan: MechanismPlan, data: Counts, seed: bytes) -> None:
        self._setting, self._data, self._seed = setting, data, seed
        self._filter = PrivacyFilter(plan.data_cost.rho)
        self._half_widths: dict[bytes, int] = {}

    def used_up_at(self, slot: int) -> bool:  # noqa: ARG002
        """Return False: what is left is compared with each statement's cost before it is taken."""
        return False

    def answer(self, slot: int, statement: CompiledStatement, encoded: bytes = b"", rho: int = 0) -> Answers:  # noqa: ARG002
        """Answer a statement, for what it may cost, or as it was answered before, for nothing.

        Noise is bound to the question and to what was paid for it, and not to the slot. So whatever came between,
        and whatever was lost in a crash, the same question for the same price has the same answer.

        Raises:
            InvalidArgument: `rho` is not above 0.
            BudgetExhausted: the statement costs more than what is left of the grant. The table was not read.
        """
        if rho < 1:
            raise InvalidArgument("statement.rho", "must be set: each statement of a grant says what it may cost")
        offer = Offer(encoded, rho)
        paid = self._filter.pay(offer)
        asked, records = linear(statement), self._setting.records
        digest, sensitivity = sha256(encoded).digest(), asked.statement_sensitivity(0)
        best = self._filter.paid_for(encoded)
        noise = GaussianNoise.within(Fraction(best, RHO_UNIT * self._setting.person_records**2))
        if paid:
            place = self._filter.payments
            chance = Fraction(self._setting.beta) / (2 * place * (place + 1) * asked.query_count)
            self._half_widths[digest] = half_width_on_grid(noise.law(sensitivity).quantile(chance), records)
        stream = KeyedStream.derive(self._seed, "grant", str(best), digest.hex())
        return fresh_answers(
            noise, sensitivity, self._data.count(asked), records, self._half_widths[digest], stream
        )

    def finish(self) -> Synopsis:
        """Return an empty synopsis."""
        return Synopsis()
