"""Signed payloads: the JSON envelopes of DSSE (secure-systems-lab/dsse), with the keys of signed notes.

What is signed are a payload's exact bytes and its type, so that nothing is parsed before it is verified, and no
payload passes for one of another type. An envelope is one line of canonical JSON:

    {"payload": base64, "payloadType": TYPE, "signatures": [{"keyid": LABEL, "sig": base64}, ...]}

A key's label is its name and id, as in its verifier key line. Signatures are read as strictly as those of notes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from equipoise.errors import VerificationFailed
from equipoise.records.canonical import (
    canonical_json,
    from_base64,
    from_hex,
    parse_canonical_json,
    read_object,
    to_base64,
)
from equipoise.records.signed_notes import ID_BYTES, Signature, SigningKey, VerifierKey, verify_signatures

_WHAT = "a signed envelope"


def signed_bytes(payload_type: str, payload: bytes) -> bytes:
    """The message that a signature covers: DSSE's pre-authentication encoding of type and payload."""
    kind = payload_type.encode()
    return b"DSSEv1 %d %b %d %b" % (len(kind), kind, len(payload), payload)


def sign(payload_type: str, payload: bytes, keys: Iterable[SigningKey]) -> bytes:
    """The envelope of the payload, with one signature by each of the keys."""
    message = signed_bytes(payload_type, payload)
    signatures = [{"keyid": key.verifier.label, "sig": to_base64(key.private.sign(message))} for key in keys]
    return canonical_json({"payload": to_base64(payload), "payloadType": payload_type, "signatures": signatures})


def open_envelope(
    envelope: bytes, payload_type: str, trusted: Sequence[VerifierKey], told: Sequence[VerifierKey] = ()
) -> bytes:
    """The payload of an envelope of this type that is signed as `equipoise.records.signed_notes.open_note` asks.

    Raises `VerificationFailed` for anything else, also for bytes that `sign` does not write.
    """
    payload, signatures = _parts(envelope, payload_type)
    verify_signatures(signed_bytes(payload_type, payload), signatures, trusted, told, _WHAT)
    return payload


def open_cosigned(envelope: bytes, payload_type: str, trusted: Sequence[VerifierKey]) -> bytes:
    """The payload of an envelope of this type that a trusted key has signed, whoever has besides.

    For what comes from a custodian who may be exchanging its key: the next one is not known here yet. Raises
    `VerificationFailed` for anything else.
    """
    payload, signatures = _parts(envelope, payload_type)
    known = {(key.name, key.id) for key in trusted}
    own = [each for each in signatures if (each.name, each.id) in known]
    verify_signatures(signed_bytes(payload_type, payload), own, trusted, (), _WHAT)
    return payload


def _parts(envelope: bytes, payload_type: str) -> tuple[bytes, list[Signature]]:
    fields = _read(envelope)
    if fields["payloadType"] != payload_type:
        raise VerificationFailed(f"{_WHAT} is not of the type {payload_type}")
    payload = from_base64(fields["payload"], "an envelope's payload")
    return payload, [_read_signature(each) for each in fields["signatures"]]


def claimed_type(envelope: bytes) -> str:
    """The type that an envelope says it is of, whoever has signed it. Raises `VerificationFailed`."""
    kind: str = _read(envelope)["payloadType"]
    return kind


def _read(envelope: bytes) -> dict[str, Any]:
    kinds: dict[str, type | tuple[type, ...]] = {"payload": str, "payloadType": str, "signatures": list}
    return read_object(parse_canonical_json(envelope, _WHAT), kinds, _WHAT)


def _read_signature(value: object) -> Signature:
    fields = read_object(value, {"keyid": str, "sig": str}, "an envelope's signature")
    name, _, hashed = fields["keyid"].partition("+")
    return Signature(
        name,
        from_hex(hashed, ID_BYTES, "the id in an envelope's signature"),
        from_base64(fields["sig"], "an envelope's signature"),
    )
