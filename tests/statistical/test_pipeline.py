"""The whole `equilibrium` on tiny instances: what it really leaks, against what its plan charges, by enumeration.

A search with a fixed seed looks for the instance that leaks most of its charge. No instance it meets may leak more
than the charge, and the worst leaks at least a stated part of it: the bound is neither wrong nor idle. The exact
law is that of the shipped run: a sample of it, drawn by `Equilibrium().run` itself, must fit.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import fields, replace
from fractions import Fraction

import numpy as np
import pytest
from harness.audit_size import AuditSize
from statistical.binomial_bins import deviates
from statistical.exact_pipeline import Pair, pipeline_law
from statistical.exact_sparse_vector import exact_law, pattern_law
from statistical.pipeline_instances import UNIVERSE, WORST_DATA, Instance, data_use, used

from equipoise.errors import EquipoiseError
from equipoise.model.rounds import MechanismPlan
from equipoise.queries.fixed_point import ONE
from equipoise_server.datasets.dense_counts import DenseCounts
from equipoise_server.mechanisms.equilibrium.mechanism import Equilibrium
from equipoise_server.mechanisms.sparse_vector import SparseVector


def random_instance(choose: np.random.Generator) -> Instance:
    """Anything small."""

    def masks() -> tuple[int, ...]:
        return tuple(choose.integers(1, 16, int(choose.integers(1, 3))).tolist())

    def rate() -> float:
        return float(np.exp(choose.uniform(-5, 3)))

    return Instance(
        cells=tuple(choose.integers(0, UNIVERSE, int(choose.integers(1, 4))).tolist()),
        moved=int(choose.integers(0, UNIVERSE)),
        asked=(masks(), masks()),
        changed=int(choose.integers(1, 16)),
        absent=int(choose.choice([0, 2, 6])),
        data_budget=float(choose.choice([0.5, 1, 2, 4, 8])),
        analyst_budget=float(choose.choice([0.5, 1, 2, 4, 8])),
        delta=float(choose.choice([1e-6, 1e-2, 0.1])),
        play=str(choose.choice(["mixed", "sampled"])),
        rounds=int(choose.integers(1, 4)),
        density=float(choose.choice([1, 1.2, 1.5, 3])),
        query_rate=rate(),
        data_rate=rate(),
        threshold=float(choose.random()),
        cut_off=int(choose.integers(1, 3)),
        game_share=float(choose.choice([0.1, 0.5, 0.9])),
    )


def analyst_use(instance: Instance, plan: MechanismPlan) -> float:
    """What replacing a statement of b shows to a, who also sees the synopsis."""
    one, other = (
        pipeline_law(instance.setting, plan, instance.histograms[0], each, viewers=["a"])
        for each in instance.workloads
    )
    return used(Pair.of(one, other), plan.charged_analyst_cost, instance.delta)


def worst_use(
    use: Callable[[Instance, MechanismPlan], float], start: Instance, tries: int, seed: int
) -> tuple[float, Instance]:
    """A climb from `start`: mostly some fields of the worst instance so far are drawn anew, sometimes all."""
    choose = np.random.default_rng(seed)
    worst, at = use(start, Equilibrium().plan(start.setting)), start
    for _ in range(tries):
        instance = random_instance(choose)
        if choose.random() < 0.8:
            kept = choose.random(len(fields(Instance))) < 0.8
            names = [each.name for each, keep in zip(fields(Instance), kept, strict=True) if keep]
            instance = replace(instance, **{name: getattr(at, name) for name in names})
        try:
            plan = Equilibrium().plan(instance.setting)
        except EquipoiseError:
            continue  # no such game within these budgets
        found = use(instance, plan)
        if found >= worst:
            worst, at = found, instance
    return worst, at


WORST_ANALYST = Instance(
    cells=(2, 3, 2),
    moved=0,
    asked=((6,), (11,)),
    changed=6,
    absent=2,
    data_budget=0.5,
    analyst_budget=1.0,
    delta=1e-6,
    play="mixed",
    rounds=3,
    density=3.0,
    query_rate=13.6,
    data_rate=0.00685,
    threshold=0.121,
    cut_off=1,
    game_share=0.1,
)


@pytest.mark.sparse(2)
@pytest.mark.full
@pytest.mark.parametrize(
    ("use", "start", "least"), [(data_use, WORST_DATA, 0.25), (analyst_use, WORST_ANALYST, 0.4)]
)
def test_nothing_leaks_more_than_its_charge_and_the_charge_is_not_idle(
    use: Callable[[Instance, MechanismPlan], float], start: Instance, least: float, audit_size: AuditSize
) -> None:
    worst, at = worst_use(use, start, audit_size.tries, seed=31)
    print(f"\n{use.__name__}: at most {worst:.3f} of the charge, by {at}")
    assert least <= worst <= 1


@pytest.mark.sparse(2)
@pytest.mark.full
@pytest.mark.parametrize("play", ["mixed", "sampled"])
def test_what_runs_has_the_enumerated_law(play: str, audit_size: AuditSize) -> None:
    """False alarms: 1e-6 in all, divided over two plays and two views."""
    instance = replace(
        WORST_ANALYST, asked=((6, 1), (11,)), play=play, absent=0, density=1.5, threshold=0.3,
        data_budget=8.0, analyst_budget=8.0, delta=0.1, query_rate=2.0, data_rate=0.5, game_share=0.9,
    )  # fmt: skip
    setting, asked = instance.setting, instance.workloads[0]
    plan = Equilibrium().plan(setting)
    law = pipeline_law(setting, plan, instance.histograms[0], asked)
    seen: Counter[tuple[int, ...]] = Counter()
    for run in range(2 * audit_size.runs):
        outcome = Equilibrium().run(
            setting,
            plan,
            DenseCounts(instance.histograms[0]),
            asked,
            run.to_bytes(32, "big"),
            lambda phase, done, total: None,
        )
        key = outcome.synopsis.cells.tolist()
        for answers in outcome.answers.values():
            # What lies beyond 0 and 1 is taken together in the enumerated law.
            key += [*np.clip(answers.values, 0, ONE).tolist(), *answers.methods.tolist()]
        seen[tuple(key)] += 1
    assert seen.keys() <= law.keys()
    assert sum(law.values()) == pytest.approx(1, abs=1e-9)
    for view in (slice(None), slice(3, None)):  # everything; the answers alone
        joint: Counter[tuple[int, ...]] = Counter()
        for key, chance in law.items():
            joint[key[view]] += chance  # type: ignore[assignment]
        counts: Counter[tuple[int, ...]] = Counter()
        for key, count in seen.items():
            counts[key[view]] += count
        drawn = np.array([counts[key] for key in joint])
        assert not deviates(drawn, np.array(list(joint.values())), 1e-6 / 4)


@pytest.mark.parametrize("cut_off", [1, 2, 3])
def test_the_closed_form_of_the_sparse_vector_is_the_sum(cut_off: int) -> None:
    vector = SparseVector(Fraction(1, cut_off), 2, 5, cut_off)
    for scores in ((3, 8, 5, 6), (0, 0, 0, 9), (20, -20, 5)):
        summed, closed = exact_law(vector, scores, cut_off), pattern_law(vector, scores, cut_off)
        assert summed.keys() == closed.keys()
        for pattern, chance in summed.items():
            assert closed[pattern] == pytest.approx(chance, abs=1e-12)
