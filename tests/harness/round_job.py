"""The job of a small round, with its table."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from equipoise.model.accounts import Budget
from equipoise.model.rounds import Share
from equipoise.queries.predicates import attribute
from equipoise.queries.schema import Attribute, Schema
from equipoise.queries.statements import Marginal
from equipoise.wire.workloads import workload_to_bytes
from equipoise_server.computation.round import Job
from equipoise_server.datasets.dense_counts import DenseCounts
from equipoise_server.datasets.digest import data_digest
from equipoise_server.datasets.source import source_at
from equipoise_server.mechanisms.interface import PublicParameters
from equipoise_server.mechanisms.registry import mechanism

TABLE = "table.csv"
SCHEMA = Schema((Attribute("colour", ("red", "green")),))


def round_job(directory: Path) -> Job:
    """A job in which ann asks three counts of a table of 100 records, and bob nothing."""
    table = directory / TABLE
    table.write_text("colour\n" + "red\n" * 70 + "green\n" * 30)
    setting = PublicParameters(
        records=100,
        universe_size=2,
        shares=(Share("bob", 2, 2), Share("ann", 2, 3)),
        unit="query",
        data_budget=Budget(20.0, 1e-3),
        analyst_budget=Budget(20.0, 1e-3),
        beta=0.05,
        options={},
    )
    red = attribute("colour") == "red"
    return Job(
        round_id="r",
        source=source_at(table),
        schema=SCHEMA.to_json(),
        setting=setting,
        plan=mechanism("equilibrium").plan(setting),
        workloads={"ann": workload_to_bytes((red, Marginal(("colour",))))},
        seed=bytes(32),
        data_digest=data_digest(DenseCounts(np.array([70, 30]))),
    )
