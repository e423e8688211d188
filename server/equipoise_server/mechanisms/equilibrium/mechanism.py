"""`equilibrium`: one hypothesis for all analysts, then intervals or repair. For both units of protection.

The hypothesis is a synopsis: the records that a game draws, records laid out along a prior, or both, where the game
starts from the prior. Without a prior it is HRU's game as printed.

Source: Hsu, Roth, Ullman (2012), Algorithms 1 to 4, as corrected in mechanisms sections 2 to 5 and 9.

Formal guarantees with a prior. For the people in the table: the sum of the rhos of its measurement, the game and
the tests (adaptive composition: each reads the outputs of those before it); of the game and the tests alone where
the measurement is the dataset's standing one, which was charged when it was made. For the analysts: the game's cost
alone, as printed; nothing where nothing is played, as no workload has a part in the prior.

Formal guarantees without. For the people in the table: the sum of the game's rho and of repair's, charged in full:
unit = query `sum_a c_a e0^2 / 2` for detection and the noise's rho `sum_a c_a` times for answers; unit = analyst
one test for each analyst and private multiplicative weights for each of the capped places. For one statement of one
analyst, against all other analysts together: the game's cost alone, as repair shows nothing of one analyst to
another. For all statements of one analyst: the game's cost with the analyst as one unit, and that of hiding who got
a repair place. With probability `1 - beta` every truth lies in its answer's interval. All up to the truncation of
the samplers, charged to delta.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from equipoise.model.results import Answers
from equipoise.model.rounds import MechanismPlan
from equipoise.model.synopsis import Synopsis
from equipoise.queries.fixed_point import on_grid
from equipoise.queries.joined_workloads import concatenate
from equipoise.queries.workload_builder import WorkloadBuilder
from equipoise.queries.workload_compiler import CompiledWorkload
from equipoise_server.datasets.counts import Counts
from equipoise_server.game.equilibrium import Game
from equipoise_server.game.query_player import Units
from equipoise_server.mechanisms.answers import uncertified
from equipoise_server.mechanisms.checking import planned_workloads
from equipoise_server.mechanisms.equilibrium.cost_model import Size, every_query_a_unit
from equipoise_server.mechanisms.equilibrium.parameters import EquilibriumParameters
from equipoise_server.mechanisms.equilibrium.plan import planned_starts
from equipoise_server.mechanisms.equilibrium.start import begin, certify_all
from equipoise_server.mechanisms.interface import OnStep, Outcome, PublicParameters
from equipoise_server.mechanisms.prior.choice import Start
from equipoise_server.mechanisms.prior.support import Support, Universe
from equipoise_server.mechanisms.repair.analyst_repair import AnalystRepairParameters, Served, repair_analysts
from equipoise_server.mechanisms.repair.statement_repair import SynopsisCounts, repair
from equipoise_server.mechanisms.repair.weights_hypothesis import starting_weights
from equipoise_server.randomness.stream import KeyedStream


class Equilibrium:
    """The mechanism `equilibrium`."""

    name = "equilibrium"
    fitted = False

    def plan(self, setting: PublicParameters) -> MechanismPlan:
        """Plan a round from public facts, by `selection`. Options may force single parameters."""
        return self.starts(setting)[0].plan

    def starts(self, setting: PublicParameters) -> list[Start]:
        """Plan a round from every prior that it may start from, best first."""
        return planned_starts(self.name, setting)

    def run(
        self,
        setting: PublicParameters,
        plan: MechanismPlan,
        data: Counts,
        workloads: Mapping[str, CompiledWorkload],
        seed: bytes,
        progress: OnStep,
    ) -> Outcome:
        """Return the game on all workloads together, then each analyst's repair alone."""
        present = planned_workloads(setting, data, workloads)
        parameters = EquilibriumParameters.from_json(plan.parameters)
        together = joined(setting, list(present.values()))
        begun = None if parameters.start is None else begin(parameters.start, setting, data, seed, progress)
        support: Support = Universe(together.schema_sizes) if begun is None else begun.support
        queries = support.queries(together)
        progress("counting", 0, 1)
        counts = data.count(together)
        progress("counting", 1, 1)
        places = np.zeros(0, dtype=np.int64)
        if parameters.game is not None:
            game = Game(
                parameters=parameters.game,
                queries=queries,
                units=units_of(setting, together, list(present.values())),
                counts=counts,
                records=setting.records,
                start=None if begun is None else begun.prior.potential,
            )
            places = game.play(
                KeyedStream.derive(seed, "game/records"),
                KeyedStream.derive(seed, "game/actions"),
                lambda done, total: progress("playing", done, total),
            )
        if begun is not None:
            places = np.concatenate([places, begun.prior_records])
        synopsis = Synopsis.from_categories(support.records(places), support.sizes)
        synopsis_counts = SynopsisCounts(queries.record_counts(places), len(places))
        if begun is not None:
            return Outcome(certify_all(begun, present, counts, synopsis_counts, seed, progress), synopsis)
        start = starting_weights(synopsis, setting.universe_size)
        answers = repair_all(setting, parameters, present, counts, synopsis_counts, start, seed, progress)
        return Outcome(answers, synopsis)


