"""`equilibrium`: the shared game, then repair. For unit = query.

Source: Hsu, Roth, Ullman (2012), Algorithms 1 to 4, as corrected in mechanisms sections 2 to 5 and 9.

Formal guarantees. For the people in the table: the sum of the game's rho, `sum_a c_a e0^2 / 2` for detection and
`sum_a c_a e1^2 / 2` for answers, charged in full. For one statement of one analyst, against all other analysts
together: the game's cost alone, as repair shows nothing of one analyst to another. With probability `1 - beta`
every certified answer is within its bound. All up to the truncation of the samplers, charged to delta.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from equipoise.workload import CompiledWorkload, concatenate
from equipoise_server.game.equilibrium import Game
from equipoise_server.game.query_player import Units
from equipoise_server.mechanisms.equilibrium_plan import EquilibriumParameters, plan_equilibrium
from equipoise_server.mechanisms.interface import NO_BOUND, Answers, Outcome, Plan, Progress, Setting
from equipoise_server.mechanisms.repair import UNCERTIFIED, RepairParameters, Synopsis, on_grid, repair
from equipoise_server.mechanisms.tuning import Size, every_query_a_unit
from equipoise_server.randomness.stream import KeyedStream


class Equilibrium:
    """The mechanism `equilibrium`."""

    name = "equilibrium"

    def plan(self, setting: Setting) -> Plan:
        """Parameters from public things, by `tuning`; single ones may be forced through the options."""
        return plan_equilibrium(self.name, setting)

    def run(
        self,
        setting: Setting,
        plan: Plan,
        histogram: NDArray[np.int64],
        workloads: Mapping[str, CompiledWorkload],
        seed: bytes,
        progress: Progress,
    ) -> Outcome:
        """The game on all workloads together, then each analyst's repair alone."""
        check_inputs(setting, histogram, workloads)
        parameters = EquilibriumParameters.from_json(plan.parameters)
        present = [share.analyst for share in setting.shares if share.analyst in workloads]
        together = concatenate([workloads[analyst] for analyst in present])
        progress("counting", 0, 1)
        counts = together.counts(histogram)
        progress("counting", 1, 1)
        game = Game(
            parameters=parameters.game,
            workload=together,
            units=_units(setting, together),
            counts=counts,
            records=setting.records,
        )
        synopsis = game.play(
            KeyedStream.derive(seed, "game/records"),
            KeyedStream.derive(seed, "game/actions"),
            lambda done, total: progress("playing", done, total),
        )
        mine = {analyst: workloads[analyst] for analyst in present}
        served = Synopsis(together.record_counts(synopsis), len(synopsis))
        if parameters.repair is None:
            return Outcome(unrepaired(mine, served), synopsis)
        return Outcome(
            repair_each(parameters.repair, setting.records, mine, counts, served, seed, progress), synopsis
        )


def _units(setting: Setting, workload: CompiledWorkload) -> Units:
    """What the projection caps: every statement, or every query where the setting makes each a unit of its own."""
    offsets = workload.statement_offsets
    if every_query_a_unit(setting):
        offsets = np.arange(workload.query_count + 1, dtype=np.int64)
    return Units(offsets, Size.of(setting).units - (len(offsets) - 1))


def unrepaired(workloads: Mapping[str, CompiledWorkload], synopsis: Synopsis) -> dict[str, Answers]:
    """The synopsis's answers as they are, none of them certified; `synopsis` holds all queries in order."""
    answers, start = {}, 0
    for analyst, workload in workloads.items():
        own = slice(start, start + workload.query_count)
        start = own.stop
        answers[analyst] = Answers(
            on_grid(synopsis.counts[own], synopsis.size),
            np.full(workload.query_count, UNCERTIFIED, dtype=np.uint8),
            np.full(workload.query_count, NO_BOUND, dtype=np.int64),
        )
    return answers


def check_inputs(setting: Setting, histogram: NDArray[np.int64], workloads: Mapping[str, CompiledWorkload]) -> None:
    """Raises `ValueError` where data or workloads are not what was planned for: every promise rests on that."""
    if histogram.size != setting.universe_size or int(histogram.sum()) != setting.records:
        raise ValueError("the histogram is not of the planned universe and number of records")
    shares = {share.analyst: share for share in setting.shares}
    for analyst, workload in workloads.items():
        share = shares.get(analyst)
        fits = share and workload.statement_count <= share.statements and workload.query_count <= share.queries
        if not fits:
            raise ValueError("a workload is larger than its analyst's share")


def repair_each(
    parameters: RepairParameters,
    records: int,
    workloads: Mapping[str, CompiledWorkload],
    counts: NDArray[np.int64],
    synopsis: Synopsis,
    seed: bytes,
    progress: Progress,
) -> dict[str, Answers]:
    """Every analyst's repair; `counts` and `synopsis` hold all analysts' queries one after another."""
    answers, start = {}, 0
    for done, (analyst, workload) in enumerate(workloads.items(), start=1):
        own = slice(start, start + workload.query_count)
        start = own.stop
        answers[analyst] = repair(
            parameters,
            analyst,
            workload,
            counts[own],
            records,
            replace(synopsis, counts=synopsis.counts[own]),
            seed,
        )
        progress("repairing", done, len(workloads))
    return answers


def repair_uniform_guess(
    setting: Setting,
    plan: Plan,
    histogram: NDArray[np.int64],
    workloads: Mapping[str, CompiledWorkload],
    seed: bytes,
) -> dict[str, Answers]:
    """The same repair over the uniform guess instead of a synopsis: what repair does without any game."""
    together = concatenate(list(workloads.values()))
    guess = Synopsis(together.counts(np.ones(setting.universe_size, dtype=np.int64)), setting.universe_size)
    parameters = EquilibriumParameters.from_json(plan.parameters).repair
    if parameters is None:
        return unrepaired(workloads, guess)
    return repair_each(
        parameters,
        setting.records,
        workloads,
        together.counts(histogram),
        guess,
        seed,
        lambda phase, done, total: None,
    )
