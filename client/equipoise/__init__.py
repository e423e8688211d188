"""Equipoise: ask a private table many questions, without telling the other analysts which."""

import os

# gRPC reads this once, when it is imported. Its core would print lines of its own beside the one clear error that
# every call raises; set the variable to look for a fault in the transport.
os.environ.setdefault("GRPC_VERBOSITY", "NONE")

from equipoise.clients.analyst import Client
from equipoise.clients.auditor import Auditor
from equipoise.clients.operator import Operator
from equipoise.clients.session_stream import StatementAnswer
from equipoise.errors import EquipoiseError
from equipoise.model.accounts import Budget
from equipoise.model.results import AnswerMethod
from equipoise.model.rounds import RoundState, SessionTerms, Share, Terms
from equipoise.queries.predicates import AllOf, Among, AnyOf, Interval, Not, Predicate, attribute
from equipoise.queries.schema import Attribute, Schema
from equipoise.queries.statements import (
    CappedSum,
    CountDistinct,
    Marginal,
    Quantile,
    Statement,
    Statistic,
    Variance,
    median,
)
from equipoise.queries.statements_file import statements_from_json, statements_to_json
from equipoise.queries.workload_compiler import CompiledWorkload, compile_workload
from equipoise.results import Answer, Results

__all__ = [
    "AllOf",
    "Among",
    "Answer",
    "AnswerMethod",
    "AnyOf",
    "Attribute",
    "Auditor",
    "Budget",
    "CappedSum",
    "Client",
    "CompiledWorkload",
    "CountDistinct",
    "EquipoiseError",
    "Interval",
    "Marginal",
    "Not",
    "Operator",
    "Predicate",
    "Quantile",
    "Results",
    "RoundState",
    "Schema",
    "SessionTerms",
    "Share",
    "Statement",
    "StatementAnswer",
    "Statistic",
    "Terms",
    "Variance",
    "attribute",
    "compile_workload",
    "median",
    "statements_from_json",
    "statements_to_json",
]