def joined(setting: PublicParameters, present: Sequence[CompiledWorkload]) -> CompiledWorkload:
    """Return all workloads, one after another. Where nobody is present: no query.

    Then every unit of the game is padding, and the synopsis is drawn from what the game starts from.
    """
    return concatenate(present) if present else WorkloadBuilder(setting.axes).build()


def unrepaired(workloads: Mapping[str, CompiledWorkload], synopsis: SynopsisCounts) -> dict[str, Answers]:
    """Return the synopsis's answers as they are, none of them certified; `synopsis` holds all queries in order."""
    answers, start = {}, 0
    for analyst, workload in workloads.items():
        own = slice(start, start + workload.query_count)
        start = own.stop
        answers[analyst] = uncertified(on_grid(synopsis.counts[own], synopsis.size))
    return answers


def units_of(setting: PublicParameters, together: CompiledWorkload, present: Sequence[CompiledWorkload]) -> Units:
    """Return what is protected as one: statements or analysts; or each query, where no analyst is protected at all.

    Public places that nobody fills are padding.
    """
    if every_query_a_unit(setting):
        offsets = np.arange(together.query_count + 1, dtype=np.int64)
    elif setting.unit == "query":
        offsets = together.statement_offsets
    else:
        sizes = [workload.query_count for workload in present if workload.query_count]
        offsets = np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)]).astype(np.int64)
    return Units(offsets, Size.of(setting).units - (len(offsets) - 1))


def repair_all(
    setting: PublicParameters,
    parameters: EquilibriumParameters,
    workloads: Mapping[str, CompiledWorkload],
    counts: NDArray[np.int64],
    synopsis: SynopsisCounts,
    start: NDArray[np.float64],
    seed: bytes,
    progress: OnStep,
) -> dict[str, Answers]:
    """Return every analyst's repair; `counts` and `synopsis` hold all analysts' queries one after another.

    `start`: float64[|X|], the public hypothesis from which analysts are answered afresh (unit = analyst).

    Args:
        setting: of the round.
        parameters: of the plan.
        workloads: of each analyst who submitted one.
        counts: int64[k], the true counts of all analysts' queries, one after another.
        synopsis: its counts of the same queries.
        start: float64[|X|], the public hypothesis from which analysts are answered afresh (unit = analyst).
        seed: of the round, 32 bytes.
        progress: is told when repair begins.
    """
    if parameters.repair is None:
        return unrepaired(workloads, synopsis)
    # Told once, before anything: how long each analyst's repair takes shows who was served badly.
    progress("repairing", 0, 1)
    served, begin = {}, 0
    for analyst, workload in workloads.items():
        own = slice(begin, begin + workload.query_count)
        begin = own.stop
        served[analyst] = Served(workload, counts[own], replace(synopsis, counts=synopsis.counts[own]))
    if isinstance(parameters.repair, AnalystRepairParameters):
        analysts = [share.analyst for share in setting.shares]
        return repair_analysts(parameters.repair, analysts, served, setting.records, start, seed)
    return {
        name: repair(parameters.repair, name, own.workload, own.counts, setting.records, own.synopsis, seed)
        for name, own in served.items()
    }
