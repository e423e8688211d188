"""A shop of two analysts, and the arguments with which the commands open rounds on it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from harness.dangers import SMALL_TABLE_TYPED

SCHEMA = {
    "version": 1,
    "attributes": [
        {"name": "colour", "categories": ["red", "green"]},
        {"name": "size", "categories": list("smlx")},
    ],
}


STATEMENTS: list[object] = [
    {"marginal": ["colour", "size"]},
    {"among": {"attribute": "colour", "categories": ["red"]}},
    {"not": {"any": [{"among": {"attribute": "size", "categories": ["s", "m"]}}]}},
]


TERMS = [
    "shop",
    "--share",
    "ann=3/10",
    "--share",
    "bob=3/10",
    "--data-delta",
    "1e-4",
    "--analyst-delta",
    "1e-4",
    *SMALL_TABLE_TYPED,
]


BUDGETS = ["--data-epsilon", "8", "--analyst-epsilon", "8"]


PLAN = ["operator", "round", "plan"]


GAME = [
    "--mechanism",
    "equilibrium",
    "--options",
    '{"prior": "none"}',
]  # which charges everybody and makes a synopsis


Run = Callable[..., Any]


def operator_of(place: Path) -> str:
    """The operator's profile."""
    return str(place / "state" / "profiles" / "operator")


def register(run: Run, place: Path, epsilon: int = 20) -> None:
    caps = ("--data-epsilon", epsilon, "--data-delta", "1e-4", "--analyst-epsilon", 20, "--analyst-delta", "1e-4")
    schema = ("--source", "shop.csv", "--schema", place / "schema.json")
    assert run("operator", "operator", "dataset", "register", "shop", *schema, *caps)["records"] == 400
    for name in ("ann", "bob"):
        run("operator", "operator", "analyst", "add", name, "--out", place / name)


def open_round(run: Run) -> str:
    detail = run("operator", "operator", "round", "open", *TERMS, *BUDGETS, *GAME)
    return str(detail["round"]["id"])
