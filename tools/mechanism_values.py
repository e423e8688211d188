"""What every mechanism promises, costs and answers, from seeds that are given to it directly."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from project_imports import (
    MECHANISMS,
    SESSION_MECHANISMS,
    Budget,
    Cost,
    EquipoiseError,
    Labels,
    MechanismPlan,
    Outcome,
    PublicParameters,
    Results,
    SessionWorkload,
    Share,
    Statement,
    Statistic,
    compile_single,
    compile_statistic,
    compile_workload,
    database_of,
    epsilon_for,
    mechanism,
    play,
)
from round_cases import (
    ASKED,
    ROUND_OPTIONS,
    SCHEMA,
    SEED,
    STATISTICS,
    TABLE,
    UNITS,
    Values,
    setting_of,
    shares_of,
)


def cost_values(cost: Cost | None, delta: float) -> Values | None:
    """A charge in its whole units, and as an epsilon at a delta."""
    if cost is None:
        return None
    epsilon = None if cost.divergence else epsilon_for(cost, delta)
    return {
        "rho in 10^-12": cost.rho,
        "epsilon in 10^-12": cost.epsilon,
        "delta in 10^-18": cost.delta,
        "Renyi divergence in 10^-12": cost.divergence,
        "epsilon at the budget's delta": epsilon if epsilon is None or math.isfinite(epsilon) else "infinite",
    }


def numbers_in(value: object) -> Iterator[float]:
    """All numbers of a JSON value."""
    if isinstance(value, Mapping):
        value = list(value.values())
    if isinstance(value, list):
        for each in value:
            yield from numbers_in(each)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield value


def plan_values(plan: MechanismPlan, data_delta: float, analyst_delta: float) -> Values:
    """What a plan promises and costs. Its parameters without their names, as these may change."""
    return {
        "mechanism": plan.mechanism,
        "largest half-width": plan.max_half_width,
        "most answers without an interval": plan.max_uncertified,
        "seconds": plan.seconds,
        "bytes of memory": plan.memory_bytes,
        "data ledger": cost_values(plan.data_cost, data_delta),
        "analyst ledger": cost_values(plan.analyst_cost, analyst_delta),
        "numbers among its parameters": sorted(numbers_in(json.loads(plan.parameters))),
    }


def result_rows(results: Results) -> list[list[Any]]:
    """Statement, cell, value, interval, standard error and way of answering, a row a query."""
    return [
        [
            each.statement,
            " / ".join(each.cell),
            each.value,
            each.low,
            each.high,
            each.standard_error,
            each.method.label,
        ]
        for each in results
    ]


def outcome_values(outcome: Outcome, asked: Mapping[str, Sequence[Statement]]) -> Values:
    """Every analyst's answers, and how many records of the synopsis lie in each cell."""
    answers = {}
    for analyst, own in outcome.answers.items():
        labels = Labels(SCHEMA, tuple(asked[analyst]))
        answers[analyst] = result_rows(Results("", own, labels))
    return {"answers": answers, "synopsis": synopsis_values(outcome.synopsis.cells.tolist())}


def synopsis_values(records: Sequence[int]) -> Values:
    """A synopsis as its counts by cell, and the first records of it in their order."""
    counts = np.bincount(records, minlength=SCHEMA.universe_size) if len(records) else np.zeros(0, np.int64)
    return {"records": len(records), "counts by cell": counts.tolist(), "first": list(records[:24])}


def statement_parts() -> Values:
    """What each statement means on the table: exact counts, sensitivity, support; a statistic's value."""
    found: Values = {}
    for analyst, statements in ASKED.items():
        for number, statement in enumerate(statements):
            own = compile_single(statement, SCHEMA)
            found[f"{analyst} {number}"] = {
                "counts": TABLE.count(own).tolist(),
                "L1 sensitivity": own.l1_sensitivity,
                "support": own.support,
            }
    for analyst, statements in STATISTICS.items():
        for number, statement in enumerate(statements):
            if isinstance(statement, Statistic):
                compiled = compile_statistic(statement, SCHEMA, "statement")
                values = compiled.values(database_of(SCHEMA.sizes, TABLE))
                found[f"statistics of {analyst} {number}"] = {"values in 2^-40": values.tolist()}
    return found


