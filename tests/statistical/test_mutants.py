"""Every fault that section 10 of the mechanisms' specification names, switched on and seen to be caught.

Each entry names the fault, the check that must hold for what is shipped, and how the fault is switched on. Nothing
that is shipped has a switch: faults are put in from here. Other tests catch most of them in more ways.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from itertools import count, pairwise
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pytest
from integration.rounds_bench import Bench
from numpy.typing import NDArray
from statistical import test_private_weights
from statistical.exact_game import game_of, hockey_stick, masks_workload, released_law, table_workload
from statistical.exact_pipeline import repair_law
from statistical.exact_sparse_vector import first_positive_law
from statistical.test_game_enumeration import EXTREME, extreme_analyst_leak, parameters, size_of
from statistical.test_pipeline import WORST_DATA, data_use
from statistical.test_repair_places import LOST, largest_delta
from statistical.test_sparse_vector import at_least

from equipoise import accounting
from equipoise.workload import CompiledWorkload
from equipoise_server.game import query_player
from equipoise_server.game.equilibrium import Game
from equipoise_server.game.parameters import GameParameters
from equipoise_server.ledger import charges
from equipoise_server.ledger.conversion import mixture_delta
from equipoise_server.mechanisms import repair, statement_repair_plan
from equipoise_server.mechanisms.analyst_repair import AnalystRepairParameters
from equipoise_server.mechanisms.equilibrium import Equilibrium, repair_all
from equipoise_server.mechanisms.equilibrium_plan import EquilibriumParameters
from equipoise_server.mechanisms.interface import Budget, Outcome, Setting, Share
from equipoise_server.mechanisms.private_weights import PrivateWeights
from equipoise_server.mechanisms.repair import SCORE_BITS, RepairParameters, Synopsis
from equipoise_server.mechanisms.repair_places import RepairPlaces
from equipoise_server.mechanisms.sparse_vector import SparseVector
from equipoise_server.mechanisms.tuning import analyst_mixture, analyst_rho
from equipoise_server.randomness import discrete_laplace
from equipoise_server.randomness.discrete_laplace import DiscreteLaplace
from equipoise_server.randomness.stream import KeyedStream
from equipoise_server.rounds.runner import Runner
from equipoise_server.rounds.worker import Job

Switch = Callable[[pytest.MonkeyPatch], None]
RECORD = 1 << SCORE_BITS  # one record, as a score
TINY = 1e-9


@dataclass(frozen=True)
class Mutant:
    """A fault by the specification's name, a check that it must break, and its switch."""

    name: str
    check: Callable[[Path], bool]
    switch: Switch


# Noise


def noise_hides_one(_: Path) -> bool:
    """The law that is really drawn moves by at most its rate when a count moves by one."""
    for rate in (Fraction(3, 2), Fraction(1, 4)):
        masses = [mass for mass in DiscreteLaplace(rate).law().values() if mass > Fraction(1, 10**12)]
        if max(abs(math.log(one / other)) for one, other in pairwise(masses)) > rate + TINY:
            return False
    return True


def scaled_noise(patches: pytest.MonkeyPatch) -> None:
    """Every law is drawn with 0.9 times its scale."""
    thresholds = discrete_laplace._thresholds
    patches.setattr(
        discrete_laplace, "_thresholds", lambda rate, digits: thresholds(rate * Fraction(10, 9), digits)
    )


def without_a_coin(patches: pytest.MonkeyPatch) -> None:
    """The coin of the digit 4 is never thrown."""
    thresholds = discrete_laplace._thresholds

    def forgetful(rate: Fraction, digits: int) -> tuple[int, ...]:
        return tuple(0 if digit == 2 else each for digit, each in enumerate(thresholds(rate, digits)))

    patches.setattr(discrete_laplace, "_thresholds", forgetful)


def noise_is_counted_from_words(_: Path) -> bool:
    """Every draw is what plain integers make of the stream's words: nothing is rounded on the way."""
    for rate in (Fraction(1, 3), Fraction(1, 1000)):
        noise = DiscreteLaplace(rate)
        words = iter(KeyedStream.derive(b"\x0b" * 32, "mutants").words(200 * 4 * noise.digits).tolist())
        expected = []
        for _draw in range(200):
            geometric = [
                sum(
                    (next(words) << 64 | next(words) < threshold) << digit
                    for digit, threshold in enumerate(noise.thresholds)
                )
                for _ in range(2)
            ]
            expected.append(geometric[0] - geometric[1])
        if noise.draw(200, KeyedStream.derive(b"\x0b" * 32, "mutants")).tolist() != expected:
            return False
    return True


