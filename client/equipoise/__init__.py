"""Equipoise: ask a private table many questions, without telling the other analysts which."""

import os

# gRPC reads this once, when it is imported. Its core would print lines of its own beside the one clear error that
# every call raises; set the variable to look for a fault in the transport.
os.environ.setdefault("GRPC_VERBOSITY", "NONE")

from equipoise.auditor_client import Auditor
from equipoise.client import Client
from equipoise.errors import EquipoiseError
from equipoise.operator_client import Operator
from equipoise.queries import (
    All,
    Among,
    Any,
    CappedSum,
    CountDistinct,
    Interval,
    Marginal,
    Not,
    Predicate,
    Quantile,
    Statement,
    Statistic,
    Variance,
    attribute,
    median,
)
from equipoise.results import Answer, AnswerMethod, Results
from equipoise.schema import Attribute, Schema
from equipoise.session import StatementAnswer
from equipoise.statements import statements_from_json, statements_to_json
from equipoise.views import Budget, RoundState, SessionTerms, Share, Terms
from equipoise.workload import CompiledWorkload, compile_workload

__all__ = [
    "All",
    "Among",
    "Answer",
    "AnswerMethod",
    "Any",
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
