"""Equipoise: ask a private table many questions, without telling the other analysts which."""

import os
from importlib import import_module
from typing import TYPE_CHECKING

# gRPC reads this once, when it is imported. Its core would print lines of its own beside the one clear error that
# every call raises; set the variable to look for a fault in the transport.
os.environ.setdefault("GRPC_VERBOSITY", "NONE")

if TYPE_CHECKING:
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
else:
    # Each name is imported when it is first used, so that a program which uses few of them starts at once.
    _HOMES = {
        "equipoise.auditor_client": ("Auditor",),
        "equipoise.client": ("Client",),
        "equipoise.errors": ("EquipoiseError",),
        "equipoise.operator_client": ("Operator",),
        "equipoise.queries": (
            "All",
            "Among",
            "Any",
            "CappedSum",
            "CountDistinct",
            "Interval",
            "Marginal",
            "Not",
            "Predicate",
            "Quantile",
            "Statement",
            "Statistic",
            "Variance",
            "attribute",
            "median",
        ),
        "equipoise.results": ("Answer", "AnswerMethod", "Results"),
        "equipoise.schema": ("Attribute", "Schema"),
        "equipoise.session": ("StatementAnswer",),
        "equipoise.statements": ("statements_from_json", "statements_to_json"),
        "equipoise.views": ("Budget", "RoundState", "SessionTerms", "Share", "Terms"),
        "equipoise.workload": ("CompiledWorkload", "compile_workload"),
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
