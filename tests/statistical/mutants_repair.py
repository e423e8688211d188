"""Faults of detection and of repair's answers, and the checks that catch them. See `test_mutants`."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from itertools import count
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pytest
from harness.answers import to_bytes
from harness.exact_game import masks_workload, table_workload
from numpy.typing import NDArray
from statistical.exact_pipeline import repair_law
from statistical.exact_repair_places import LOST, largest_delta
from statistical.exact_sparse_vector import at_least, first_positive_law
from statistical.extreme_games import EXTREME
from statistical.pipeline_instances import WORST_DATA, data_use

from equipoise.model.accounts import Budget
from equipoise.model.rounds import Share
from equipoise.queries.workload_compiler import CompiledWorkload
from equipoise_server.mechanisms.equilibrium.mechanism import Equilibrium, repair_all
from equipoise_server.mechanisms.equilibrium.parameters import EquilibriumParameters
from equipoise_server.mechanisms.interface import PublicParameters
from equipoise_server.mechanisms.noise_calibration import LaplaceNoise
from equipoise_server.mechanisms.repair import statement_repair, statement_repair_plan
from equipoise_server.mechanisms.repair.analyst_repair import AnalystRepairParameters
from equipoise_server.mechanisms.repair.private_weights import PrivateWeights
from equipoise_server.mechanisms.repair.repair_places import RepairPlaces
from equipoise_server.mechanisms.repair.statement_repair import SCORE_BITS, RepairParameters, SynopsisCounts
from equipoise_server.mechanisms.sparse_vector import SparseVector
from equipoise_server.randomness.discrete_laplace import DiscreteLaplace
from equipoise_server.randomness.stream import KeyedStream

RECORD = 1 << SCORE_BITS  # one record, as a score
TINY = 1e-9

NOISE = LaplaceNoise(Fraction(1, 2))
REPAIR = RepairParameters(
    threshold=RECORD,
    test_epsilon=Fraction(1),
    noise=NOISE,
    cut_offs={"a": 1, "b": 2},
    certified_half_width=1,
    noise_half_widths=(1, 1),
)
A, B, OTHER_B = masks_workload([1, 6], 3), masks_workload([2, 5], 3), masks_workload([7, 7], 3)
ONE = masks_workload([2], 3)
DATA = np.array([2, 1, 1], dtype=np.int64)


def vector_of_repair() -> SparseVector:
    """The sparse vector that repair makes for one analyst."""
    made = []
    detect = SparseVector.detect

    def spy(vector: SparseVector, *rest: object) -> object:
        made.append(vector)
        return detect(vector, *rest)  # type: ignore[arg-type]

    with patch.object(SparseVector, "detect", spy):
        statement_repair.repair(REPAIR, "a", A, A.counts(DATA), 4, SynopsisCounts(np.array([0, 3]), 3), bytes(32))
    return made[0]


def detection_hides_a_record(_: Path) -> bool:
    """One record moves every score by a record: eight tests together tell no more than their epsilon."""
    vector, worst = vector_of_repair(), 0.0
    for level in range(-4, 9, 2):
        for sign in (1, -1):
            moved = [level * RECORD + sign * RECORD] * 7 + [level * RECORD - sign * RECORD]
            laws = first_positive_law(vector, (level * RECORD,) * 8), first_positive_law(vector, tuple(moved))
            seen = [(one, two) for one, two in zip(*laws, strict=True) if min(one, two) > 1e-7]
            worst = max(worst, *(abs(math.log(one / two)) for one, two in seen))
    return 0.9 * REPAIR.test_epsilon < worst <= REPAIR.test_epsilon + 1e-6


def halved_sensitivity_of_statements(patches: pytest.MonkeyPatch) -> None:
    """A sparse vector that believes that a record moves a score by half a record."""
    patches.setattr(
        statement_repair,
        "SparseVector",
        lambda epsilon, one, level, places: SparseVector(epsilon, one // 2, level, places),
    )


def analyst_test_hides_a_record(_: Path) -> bool:
    """One record moves an analyst's largest score by a record: its test tells no more than its epsilon."""
    weights = PrivateWeights(1, Fraction(1), Fraction(1), Fraction(1), 0)
    noise = AnalystRepairParameters(
        RECORD, Fraction(1), RepairPlaces(1, Fraction(0), 1), weights, 1, 1, 1, 1
    ).test_noise
    return all(
        math.log(at_least(noise, level * RECORD) / at_least(noise, (level + 1) * RECORD)) <= 1 + TINY
        for level in range(-5, 6)
    )


def halved_sensitivity_of_analysts(patches: pytest.MonkeyPatch) -> None:
    """A test that believes that a record moves the largest score by half a record."""
    patches.setattr(
        AnalystRepairParameters,
        "test_noise",
        property(lambda parameters: DiscreteLaplace(2 * parameters.test_epsilon / RECORD)),
    )


def a_table_s_answers_hide_a_record(_: Path) -> bool:
    """A marginal answered afresh: replacing a record moves two of its cells, and tells no more than is charged."""
    workload, synopsis = table_workload([7], 3), SynopsisCounts(np.array([0, 0, 3, 3]), 3)
    both = [
        repair_law(replace(REPAIR, threshold=-(10**9)), "a", workload, workload.counts(data), 3, synopsis)
        for data in (np.array([2, 1, 0]), np.array([1, 2, 0]))
    ]
    allowed = REPAIR.cut_offs["a"] * (REPAIR.test_epsilon + NOISE.epsilon)
    losses = [abs(math.log(chance / both[1][key])) for key, chance in both[0].items() if chance > 1e-12]
    # The tests are all but sure to be positive, and tell nothing: what is told is told by the answers.
    return max(losses) <= NOISE.epsilon + TINY < allowed


