"""A changed cap of one of several datasets is judged by how many people are in that one."""

from __future__ import annotations

import json

import pytest
from harness.audit_failures import failures
from harness.custodian import Custodian

from equipoise.accounting import Cost


@pytest.mark.parametrize(
    ("dataset", "one_in", "words"),
    [
        ("small", 101, ""),
        ("small", 100, "cap.delta: 0.01 is 1 in 100 people or more"),
        ("shop", 401, ""),
        ("shop", 400, "cap.delta: 0.0025 is 1 in 400 people or more"),
    ],
)
def test_a_changed_cap_is_judged_by_the_people_of_its_own_dataset(
    custodian: Custodian, dataset: str, one_in: int, words: str
) -> None:
    custodian.register("small")
    custodian.change_last("dataset", records=100)
    cap = {"cap": {"epsilon": 3.0, "delta": 1 / one_in}, "accepted": []}
    custodian.append("set-cap", f"data/{dataset}", "", Cost(), json.dumps(cap))
    problem = failures(custodian).get("A8", "")
    assert words in problem
    assert bool(problem) is bool(words)
