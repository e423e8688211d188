"""Equipoise: ask a private table many questions, without telling the other analysts which."""

import os
from importlib import import_module
from typing import TYPE_CHECKING

# gRPC reads this once, when it is imported. Its core would print lines of its own beside the one clear error that
# every call raises; set the variable to look for a fault in the transport.
os.environ.setdefault("GRPC_VERBOSITY", "NONE")

if TYPE_CHECKING:
    from equipoise.clients.analyst import Client
    from equipoise.clients.auditor import Auditor
    from equipoise.clients.operator import Operator
    from equipoise.clients.statement_answer import StatementAnswer
    from equipoise.errors import EquipoiseError
    from equipoise.local.dummy import dummy_table
    from equipoise.model.accounts import Budget
    from equipoise.model.results import AnswerMethod
    from equipoise.model.rounds import RoundState, SessionTerms, Share, Terms
    from equipoise.queries.grant_price import GrantPrice
    from equipoise.queries.predicates import AllOf, Among, AnyOf, Interval, Not, Predicate, attribute
    from equipoise.queries.schema import Attribute, Schema
    from equipoise.queries.statements import (
        CappedSum,
        CountDistinct,
        Marginal,
        Quantile,
        Statement,
        Statistic,
        Sum,
        Variance,
        median,
    )
    from equipoise.queries.statements_file import statements_from_json, statements_to_json
    from equipoise.queries.workload_compiler import CompiledWorkload, compile_workload
    from equipoise.questions.aggregates import count, mean, quantile, share, total
    from equipoise.questions.questions import Questions
    from equipoise.results import Answer, Results
else:
    # Each name is imported when it is first used, so that a program which uses few of them starts at once.
    _HOMES = {
        "equipoise.clients.analyst": ("Client",),
        "equipoise.clients.auditor": ("Auditor",),
        "equipoise.clients.operator": ("Operator",),
        "equipoise.clients.statement_answer": ("StatementAnswer",),
        "equipoise.errors": ("EquipoiseError",),
        "equipoise.local.dummy": ("dummy_table",),
        "equipoise.model.accounts": ("Budget",),
        "equipoise.model.results": ("AnswerMethod",),
        "equipoise.model.rounds": ("RoundState", "SessionTerms", "Share", "Terms"),
        "equipoise.queries.predicates": ("AllOf", "Among", "AnyOf", "Interval", "Not", "Predicate", "attribute"),
        "equipoise.queries.schema": ("Attribute", "Schema"),
        "equipoise.queries.statements": (
            "CappedSum",
            "CountDistinct",
            "Marginal",
            "Quantile",
            "Statement",
            "Statistic",
            "Sum",
            "Variance",
            "median",
        ),
        "equipoise.queries.grant_price": ("GrantPrice",),
        "equipoise.queries.statements_file": ("statements_from_json", "statements_to_json"),
        "equipoise.queries.workload_compiler": ("CompiledWorkload", "compile_workload"),
        "equipoise.questions.aggregates": ("count", "mean", "quantile", "share", "total"),
        "equipoise.questions.questions": ("Questions",),
        "equipoise.results": ("Answer", "Results"),
    }
    _MODULE_OF = {name: module for module, names in _HOMES.items() for name in names}

    def __getattr__(name: str) -> object:
        """Import a public name from its home."""
        if name not in _MODULE_OF:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        found: object = getattr(import_module(_MODULE_OF[name]), name)
        globals()[name] = found
        return found

    def __dir__() -> list[str]:
        return sorted({*globals(), *__all__})


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
    "GrantPrice",
    "Interval",
    "Marginal",
    "Not",
    "Operator",
    "Predicate",
    "Quantile",
    "Questions",
    "Results",
    "RoundState",
    "Schema",
    "SessionTerms",
    "Share",
    "Statement",
    "StatementAnswer",
    "Statistic",
    "Sum",
    "Terms",
    "Variance",
    "attribute",
    "compile_workload",
    "count",
    "dummy_table",
    "mean",
    "median",
    "quantile",
    "share",
    "statements_from_json",
    "statements_to_json",
    "total",
]
