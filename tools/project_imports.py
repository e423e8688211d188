"""All that the tools which play rounds import from the two packages and from the tests.

After names or modules have moved, this file is changed and no other.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from harness.rounds_bench import SALT, Bench
from harness.session_terms import attached
from harness.session_terms import release as release_sessions

import equipoise_server.computation.round
import equipoise_server.computation.session
import equipoise_server.rounds.runner
import equipoise_server.workers.session_process
from equipoise.accounting import Cost
from equipoise.errors import EquipoiseError
from equipoise.model.accounts import Budget, Danger
from equipoise.model.rounds import MechanismPlan, SessionTerms, Share, Terms
from equipoise.model.synopsis import Synopsis, record_bytes
from equipoise.queries.predicates import attribute
from equipoise.queries.schema import Attribute, Schema
from equipoise.queries.schema_checks import bin_labels
from equipoise.queries.session_workload import SessionWorkload
from equipoise.queries.statements import (
    CappedSum,
    CountDistinct,
    Marginal,
    Quantile,
    Statement,
    Statistic,
    Variance,
)
from equipoise.queries.workload_compiler import compile_single, compile_statistic, compile_workload
from equipoise.records.bundle import Bundle
from equipoise.records.evidence import Evidence
from equipoise.records.signed_notes import VerifierKey
from equipoise.results import Labels, Results
from equipoise.verification.checks import CheckFailed, VerifierInputs, verify
from equipoise.wire.results import answers_from_chunk, chunk_from_bytes
from equipoise.wire.statements import statement_to_bytes
from equipoise.wire.workloads import workload_to_bytes
from equipoise_server.conversion import epsilon_for
from equipoise_server.datasets.dense_counts import DenseCounts
from equipoise_server.mechanisms.interface import Outcome, PublicParameters
from equipoise_server.mechanisms.low_sensitivity.database_question import database_of
from equipoise_server.mechanisms.online.interface import play
from equipoise_server.mechanisms.registry import MECHANISMS, SESSION_MECHANISMS, mechanism
from equipoise_server.rounds.new_datasets import AccountingMethod
from equipoise_server.rounds.store.results import read_synopsis
from equipoise_server.workers.round_worker import serve_job
from equipoise_server.workers.session_worker import serve_session

# Where the server takes the functions that its worker processes serve, first of a round and then of a session; and
# where these processes take the function that binds a seed to its round.
WORKERS = (
    (equipoise_server.rounds.runner, "serve_job"),
    (equipoise_server.workers.session_process, "serve_session"),
)
SEED_BINDINGS = (
    (equipoise_server.computation.round, "bound_seed"),
    (equipoise_server.computation.session, "bound_seed"),
)

__all__ = [
    "MECHANISMS",
    "SALT",
    "SEED_BINDINGS",
    "SESSION_MECHANISMS",
    "WORKERS",
    "AccountingMethod",
    "Attribute",
    "Bench",
    "Budget",
    "Bundle",
    "CappedSum",
    "CheckFailed",
    "Cost",
    "CountDistinct",
    "Danger",
    "DenseCounts",
    "EquipoiseError",
    "Evidence",
    "Labels",
    "Marginal",
    "MechanismPlan",
    "Outcome",
    "PublicParameters",
    "Quantile",
    "Results",
    "Schema",
    "SessionTerms",
    "SessionWorkload",
    "Share",
    "Statement",
    "Statistic",
    "Synopsis",
    "Terms",
    "Variance",
    "VerifierInputs",
    "VerifierKey",
    "answers_from_chunk",
    "attached",
    "attribute",
    "bin_labels",
    "chunk_from_bytes",
    "compile_single",
    "compile_statistic",
    "compile_workload",
    "database_of",
    "epsilon_for",
    "mechanism",
    "play",
    "read_synopsis",
    "record_bytes",
    "release_sessions",
    "serve_job",
    "serve_session",
    "statement_to_bytes",
    "verify",
    "workload_to_bytes",
]
