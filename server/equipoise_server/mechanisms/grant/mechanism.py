"""`grant`: one analyst's statements, each answered with Gaussian noise for what the analyst pays for it.

Statements come one at a time and may depend on all earlier answers. Each says how precisely it is wanted, and
costs what earlier answers do not tell already. A privacy filter adds the costs up and refuses what would exceed
the grant.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from equipoise.accounting import RHO_UNIT
from equipoise.errors import InvalidArgument
from equipoise.model.results import AnswerMethod, Answers
from equipoise.model.rounds import GRANT, MechanismPlan
from equipoise.model.synopsis import Synopsis
from equipoise.queries.compiled_workload import CompiledWorkload
from equipoise.queries.grant_account import GrantAccount, Wanted
from equipoise.queries.grant_reach import SINGLE, WAYS, grown, part_of
from equipoise.queries.meanings import Meaning, Told, meaning_of, places_of
from equipoise.queries.own_precision import MeasuredPrecision
from equipoise.queries.workload_compiler import CompiledStatement
from equipoise_server.datasets.counts import Counts
from equipoise_server.mechanisms.answers import answers_within, noisy_on_grid, standard_error_on_grid
from equipoise_server.mechanisms.grant.fits import NOT_MEASURED, Drawn, Fits, MeasuredParts
from equipoise_server.mechanisms.grant.intervals import fitted_reaches, topped_reach
from equipoise_server.mechanisms.grant.plan import GrantParameters, plan_grant
from equipoise_server.mechanisms.grant.rounded import OPERATION, Rounded, mean, total
from equipoise_server.mechanisms.grant.sides import as_asked, as_keyed, overlapping
from equipoise_server.mechanisms.grant.standing_counts import StandingCounts, combined
from equipoise_server.mechanisms.interface import PublicParameters
from equipoise_server.mechanisms.noise_calibration import GaussianNoise, NoiseDistribution
from equipoise_server.mechanisms.online.interface import linear
from equipoise_server.mechanisms.repair.statement_repair import half_width_on_grid
from equipoise_server.mechanisms.residuals.estimates import Estimates
from equipoise_server.mechanisms.standing.answering import measured_answers
from equipoise_server.randomness.stream import KeyedStream


class GrantMechanism:
    """The mechanism `grant`.

    Formal guarantees. For the people in the table: the grant's `rho` in zCDP, whatever is asked, however it depends
    on earlier answers, and whenever it ends (`accounting.privacy_filter`). A statement that costs `r` has discrete
    Gaussian noise of variance `s M^2 / 2 r` drawn for it, where a replaced record moves its counts by at most
    `sqrt(s)` in L2 and a person has `M` records. That is `r`-zCDP (`accounting.gaussian_rho`,
    `mechanisms.persons`), and the sampler is exact. What is told is made of noisy counts alone, so that an answer
    that costs nothing is post-processing. Once the grant has ended, an account needs to count only what was spent.
    The standing measurement was paid for when it was made, and is public.

    For the analysts: nothing, for either unit. Answers are a function of the table, of the grant's own seed and of
    its own analyst's statements, and nothing that others ask is an input.

    Errors: with probability `1 - beta` all truths lie in their intervals, whatever is asked (`grant.intervals`).
    Values are unbiased, and a standard error is no larger than what was wanted.
    """

    name = GRANT
    slotted = False
    priced = True

    def plan(self, setting: PublicParameters) -> MechanismPlan:
        """Plan a grant from its budget; the option `standing` is the measurement that answers are combined with."""
        return plan_grant(self.name, setting)

    def check_statement(self, plan: MechanismPlan, statement: CompiledStatement) -> None:  # noqa: ARG002
        """Accept every linear statement. Raises `InvalidArgument` for anything else."""
        if linear(statement).statement_count != 1:
            raise InvalidArgument("statement", "must be exactly one statement")

    def start(self, setting: PublicParameters, plan: MechanismPlan, data: Counts, seed: bytes) -> GrantSession:
        """Start a grant, of which nothing is spent yet."""
        return GrantSession(setting, plan, data, seed)


class GrantSession:
    """A grant while it runs: what was paid for, what the noisy counts tell, and what was told. No truth is held."""

    def __init__(self, setting: PublicParameters, plan: MechanismPlan, data: Counts, seed: bytes) -> None:
        self._setting, self._data, self._seed = setting, data, seed
        self._account = GrantAccount(plan.data_cost.rho)
        self._standing = StandingCounts.of(setting, GrantParameters.from_json(plan.parameters).measurement)
        self._fits = Fits(self._account.precision)
        self._told: dict[bytes, tuple[int, Answers]] = {}  # by meaning: how precisely it was wanted, and its answer
        self._meanings = 0  # for which noise was drawn
        self._excess = 1.0  # the largest ratio of a variance to the one that was paid for

    def used_up_at(self, slot: int) -> bool:  # noqa: ARG002
        """Return False: what is left is compared with each statement's cost before it is taken."""
        return False

    def answer(self, slot: int, statement: CompiledStatement, encoded: bytes = b"", rho: int = 0) -> Answers:  # noqa: ARG002
        """Answer a statement as precisely as `rho` alone would buy, for what is missing to that.

        What was wanted no less precisely before has the answer that it had. Noise is bound to the meaning of the
        statement, to what is paid and to what was paid for this meaning before, and not to the slot. So a question
        that was lost in a crash has the same answer when it is asked again, and noise is never drawn twice for one
        price.

        Raises:
            InvalidArgument: `rho` is not above 0.
            BudgetExhausted: the statement costs more than what is left of the grant. The table was not read.
        """
        if rho < 1:
            raise InvalidArgument("statement.rho", "must be set: each statement of a grant says what it may cost")
        asked = linear(statement)
        meaning = meaning_of(asked, encoded)
        measured = None if self._standing is None else self._standing.noise.tells(asked, meaning)
        if cost := self._account.pay(Wanted(meaning, rho, measured)):
            self._draw(meaning, asked, cost)
        before = self._told.get(meaning.key)
        if before is None or before[0] < rho:
            before = (rho, as_keyed(meaning, self._answer(meaning, asked, measured)))
            self._told[meaning.key] = before
        return as_asked(meaning, before[1])

    def finish(self) -> Synopsis:
        """Return an empty synopsis."""
        return Synopsis()

    def _answer(self, meaning: Meaning, asked: CompiledWorkload, measured: MeasuredPrecision | None) -> Answers:
        """Return what is known now, all of which was paid for. `measured`: what the measurement tells of it."""
        drawn = self._fits.drawn(meaning)
        own = None if drawn is None else self._own(meaning, drawn)
        fits = self._account.precision.fits(meaning, Fraction(0) if drawn is None else drawn.precision)
        ways = []
        if self._standing is not None and measured is not None and all(measured.precisions):
            paid, square = self._estimate_fitted(meaning, drawn) if fits else self._estimate_alone(meaning, drawn)
            standing = self._standing.estimates(asked)
            known = standing if paid is None else combined(paid, standing)
            ways.append((known, square + grown(Fraction(1))))
        elif fits:
            ways.append(self._estimate_fitted(meaning, drawn))
        if self._standing is not None and self._account.precision.joined(meaning, measured) is not None:
            parts = MeasuredParts(self._standing.noise.parts, self._standing.table)
            ways.append(self._estimate_fitted(meaning, drawn, parts))
        answers = own
        for known, square in ways:
            reaches = fitted_reaches(asked, self._setting.beta, square, 0 if measured is None else WAYS)
            one = self._answers(known, reaches)
            answers = one if answers is None else overlapping(one, answers)
        assert answers is not None  # what is not known is paid for
        return answers

    def _law(self, moved: int, cost: int) -> NoiseDistribution:
        """Return the noise that a cost buys."""
        return GaussianNoise.within(Fraction(cost, RHO_UNIT * self._setting.person_records**2)).law(moved)

    def _variance(self, inverse: Fraction) -> float:
        """Return the variance of a count, in records squared, of an inverse of a precision; rounding included."""
        return float(inverse * RHO_UNIT * self._setting.person_records**2 / 2) * self._excess

    def _draw(self, meaning: Meaning, asked: CompiledWorkload, cost: int) -> None:
        """Count, add noise, and learn the noisy counts."""
        law, before = self._law(meaning.moved, cost), self._fits.drawn(meaning)
        paid = 0 if before is None else int(before.precision * meaning.moved)
        bought = Fraction(meaning.moved * RHO_UNIT * self._setting.person_records**2, 2 * cost)
        self._excess = max(self._excess, float(law.variance / bought) * (1 + 2.0**-50))
        counts = self._data.count(asked)
        if meaning.order is not None:
            counts = counts[np.argsort(places_of(meaning))]
        if meaning.opposite:
            counts = self._setting.records - counts
        stream = KeyedStream.derive(self._seed, "grant", str(paid), str(cost), meaning.key.hex())
        noisy = counts + law.draw(len(counts), stream)
        chance, half_width = Fraction(0), 0
        if before is None:
            self._meanings += 1
            chance = part_of(self._meanings, self._setting.beta)
            quantile = law.quantile(chance * SINGLE / (2 * meaning.counts))
            half_width = half_width_on_grid(quantile, self._setting.records)
        self._fits.learn(meaning, cost, noisy, chance, half_width)

    def _own(self, meaning: Meaning, drawn: Drawn) -> Answers:
        """Return what the noise of just this meaning tells."""
        if drawn.precision == drawn.first:
            records, law = self._setting.records, self._law(meaning.moved, int(drawn.first * meaning.moved))
            error = standard_error_on_grid(law.variance, records)
            counts = self._as_asked(meaning, drawn.mean, meaning.opposite).counts
            noisy = noisy_on_grid(counts.astype(np.int64), records)
            return answers_within(noisy, AnswerMethod.GAUSSIAN, drawn.half_width, error)
        reach = topped_reach(drawn.chance, meaning.counts, grown(drawn.precision / drawn.first))
        known, _ = self._estimate_alone(meaning, drawn)
        assert known is not None
        return self._answers(known, np.full(meaning.counts, reach))

    def _estimate_alone(self, meaning: Meaning, drawn: Drawn | None) -> tuple[Estimates | None, float]:
        """Return what the noise of just this meaning tells, if any was drawn, and what `grown` adds for it."""
        if drawn is None:
            return None, 0.0
        counts = self._as_asked(meaning, drawn.mean, meaning.opposite)
        variances = np.full(meaning.counts, self._variance(1 / drawn.precision))
        return self._estimates(counts, variances), grown(drawn.precision / drawn.first)

    def _estimate_fitted(
        self, meaning: Meaning, drawn: Drawn | None, measured: MeasuredParts = NOT_MEASURED
    ) -> tuple[Estimates, float]:
        """Return what all tables tell together, and the noise of just this meaning if it is not a table's.

        `measured`: the parts of a measurement that are fitted together with the tables.
        """
        told, precision = meaning.told, self._account.precision
        inverses = None if told is None else precision.variances(told, measured.precisions)
        assert told is not None
        assert inverses is not None
        counts = self._as_asked(meaning, self._fits.counts(told, measured), meaning.told_opposite)
        square = self._fits.spread(told, measured.precisions)
        if drawn is not None and not told.whole:
            own = self._as_asked(meaning, drawn.mean, meaning.opposite)
            weights = [float(1 - 1 / (1 + each * drawn.precision)) for each in inverses]
            counts = mean(counts, own, self._spread_out(meaning, told, weights))
            inverses = [each / (1 + each * drawn.precision) for each in inverses]
            square += grown(drawn.precision / drawn.first)
        variances = self._spread_out(meaning, told, list(map(self._variance, inverses)))
        return self._estimates(counts, variances), square

    @staticmethod
    def _estimates(counts: Rounded, variances: NDArray[np.float64]) -> Estimates:
        return Estimates(counts.counts, variances, np.full(len(variances), counts.slack))

    def _answers(self, known: Estimates, reaches: NDArray[np.float64]) -> Answers:
        answers = measured_answers(known, self._setting.records, reaches)
        # What is known exactly, as a count that nobody can be in, is said to err by the least that can be said.
        return replace(answers, standard_errors=np.maximum(answers.standard_errors, 1))

    @staticmethod
    def _spread_out(meaning: Meaning, told: Told, rows: list[float]) -> NDArray[np.float64]:
        """Return the number of each count's row of `Told.squares`, in the order in which the statement asks."""
        return _ordered(meaning, np.array(rows)[told.squares[2]])

    def _as_asked(self, meaning: Meaning, counts: Rounded, opposite: bool) -> Rounded:
        """Return counts in the order in which the statement asks for them, and of its condition's own side."""
        own = _ordered(meaning, counts.counts)
        if not opposite:
            return Rounded(own, counts.slack)
        others = self._setting.records - own
        return Rounded(others, counts.slack + OPERATION * total(others))


def _ordered(meaning: Meaning, numbers: NDArray[np.float64]) -> NDArray[np.float64]:
    return numbers if meaning.order is None else numbers[places_of(meaning)]
