"""What a mechanism draws from: a function of seed, nonce, table, public parameters and workloads alone."""

from __future__ import annotations

import hashlib
import hmac
import json
import math
from dataclasses import replace

from equipoise.accounting import Cost
from equipoise.model.accounts import Budget
from equipoise.model.rounds import MechanismPlan, Share
from equipoise_server.computation.seed import bound_seed
from equipoise_server.mechanisms.interface import PublicParameters

SEED, NONCE, DIGEST = b"s" * 32, b"n" * 32, b"d" * 32
SETTING = PublicParameters(
    100, 8, (Share("ann", 2, 3),), "query", Budget(1.0, 1e-6), Budget(2.0, 1e-6), 0.05, {"rounds": 3}, (2, 4), (1,)
)
ASKED = {"bob": b"other", "ann": b"alike"}
PLAN = MechanismPlan("gaussian", "{}", Cost(rho=7), Cost(epsilon=3), 0.25, 1, 2.0, 3, 0.125)


def test_it_is_computed_as_documented() -> None:
    """HKDF with SHA-256, written out: one step of each kind is enough for 32 bytes."""
    cost = {"rho": 0, "epsilon": 0, "delta": 0, "divergence": 0}
    parameters = {
        "records": 100,
        "universe_size": 8,
        "attributes": [2, 4],
        "ordered": [1],
        "shares": [{"analyst": "ann", "statements": 2, "queries": 3, "sensitivity": 0, "support": 0, "ways": 0}],
        "unit": "query",
        "data_budget": {"epsilon": 1.0, "delta": 1e-6},
        "analyst_budget": {"epsilon": 2.0, "delta": 1e-6},
        "beta": 0.05,
        "options": {"rounds": 3},
    }
    plan = {
        "mechanism": "gaussian",
        "parameters": "{}",
        "data_cost": cost | {"rho": 7},
        "analyst_cost": cost | {"epsilon": 3},
        "data_events": '{"events":[]}',
        "analyst_events": '{"events":[]}',
        "max_half_width": 0.25,
        "max_uncertified": 1,
        "seconds": 2.0,
        "memory_bytes": 3,
        "expected_error": 0.125,
    }
    fields = {"plan": plan, "public_parameters": parameters}
    public = json.dumps(fields, sort_keys=True, separators=(",", ":"))
    info = b"equipoise round v1\n" + DIGEST + hashlib.sha256(public.encode()).digest()
    digests = {name: hashlib.sha256(workload).hexdigest() for name, workload in ASKED.items()}
    asked = json.dumps(digests, sort_keys=True, separators=(",", ":"))
    info += hashlib.sha256(asked.encode()).digest()
    for nonce in (NONCE, None):
        extracted = hmac.digest(nonce or bytes(32), SEED, "sha256")
        expected = hmac.digest(extracted, info + b"\x01", "sha256")
        assert bound_seed(SEED, nonce, DIGEST, SETTING, PLAN, ASKED) == expected


def test_everything_that_it_is_bound_to_changes_it() -> None:
    found = {
        bound_seed(SEED, NONCE, DIGEST, SETTING, PLAN, ASKED),
        bound_seed(bytes(32), NONCE, DIGEST, SETTING, PLAN, ASKED),
        bound_seed(SEED, None, DIGEST, SETTING, PLAN, ASKED),
        bound_seed(SEED, NONCE, bytes(32), SETTING, PLAN, ASKED),
        bound_seed(SEED, NONCE, DIGEST, replace(SETTING, beta=0.1), PLAN, ASKED),
        bound_seed(SEED, NONCE, DIGEST, replace(SETTING, shares=(Share("bob", 2, 3),)), PLAN, ASKED),
        bound_seed(SEED, NONCE, DIGEST, SETTING, replace(PLAN, parameters='{"a":1}'), ASKED),
        bound_seed(SEED, NONCE, DIGEST, SETTING, replace(PLAN, analyst_cost=None), ASKED),
        bound_seed(SEED, NONCE, DIGEST, replace(SETTING, analyst_budget=Budget(math.inf, 0.0)), PLAN, ASKED),
        bound_seed(SEED, NONCE, DIGEST, SETTING, PLAN, {}),
        bound_seed(SEED, NONCE, DIGEST, SETTING, PLAN, {"ann": b"alike"}),
        bound_seed(SEED, NONCE, DIGEST, SETTING, PLAN, {"ann": b"alike", "bob": b""}),
        bound_seed(SEED, NONCE, DIGEST, SETTING, PLAN, {"ann": b"other", "bob": b"alike"}),
    }
    assert len(found) == 13
    assert all(len(seed) == 32 for seed in found)
