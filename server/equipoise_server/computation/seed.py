"""Derives the seed of a mechanism: a round's committed seed, bound to its data, public parameters and workloads."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from equipoise.model.rounds import MechanismPlan
from equipoise.records.canonical import canonical_json
from equipoise.records.public_facts import BUDGET, PLAN, SHARE
from equipoise.records.sealed_seeds import NONCE_BYTES, SEED_BYTES
from equipoise_server.mechanisms.interface import PublicParameters


def bound_seed(
    seed: bytes,
    nonce: bytes | None,
    digest: bytes,
    setting: PublicParameters,
    plan: MechanismPlan,
    workloads: Mapping[str, bytes],
) -> bytes:
    """Derive the mechanism's 32-byte seed: the committed seed, bound to one nonce, table, plan and workloads.

    HKDF-SHA256 (RFC 5869) of the seed; salt: the nonce, or zeros; info: the data's `digest`, that of the public
    parameters and that of the workloads. Assumption: HMAC-SHA256 is a pseudorandom function, also where its
    message is the secret (Krawczyk, Crypto 2010). Then, for a seed that is uniform and drawn without regard to the
    rest, the results for any nonces, tables, parameters and workloads cannot feasibly be told from uniform bytes
    drawn apart for each. So every guarantee of a mechanism is unchanged, and noise under one seed never cancels
    between two tables, two plans, or two rounds' workloads. The round's id and times have no part in it;
    `docs/decisions/0005-seed-binding.md` says why.

    Args:
        seed: The committed seed, 32 bytes.
        nonce: The auditor's 32 bytes; None without.
        digest: The table's SHA-256, 32 bytes (`datasets.digest`).
        setting: The round's public parameters.
        plan: The round's plan.
        workloads: The sealed workloads' exact bytes, by analyst. None of a session, whose streams are bound to its
            statements (`mechanisms.online.streams`), nor of a mechanism that answers each analyst alone, from
            streams that are bound to its own workload (`mechanisms.own_stream`).
    """
    public = canonical_json({"plan": PLAN.encode(plan), "public_parameters": setting_fields(setting)})
    asked = canonical_json({name: hashlib.sha256(workload).hexdigest() for name, workload in workloads.items()})
    info = b"equipoise round v1\n" + digest + hashlib.sha256(public).digest() + hashlib.sha256(asked).digest()
    return HKDF(SHA256(), SEED_BYTES, salt=nonce or bytes(NONCE_BYTES), info=info).derive(seed)


def setting_fields(setting: PublicParameters) -> dict[str, Any]:
    """Return the public parameters of a round as they are bound to its seed, each under its own key."""
    return {
        "records": setting.records,
        "universe_size": setting.universe_size,
        "attributes": list(setting.attributes),
        "ordered": list(setting.ordered),
        "shares": [SHARE.encode(share) for share in setting.shares],
        "unit": setting.unit,
        "data_budget": BUDGET.encode(setting.data_budget),
        # JSON has no infinite numbers.
        "analyst_budget": BUDGET.encode(setting.analyst_budget) if setting.protects_analysts else None,
        "beta": float(setting.beta),
        "options": dict(setting.options),
    }