def column_norm(patches: pytest.MonkeyPatch) -> None:
    """The norm of a table's column: a record added or removed, not replaced."""
    patches.setattr(CompiledWorkload, "statement_sensitivity", lambda workload, statement: 1)


def answers_are_free_of_test_noise(_: Path) -> bool:
    """Other test noise that finds the same statements gives the same answers."""
    found: dict[tuple[bool, ...], set[bytes]] = {}
    derive = KeyedStream.derive
    for run in range(40):

        def other_tests(seed: bytes, *labels: str, run: int = run) -> KeyedStream:
            return derive(seed, *labels, *([str(run)] if labels[0] == "repair/detection" else []))

        with patch.object(KeyedStream, "derive", other_tests):
            answers = statement_repair.repair(
                REPAIR, "a", ONE, ONE.counts(DATA), 4, SynopsisCounts(np.array([0]), 3), bytes(32)
            )
        pattern = tuple((answers.methods == NOISE.method).tolist())
        found.setdefault(pattern, set()).add(answers.values.tobytes())
    return len(found) > 1 and all(len(values) == 1 for values in found.values())


def answers_from_test_noise(patches: pytest.MonkeyPatch) -> None:
    """What a positive test saw is given as the answer."""
    detect, draw, kept = SparseVector.detect, DiscreteLaplace.draw, list[NDArray[np.int64]]()

    def keep(noise: DiscreteLaplace, values: int, stream: KeyedStream) -> NDArray[np.int64]:
        drawn = draw(noise, values, stream)
        kept.append(drawn // RECORD)
        return drawn

    def noisy_detect(vector: SparseVector, *rest: object) -> object:
        with patch.object(DiscreteLaplace, "draw", keep):
            return detect(vector, *rest)  # type: ignore[arg-type]

    patches.setattr(SparseVector, "detect", noisy_detect)
    patches.setattr(DiscreteLaplace, "draw", lambda noise, values, stream: kept[-1][:values])


def detection_couples_nobody(_: Path) -> bool:
    """Given the synopsis, what a gets is the same bytes whatever b asks."""
    workloads = ({"b": B, "a": A}, {"b": OTHER_B, "a": A})
    setting = PublicParameters(
        4, 3, (Share("b", 2, 2), Share("a", 2, 2)), "query", Budget(1, 0.1), Budget(1, 0.1), 0.1, {}
    )
    both = EquilibriumParameters(EXTREME, REPAIR, None)
    for run in range(60):
        told = []
        for each in workloads:
            counts = np.concatenate([workload.counts(DATA) for workload in each.values()])
            synopsis = SynopsisCounts(np.array([0, 3, 1, 2]), 3)
            answers = repair_all(
                setting, both, each, counts, synopsis, np.ones(3), run.to_bytes(32, "big"), lambda *_: None
            )["a"]
            told.append(to_bytes(answers))
        if told[0] != told[1]:
            return False
    return True


def shared_thresholds(patches: pytest.MonkeyPatch, analysts: int = 2) -> None:
    """One threshold's noise for so many analysts, drawn again after anybody's positive."""
    held, runs = list[int](), count()

    def detect(
        vector: SparseVector, scores: NDArray[np.int64], order: NDArray[np.int64], stream: KeyedStream
    ) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        positive = np.zeros(len(scores), dtype=np.bool_)
        if next(runs) % analysts == 0:
            held.clear()  # a new round, of which the first analyst is tested
        for statement in order.tolist():
            if not held:
                held.append(int(vector.threshold_noise.draw(1, stream)[0]))
            noisy = int(scores[statement]) + int(vector.test_noise.draw(1, stream)[0])
            if noisy >= vector.threshold + held[0]:
                positive[statement] = True
                held.clear()
        return positive, np.ones(len(scores), dtype=np.bool_)

    patches.setattr(SparseVector, "detect", detect)


def places_hide_an_analyst(_: Path) -> bool:
    """The count test's exact law: at its own epsilon no delta is left."""
    return largest_delta(RepairPlaces(0, Fraction(2), 1000), 2.0) <= LOST


def stop_only_at_positives(patches: pytest.MonkeyPatch) -> None:
    """Slots that were served well cannot stop the count test."""
    grant = RepairPlaces.grant
    patches.setattr(
        RepairPlaces,
        "grant",
        lambda places, positive, target, slots: grant(
            places, positive, target, np.where(positive, slots, -(10**6))
        ),
    )


def the_plan_covers_what_everybody_sees(_: Path) -> bool:
    """The exact divergence of the whole pipeline is at most what the plan charges."""
    return holds(lambda: data_use(WORST_DATA, Equilibrium().plan(WORST_DATA.setting)))


def realised_charge(patches: pytest.MonkeyPatch) -> None:
    """Repair is charged for the places that were used, in a run that used none."""
    cost = statement_repair_plan.repair_data_cost
    patches.setattr(
        statement_repair_plan,
        "repair_data_cost",
        lambda repairs, size: cost(replace(repairs, cut_offs=dict.fromkeys(repairs.cut_offs, 0)), size),
    )


def holds(check: Callable[[], object]) -> bool:
    """Whether a check raises no assertion."""
    try:
        check()
    except AssertionError:
        return False
    return True