def float_noise(patches: pytest.MonkeyPatch) -> None:
    """The textbook's inverse of the distribution function, in doubles."""

    def draw(noise: DiscreteLaplace, values: int, stream: KeyedStream) -> NDArray[np.int64]:
        uniform = stream.words(values) / 2.0**64 - 0.5
        lengths = -np.log1p(-2 * np.abs(uniform)) / float(noise.rate)
        rounded: NDArray[np.int64] = np.rint(np.sign(uniform) * lengths).astype(np.int64)
        return rounded

    patches.setattr(DiscreteLaplace, "draw", draw)


# Detection and answers


REPAIR = RepairParameters(
    threshold=RECORD,
    test_epsilon=Fraction(1),
    answer_epsilon=Fraction(1, 2),
    cut_offs={"a": 1, "b": 2},
    certified_bound=1,
    laplace_bounds=(1, 1),
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
        repair.repair(REPAIR, "a", A, A.counts(DATA), 4, Synopsis(np.array([0, 3]), 3), bytes(32))
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
        repair, "SparseVector", lambda epsilon, one, level, places: SparseVector(epsilon, one // 2, level, places)
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
    workload, synopsis = table_workload([7], 3), Synopsis(np.array([0, 0, 3, 3]), 3)
    both = [
        repair_law(replace(REPAIR, threshold=-(10**9)), "a", workload, workload.counts(data), 3, synopsis)
        for data in (np.array([2, 1, 0]), np.array([1, 2, 0]))
    ]
    allowed = REPAIR.cut_offs["a"] * (REPAIR.test_epsilon + REPAIR.answer_epsilon)
    losses = [abs(math.log(chance / both[1][key])) for key, chance in both[0].items() if chance > 1e-12]
    # The tests are all but sure to be positive, and tell nothing: what is told is told by the answers.
    return max(losses) <= REPAIR.answer_epsilon + TINY < allowed


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
            answers = repair.repair(REPAIR, "a", ONE, ONE.counts(DATA), 4, Synopsis(np.array([0]), 3), bytes(32))
        pattern = tuple((answers.methods == repair.LAPLACE).tolist())
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
    setting = Setting(4, 3, (Share("b", 2, 2), Share("a", 2, 2)), "query", Budget(1, 0.1), Budget(1, 0.1), 0.1, {})
    both = EquilibriumParameters(EXTREME, REPAIR)
    for run in range(60):
        told = []
        for each in workloads:
            counts = np.concatenate([workload.counts(DATA) for workload in each.values()])
            synopsis = Synopsis(np.array([0, 3, 1, 2]), 3)
            answers = repair_all(
                setting, both, each, counts, synopsis, np.ones(3), run.to_bytes(32, "big"), lambda *_: None
            )["a"]
            told.append((answers.values.tobytes(), answers.methods.tobytes(), answers.bounds.tobytes()))
        if told[0] != told[1]:
            return False
    return True


def shared_thresholds(patches: pytest.MonkeyPatch) -> None:
    """One threshold's noise for all analysts, drawn again after anybody's positive."""
    held, runs = list[int](), count()

    def detect(
        vector: SparseVector, scores: NDArray[np.int64], order: NDArray[np.int64], stream: KeyedStream
    ) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        positive = np.zeros(len(scores), dtype=np.bool_)
        if next(runs) % 2 == 0:
            held.clear()  # a new round: b is tested first, then a
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


# The game


@dataclass
class Extreme:
    """A game of two rounds, charged as that; faults play or ask otherwise."""

    charged: GameParameters
    played: GameParameters

    def leak(self) -> float:
        """The largest divergence of what is played over the charge."""
        return extreme_analyst_leak(self.played, analyst_rho(self.charged, size_of(2, 3, 8)), 8)


ONCE = replace(EXTREME, rounds=2)
DRAWN = Extreme(ONCE, ONCE)


def the_records_drawn_are_charged(_: Path) -> bool:
    return DRAWN.leak() <= 1


def no_unit_holds_more_than_its_cap(_: Path) -> bool:
    return extreme_analyst_leak(EXTREME, analyst_rho(EXTREME, size_of(2, 3, 8)), 8) <= 1


def a_cap_of_two_over_s(patches: pytest.MonkeyPatch) -> None:
    project = query_player.project
    patches.setattr(query_player, "project", lambda weights, density: project(weights, density / 2))


def drawn_once_too_often(patches: pytest.MonkeyPatch) -> None:
    """A last draw after the round whose payoffs were the last to be charged."""
    patches.setattr(DRAWN, "played", replace(ONCE, rounds=3))


SAMPLED = parameters("sampled", 2, 1, 1, 4.0, 30.0, 6.0, 2)


class Asked:
    """Eight statements; the actions of the query player."""

    @staticmethod
    def actions(masks: list[int]) -> list[int]:
        """Every statement is an action of its own, also where another analyst asks the same."""
        return masks


def equal_questions_stay_apart(_: Path) -> bool:
    """Seven analysts ask the same, one asks for either of two records: sampled play leaks at most its mixture."""
    data = np.array([0, 1, 1], dtype=np.int64)
    law, near = (
        released_law(game_of(SAMPLED, masks_workload(Asked.actions([7] * 7 + [mask]), 3), data), 3)
        for mask in (2, 4)
    )
    return hockey_stick(law, near, 0.0) <= mixture_delta(analyst_mixture(SAMPLED, size_of(2, 3, 8)), 0.0)


def deduplicated(patches: pytest.MonkeyPatch) -> None:
    patches.setattr(Asked, "actions", staticmethod(lambda masks: list(dict.fromkeys(masks))))


LEARNING: dict[str, object] = {
    "rounds": 60, "batch": 8, "density": 2, "query_rate": 0.5, "data_rate": 1.0, "game_share": 1,
}  # fmt: skip


def the_synopsis_learns(_: Path) -> bool:
    """Before any repair the synopsis is at most half as wrong as the uniform guess."""
    choose = np.random.default_rng(8)
    workload = masks_workload(choose.integers(1, 255, 20).tolist(), 8)
    histogram = np.array([6000, 2000, 1000, 500, 300, 100, 60, 40], dtype=np.int64)
    setting = Setting(
        10_000, 8, (Share("a", 20, 20),), "query", Budget(8.0, 1e-6), Budget(math.inf, 1e-6), 0.1, LEARNING
    )
    outcome = run(setting, histogram, {"a": workload})
    truth = workload.counts(histogram) / 10_000
    wrong = np.abs(workload.record_counts(outcome.synopsis) / len(outcome.synopsis) - truth).max()
    uniform = np.abs(workload.counts(np.ones(8, dtype=np.int64)) / 8 - truth).max()
    return bool(wrong <= uniform / 2)


def flipped_sign(patches: pytest.MonkeyPatch) -> None:
    payoff = Game.payoff
    patches.setattr(Game, "payoff", lambda game, cells: -payoff(game, cells))


def dead(patches: pytest.MonkeyPatch) -> None:
    patches.setitem(LEARNING, "data_rate", 0)


def private_weights_keep_to_their_charge(_: Path) -> bool:
    eager = PrivateWeights(2, Fraction(8), Fraction(1, 8), Fraction(1), 1 << 36)
    return test_private_weights.worst_use(eager, test_private_weights.charge(eager)) <= 1


def uncharged_selections(patches: pytest.MonkeyPatch) -> None:
    patches.setattr(accounting, "exponential_mechanism_rho", lambda epsilon, draws: Fraction(0))


# Streams and charges


def every_stream_is_derived_once(_: Path) -> bool:
    """In a run of either unit no two purposes, and no two analysts, read one stream."""
    derive = KeyedStream.derive
    for unit in ("query", "analyst"):
        seen = list[tuple[str, ...]]()

        def spy(seed: bytes, *labels: str, seen: list[tuple[str, ...]] = seen) -> KeyedStream:
            assert seed == bytes(32)
            seen.append(labels)
            return derive(seed, *labels)

        options = {"rounds": 3, "batch": 1, "density": 1.5, "query_rate": 0.5, "data_rate": 0.5, "threshold": 0}
        setting = Setting(
            4, 3, (Share("a", 2, 2), Share("b", 2, 2)), unit, Budget(4, 0.1), Budget(4, 0.1), 0.1, options
        )
        with patch.object(KeyedStream, "derive", spy):
            run(setting, DATA, {"a": A, "b": B})
        if len(seen) != len(set(seen)) or len(seen) < 6:
            return False
    return True


def reused_stream(patches: pytest.MonkeyPatch) -> None:
    """Repair forgets whose stream it reads."""

    class Forgetful:
        @staticmethod
        def derive(seed: bytes, *labels: str) -> KeyedStream:
            return KeyedStream.derive(seed, labels[0])

    patches.setattr(repair, "KeyedStream", Forgetful)


def charges_come_before_data(place: Path) -> bool:
    """When a worker is started, the budget that it may spend is durably reserved."""
    bench, committed = Bench(place), list[float]()

    def start(_: Runner, job: Job) -> None:
        assert job.table.exists()
        committed.append(bench.charged()["data/shop"][1])

    try:
        with patch.object(Runner, "start", start):
            bench.rounds.run(bench.sealed(), "run")
    finally:
        bench.stop()
    return len(committed) == 1 and committed[0] > 0


def charged_after_the_answer(patches: pytest.MonkeyPatch) -> None:
    """What sealing should reserve is reserved when it is spent."""
    reserve, spend, later = charges.reserve, charges.spend, list[Callable[[], None]]()
    patches.setattr(charges, "reserve", lambda *arguments: later.append(partial(reserve, *arguments)))

    def reserve_and_spend(*arguments: object) -> None:
        later.pop()()
        spend(*arguments)  # type: ignore[arg-type]

    patches.setattr(charges, "spend", reserve_and_spend)


def run(setting: Setting, histogram: NDArray[np.int64], workloads: dict[str, CompiledWorkload]) -> Outcome:
    """One run of the shipped mechanism."""
    equilibrium = Equilibrium()
    return equilibrium.run(setting, equilibrium.plan(setting), histogram, workloads, bytes(32), lambda *_: None)


def holds(check: Callable[[], object]) -> bool:
    """Whether a check raises no assertion."""
    try:
        check()
    except AssertionError:
        return False
    return True


NAMED = (
    "noise scale x 0.9",
    "sensitivity halved",
    "column norm used for replace-one",
    "numeric answer from a sparse vector's test noise",
    "threshold noise shared between analysts and refreshed",
    "stop tested only at positives",
    "realised instead of capped charge",
    "projection cap 2/s",
    "actions deduplicated across units",
    "query player's sign flipped",
    "eta_D = 0",
    "one coin forgotten",
    "records drawn once too often",
    "float noise",
    "reused stream",
    "charge after answer",
)
MUTANTS = [
    Mutant("noise scale x 0.9", noise_hides_one, scaled_noise),
    Mutant("sensitivity halved", detection_hides_a_record, halved_sensitivity_of_statements),
    Mutant("sensitivity halved", analyst_test_hides_a_record, halved_sensitivity_of_analysts),
    Mutant("column norm used for replace-one", a_table_s_answers_hide_a_record, column_norm),
    Mutant(
        "numeric answer from a sparse vector's test noise", answers_are_free_of_test_noise, answers_from_test_noise
    ),
    Mutant("threshold noise shared between analysts and refreshed", detection_couples_nobody, shared_thresholds),
    Mutant("stop tested only at positives", places_hide_an_analyst, stop_only_at_positives),
    Mutant("realised instead of capped charge", the_plan_covers_what_everybody_sees, realised_charge),
    Mutant("projection cap 2/s", no_unit_holds_more_than_its_cap, a_cap_of_two_over_s),
    Mutant("actions deduplicated across units", equal_questions_stay_apart, deduplicated),
    Mutant("query player's sign flipped", the_synopsis_learns, flipped_sign),
    Mutant("eta_D = 0", the_synopsis_learns, dead),
    Mutant("one coin forgotten", noise_hides_one, without_a_coin),
    Mutant("one coin forgotten", private_weights_keep_to_their_charge, uncharged_selections),
    Mutant("records drawn once too often", the_records_drawn_are_charged, drawn_once_too_often),
    Mutant("float noise", noise_is_counted_from_words, float_noise),
    Mutant("reused stream", every_stream_is_derived_once, reused_stream),
    Mutant("charge after answer", charges_come_before_data, charged_after_the_answer),
]


def test_every_named_fault_has_a_mutant() -> None:
    assert tuple(dict.fromkeys(mutant.name for mutant in MUTANTS)) == NAMED


@pytest.mark.parametrize("mutant", MUTANTS, ids=[f"{each.name}: {each.check.__name__}" for each in MUTANTS])
def test_the_mutant_is_caught(mutant: Mutant, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for place in ("shipped", "mutant"):
        (tmp_path / place).mkdir()
    assert mutant.check(tmp_path / "shipped")
    with monkeypatch.context() as patches:
        mutant.switch(patches)
        assert not mutant.check(tmp_path / "mutant")
