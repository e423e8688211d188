"""`online`: answers each statement from a hypothesis about the table, or with fresh noise where that is inaccurate.

Roth & Roughgarden (2010), Hardt & Rothblum (2010), Gupta, Roth & Ullman (2012): OnlineIC. The noisy test of the
hypothesis is free while it passes. A statement that fails the test is answered with fresh noise, and the published
answer alone improves the hypothesis.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from equipoise.errors import InvalidArgument
from equipoise.model.results import Answers
from equipoise.model.rounds import MechanismPlan
from equipoise.model.synopsis import Synopsis
from equipoise.queries.fixed_point import ONE
from equipoise.queries.workload_compiler import CompiledStatement, CompiledWorkload
from equipoise_server.datasets.counts import Counts
from equipoise_server.mechanisms.answers import answers_within, uncertified
from equipoise_server.mechanisms.checking import check_enumerable
from equipoise_server.mechanisms.hypothesis import Hypothesis, gain_slack, linear_reach
from equipoise_server.mechanisms.interface import GRID_BITS, PublicParameters
from equipoise_server.mechanisms.make_plan import make_plan
from equipoise_server.mechanisms.noise_calibration import fresh_answers
from equipoise_server.mechanisms.online import prior_plan
from equipoise_server.mechanisms.online.interface import HYPOTHESIS, linear, session_length
from equipoise_server.mechanisms.online.parameters import OnlineParameters
from equipoise_server.mechanisms.online.plan import (
    CHOICES,
    OPTIONS,
    data_parts,
    expected_error,
    max_uncertified,
    plan_online,
)
from equipoise_server.mechanisms.online.prior_plan import PriorOnlineParameters, plan_from_prior, prior_events
from equipoise_server.mechanisms.online.stages import Stage
from equipoise_server.mechanisms.online.streams import SessionStreams
from equipoise_server.mechanisms.options import check_options
from equipoise_server.mechanisms.parameters import read_either
from equipoise_server.mechanisms.prior.choice import NONE, OF_PRIOR, OWN, STANDING, Start, check_prior, starts_of
from equipoise_server.mechanisms.prior.known_answers import MeasuredPrior
from equipoise_server.mechanisms.repair.private_weights import answer_scores, rounding_error
from equipoise_server.mechanisms.running_time import fitting_bytes, online_seconds
from equipoise_server.mechanisms.sparse_vector import SequentialSparseVector


class Online:
    """The mechanism `online`.

    Formal guarantees. For the people in the table: `c (e_0^2 / 2 + rho_a)` in zCDP for c updates, or the sum over
    stages that differ, and what a measurement of its own costs before them; up to the truncation of the noise,
    however many statements are asked, and whoever chooses them having seen all earlier answers. A statement's score
    is the largest error of its cells under the hypothesis, in units of 2^-16 records, and moves by at most 2^16
    when a record is replaced: counts are whole records, those of sums too, and each moves by at most 1. Between
    two updates the hypothesis is a function of what was published, and the tests are one AboveThreshold
    (`accounting.sparse_vector_rho`); the statement that ends it is answered whole with fresh noise
    (`accounting.gaussian_rho`). Such costs add up where each mechanism is chosen by what the earlier ones published
    (Bun & Steinke 2016, Lemma 2.3). All c are charged, whether or not they are used, and after the c-th nothing is
    read from the table at all.

    For the analysts: **none**. What one analyst asks uses up the updates of all, and moves the hypothesis from
    which all are answered: nothing hides an analyst's statements from the others of its session. With one share
    there are no others, and the promise is empty.

    Errors, with probability `1 - beta` for all answers of a session at once: an answer from the hypothesis is
    within the threshold and what the noise of test and threshold may add, an answer with noise within the quantile
    of its law, an answer from a prior's measurement within `residuals.direct`. None of them rests on which records
    the hypothesis has weights of, so from a prior that may be a support (`prior.support`). Other answers after the
    last update are not certified. Where the plan proves that c updates are enough
    (`parameters.most_updates`), there are none.
    """

    name = "online"
    slotted = False
    priced = False

    def plan(self, setting: PublicParameters) -> MechanismPlan:
        """Plan updates, threshold and noise from the shares, the length and the budget.

        Options: `prior`, "own", "standing" or "none", says whether the hypothesis starts from a measurement, and
        which one; without it, the planner takes what is expected to err least. `updates` forces the number of
        updates; `threshold` the error, as a fraction of the records, from which a hypothesis is updated (with a
        prior: for the first time); `answers` the distribution of the noise.
        """
        return self.starts(setting)[0].plan

    def starts(self, setting: PublicParameters) -> list[Start]:
        """Plan a session from every prior that it may start from, best first."""
        session_length(setting, slotted=False)
        check_prior(setting.options)
        check_options(setting.options, OPTIONS, CHOICES, ("length", *OF_PRIOR))
        starts = starts_of(
            setting,
            {
                NONE: lambda: self._from_nothing(setting),
                OWN: lambda: self._from_prior(setting, OWN),
                STANDING: lambda: self._from_prior(setting, STANDING),
            },
        )
        if setting.protects_analysts and len(setting.shares) > 1:
            problem = (
                "online protects no analyst from the others of its session; leave it out, or open one for each"
            )
            raise InvalidArgument("analyst_budget", problem)
        return starts

    def _from_nothing(self, setting: PublicParameters) -> MechanismPlan:
        check_enumerable(f"{self.name} without a prior", setting)
        parameters = plan_online(setting)
        return make_plan(
            self.name,
            setting,
            parameters,
            data_parts(setting, parameters),
            max_half_width=parameters.promise / 2**GRID_BITS,
            max_uncertified=max_uncertified(setting, parameters),
            expected_error=expected_error(setting, parameters),
            seconds=online_seconds(setting, parameters.updates),
            memory_bytes=fitting_bytes(setting),
        )

    def _from_prior(self, setting: PublicParameters, prior: str) -> MechanismPlan:
        parameters = plan_from_prior(setting, prior)
        updates = len(parameters.stages)
        return make_plan(
            self.name,
            setting,
            parameters,
            prior_events(setting, parameters),
            max_half_width=parameters.promise / 2**GRID_BITS,
            max_uncertified=max(0, setting.queries - updates),
            expected_error=prior_plan.expected_error(setting, parameters),
            seconds=online_seconds(setting, updates) + parameters.prior.seconds(),
            memory_bytes=fitting_bytes(setting) + parameters.prior.memory_bytes(),
        )

    def check_statement(self, plan: MechanismPlan, statement: CompiledStatement) -> None:  # noqa: ARG002
        """Accept every predicate, marginal and sum. Raises `InvalidArgument` for anything else."""
        if linear(statement).statement_count != 1:
            raise InvalidArgument("statement", "must be exactly one statement")

    def start(self, setting: PublicParameters, plan: MechanismPlan, data: Counts, seed: bytes) -> OnlineSession:
        """Start a session before its first statement, from the uniform hypothesis or from a prior.

        A prior of its own is measured here. It is a function of the table, the plan and the seed, so that a session
        that is started again has the same one. The standing measurement comes with the setting.
        """
        parameters = read_either(plan.parameters, OnlineParameters, PriorOnlineParameters)
        if isinstance(parameters, OnlineParameters):
            return OnlineSession(setting, parameters.stages, None, data, seed)
        known = MeasuredPrior.of(parameters.prior, parameters.chance, setting, data, seed)
        return OnlineSession(setting, parameters.stages, (known, parameters), data, seed)


class OnlineSession:
    """A session of `online` while it runs.

    `known`: what a prior's measurement tells, and the parameters; None without a prior.
    """

    def __init__(
        self,
        setting: PublicParameters,
        stages: Sequence[Stage],
        known: tuple[MeasuredPrior, PriorOnlineParameters] | None,
        data: Counts,
        seed: bytes,
    ) -> None:
        self._stages, self._records = stages, setting.records
        self._data, self._streams = data, SessionStreams(seed)
        self._known = known
        start = known[0].prior.potential if known else np.zeros(setting.universe_size, dtype=np.int64)
        self._hypothesis = Hypothesis(start, gain_slack(rounding_error(setting.records, len(start))))
        vectors = [stage.vector for stage in stages]
        self._tests = SequentialSparseVector(vectors, self._streams.derive_asked, "online")

    def used_up_at(self, slot: int) -> bool:  # noqa: ARG002
        """Return whether the last update was made, after which the table is not read."""
        return self._tests.used_up

    def answer(
        self,
        slot: int,
        statement: CompiledStatement,
        encoded: bytes = b"",
        rho: int = 0,  # noqa: ARG002
    ) -> Answers:
        """Answer the statement in a slot. Slots ascend."""
        self._streams.ask(slot, encoded)
        asked = linear(statement)
        queries = self._known[0].support.queries(asked) if self._known else asked
        expected = self._hypothesis.answers(queries)
        stage = None if self.used_up_at(slot) else self._stages[self._tests.positives]
        measured = self._measured_answers(asked, expected, stage)
        if measured is not None:
            return measured
        if stage is None:
            return uncertified(expected)
        counts = self._data.count(asked)
        score = int(answer_scores(counts, self._records, expected).max())
        if not self._tests.positive(slot, score):
            return answers_within(expected, HYPOTHESIS, stage.certified_half_width)
        l1_sensitivity = asked.statement_sensitivity(0)
        stream = self._streams.derive_asked("online", "answers", str(slot))
        half_width = stage.noise_half_widths[l1_sensitivity - 1]
        published = fresh_answers(stage.noise, l1_sensitivity, counts, self._records, half_width, stream)
        self._streams.learn()
        fractions = np.clip(published.values, 0, ONE) / 2.0**GRID_BITS
        reach = linear_reach(stage.reach / 2.0**GRID_BITS, bool(asked.weighted.any()), self._records)
        self._hypothesis.measured(queries, 0, fractions, reach)
        return published

    def _measured_answers(
        self, asked: CompiledWorkload, expected: NDArray[np.int64], stage: Stage | None
    ) -> Answers | None:
        """Answer a statement from the measurement, unless that says less than a test would."""
        if self._known is None or not self._known[0].holds(asked):
            return None
        known, parameters = self._known
        answers = known.answers(asked, expected)
        width = int((answers.highs - answers.lows).max())
        return answers if width <= 2 * parameters.widest_measured(stage) else None

    def finish(self) -> Synopsis:
        """Return an empty synopsis: only the hypothesis's answers are released."""
        return Synopsis()