def round_parts() -> Values:
    """A round of every mechanism, in both units, with and without declared sensitivities and supports."""
    found: Values = {}
    workloads = {analyst: compile_workload(statements, SCHEMA) for analyst, statements in ASKED.items()}
    some = {analyst: own for analyst, own in workloads.items() if analyst != "bob"}
    for name in sorted(MECHANISMS):
        for unit, words in UNITS.items():
            for number, options in enumerate(ROUND_OPTIONS.get(name, [{}])):
                for declared in (False, True):
                    setting = setting_of(unit, shares_of(declared), options)
                    which = f"{name}, {words}, {'declared' if declared else 'nothing declared'}, options {number}"
                    found[which] = _round(setting, name, some if declared else workloads)
        # Without protection of the analysts, as simulations may.
        unprotected = setting_of(
            "query",
            shares_of(declared=False),
            ROUND_OPTIONS.get(name, [{}])[0],
            analyst_budget=Budget(math.inf, 1e-6),
        )
        found[f"{name}, nobody's questions are protected"] = _round(unprotected, name, workloads)
    return found


def _round(setting: PublicParameters, name: str, workloads: Mapping[str, Any]) -> Values:
    """A plan and a run, or the refusal."""
    try:
        plan = mechanism(name).plan(setting)
    except EquipoiseError as refusal:
        return {"refused": type(refusal).__name__}
    outcome = mechanism(plan.mechanism).run(setting, plan, TABLE, workloads, SEED, lambda *_: None)
    planned = plan_values(plan, setting.data_budget.delta, setting.analyst_budget.delta)
    return {"plan": planned} | outcome_values(outcome, ASKED)


def auto_parts() -> Values:
    """Which mechanism is chosen for some settings, and what it promises."""
    found: Values = {}
    for unit, words in UNITS.items():
        for epsilon in (0.1, 10.0):
            shares = [Share(f"analyst {number}", 30, 120) for number in range(5)]
            setting = setting_of(unit, shares, {}, data_budget=Budget(epsilon, 1e-7), records=100_000)
            plan = mechanism("auto").plan(setting)
            found[f"{words}, epsilon {epsilon} of the data"] = plan_values(
                plan, setting.data_budget.delta, setting.analyst_budget.delta
            )
    return found


def candidates() -> list[dict[str, list[int]]]:
    """Databases among which a session of statistics chooses, as options hold them."""
    cells = np.arange(SCHEMA.universe_size)
    tilted = [np.rint(200 * np.exp(tilt * cells / cells.size)).astype(int) for tilt in np.linspace(-2, 2, 9)]
    return [{"cells": cells.tolist(), "counts": counts.tolist()} for counts in tilted]


def session_parts() -> Values:
    """A session of every mechanism for them, and the slots at which nothing more is learnt from the data."""
    found: Values = {}
    two = {analyst: statements for analyst, statements in ASKED.items() if analyst != "cyd"}
    given: dict[str, tuple[Mapping[str, Sequence[Statement]], dict[str, object]]] = {
        "online": (two, {"updates": 3, "threshold": 0.02}),
        "online_private": (two, {}),
        "low_sensitivity": (STATISTICS, {"candidates": candidates(), "sensitivity": "1/400", "prior": "none"}),
    }
    for name, (asked, options) in given.items():
        made = SESSION_MECHANISMS[name]
        compiled = {analyst: [compiled_alone(each) for each in own] for analyst, own in asked.items()}
        shares = [Share(name, len(own), sum(each.query_count for each in own)) for name, own in compiled.items()]
        length = max(len(own) for own in compiled.values()) * (1 if made.slotted else len(compiled))
        protected = {} if made.slotted else {"analyst_budget": Budget(math.inf, 0.0)}
        setting = setting_of("query", shares, options | {"length": length}, **protected)
        plan = made.plan(setting)
        slots = {
            analyst: SessionWorkload(
                np.arange(place, len(compiled) * len(own), len(compiled), dtype=np.int64), tuple(own)
            )
            for place, (analyst, own) in enumerate(compiled.items())
        }
        outcome = play(made, setting, plan, TABLE, slots, SEED, lambda *_: None)
        planned = plan_values(plan, setting.data_budget.delta, setting.analyst_budget.delta)
        found[name] = {"plan": planned} | outcome_values(outcome, asked)
    return found


def compiled_alone(statement: Statement) -> Any:
    """One statement, as a session takes it."""
    if isinstance(statement, Statistic):
        return compile_statistic(statement, SCHEMA, "statement")
    return compile_single(statement, SCHEMA)
