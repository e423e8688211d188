"""The exact law of a session of `online`: its run, once for every sign of its tests and outcome of its noise."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from unittest.mock import patch

import numpy as np
from harness.exact_game import Law
from numpy.typing import NDArray
from statistical.exact_pipeline import SEED, Choices, enumerated, every_run
from statistical.exact_sparse_vector import first_positive_law

from equipoise.model.rounds import MechanismPlan
from equipoise.queries.workload_compiler import CompiledStatement
from equipoise_server.datasets.dense_counts import DenseCounts
from equipoise_server.mechanisms.interface import PublicParameters
from equipoise_server.mechanisms.online.mechanism import Online, OnlineSession
from equipoise_server.mechanisms.sparse_vector import SequentialSparseVector


def online_law(
    setting: PublicParameters,
    plan: MechanismPlan,
    histogram: NDArray[np.int64],
    statements: Sequence[CompiledStatement],
) -> Law:
    """The law of everything that is told: way of answering, bound and values of each statement, in order."""
    return session_law(setting, lambda: Online().start(setting, plan, DenseCounts(histogram), SEED), statements)


def session_law(
    setting: PublicParameters, start: Callable[[], OnlineSession], statements: Sequence[CompiledStatement]
) -> Law:
    """The law of everything that a session tells, which is started anew for every outcome of its choices."""

    def program(choices: Choices) -> tuple[int, ...]:
        stretch: list[int] = []  # the scores that the threshold in force has tested

        def positive(tests: SequentialSparseVector, _: int, score: int) -> bool:
            stretch.append(score)
            # All earlier tests of the stretch were negative: the chances of the last one, given that.
            this, none = first_positive_law(tests.vector, tuple(stretch))[-2:]
            found = choices.choose([none / (this + none), this / (this + none)]) == 1
            if found:
                tests.positives += 1
                stretch.clear()
            return found

        with (
            enumerated(choices, setting.records),
            patch.object(SequentialSparseVector, "_fresh_threshold", lambda _: 0),
            patch.object(SequentialSparseVector, "positive", positive),
        ):
            session = start()
            told = [session.answer(slot, statement) for slot, statement in enumerate(statements)]
        return tuple(int(number) for a in told for number in (a.methods[0], a.highs[0] - a.lows[0], *a.values))

    law: Law = {}
    for outcome, chance in every_run(program):
        law[outcome] = law.get(outcome, 0.0) + chance
    return law
