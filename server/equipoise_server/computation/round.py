"""Computes a round: the answers and the synopsis from the table, the workloads and the seed.

A round is a function of (seed, data, workloads, parameters). So a run has no checkpoints: if a worker dies, another
one computes the same bytes, and so does a replay.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from hashlib import sha256

from equipoise.errors import DataLoss
from equipoise.model.rounds import MechanismPlan
from equipoise.queries.schema import Schema
from equipoise.queries.workload_compiler import compile_workload
from equipoise.wire.session_workload import compile_asked
from equipoise.wire.workloads import workload_from_bytes
from equipoise_server.computation.data import data_for
from equipoise_server.computation.seed import bound_seed
from equipoise_server.computation.session import AnswerChain, check_live_answers
from equipoise_server.datasets.counts import Counts
from equipoise_server.datasets.source import Source
from equipoise_server.mechanisms.interface import OnStep, Outcome, PublicParameters
from equipoise_server.mechanisms.online.interface import play
from equipoise_server.mechanisms.registry import (
    SEPARATE,
    SESSION_MECHANISMS,
    check_workload,
    mechanism,
    session_mechanism,
)


@dataclass(frozen=True)
class Job:
    """The inputs of a run, except the table itself.

    Attributes:
        round_id: the round's id.
        source: where the table is.
        schema: the table's attributes, as JSON.
        setting: the round's public parameters.
        plan: the round's plan.
        workloads: the submitted bytes by analyst, in the order of the shares.
        seed: the committed seed, 32 bytes; the mechanism gets it bound to the other inputs.
        data_digest: the table's digest at registration, 32 bytes.
        audit_nonce: the auditor's 32 bytes; None without.
        answer_chains: of a session, those that bind the answers that were given while it was open, by analyst.
    """

    round_id: str
    source: Source
    schema: str
    setting: PublicParameters
    plan: MechanismPlan
    workloads: Mapping[str, bytes]
    seed: bytes = field(repr=False)
    data_digest: bytes
    audit_nonce: bytes | None = None
    answer_chains: Mapping[str, AnswerChain] = field(default_factory=dict)


def compute_round(job: Job, progress: OnStep) -> Outcome:
    """Compute a round's answers and synopsis: a pure function of the job and of the table it names.

    Raises:
        InvalidArgument: a record does not fit the schema, or the mechanism does not answer a statement.
        DataLoss: the table is not the registered one, or other answers were given while the session was open.
    """
    progress("load", 0, 1)
    schema = Schema.from_json(job.schema)
    data = data_for(job.plan, job.source, schema, job.setting, job.data_digest, partial(progress, "load"))
    progress("load", 1, 1)
    session = job.plan.mechanism in SESSION_MECHANISMS
    # Other mechanisms bind each stream by itself: a session's to its statements, an analyst's to its own workload.
    bound = {} if session or job.plan.mechanism in SEPARATE else job.workloads
    seed = bound_seed(job.seed, job.audit_nonce, data.digest, job.setting, job.plan, bound)
    if session:
        return _session(job, schema, data.counts, seed, progress)
    workloads = {}
    for done, (analyst, workload) in enumerate(job.workloads.items()):
        progress("compile", done, len(job.workloads))
        compiled = compile_workload(workload_from_bytes(workload), schema)
        check_workload(job.plan, compiled)
        workloads[analyst] = replace(compiled, digest=sha256(workload).digest())
    progress("compile", len(workloads), len(workloads))
    if not workloads and job.setting.shares:
        # The analysts must not see that nobody submitted a workload: compute a synopsis without any queries.
        workloads[job.setting.shares[0].analyst] = compile_workload((), schema)
    run = mechanism(job.plan.mechanism).run
    outcome = run(job.setting, job.plan, data.counts, workloads, seed, progress)
    return replace(outcome, answers={analyst: outcome.answers[analyst] for analyst in job.workloads})


def _session(job: Job, schema: Schema, data: Counts, seed: bytes, progress: OnStep) -> Outcome:
    asked = {analyst: compile_asked(workload, schema) for analyst, workload in job.workloads.items()}
    played = session_mechanism(job.plan.mechanism)
    outcome = play(played, job.setting, job.plan, data, asked, seed, progress)
    for analyst, chain in job.answer_chains.items():
        if analyst not in asked:
            raise DataLoss("the statements of the session are missing from the store")
        check_live_answers(chain, job.workloads[analyst], asked[analyst], outcome.answers[analyst])
    return outcome
