"""Signed payloads: the JSON envelopes of DSSE (secure-systems-lab/dsse), with the keys of signed notes.

What is signed are a payload's exact bytes and its type, so that nothing is parsed before it is verified, and no
payload passes for one of another type. An envelope is one line of canonical JSON:

    {"payload": base64, "payloadType": TYPE, "signatures": [{"keyid": LABEL, "sig": base64}, ...]}

A key's label is its name and id, as in its verifier key line. Signatures are read as strictly as those of notes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from equipoise.errors import VerificationFailed
from equipoise.records.canonical import from_hex
from equipoise.records.codec import BASE64, TEXT, Codec, canonical_object, codec_of, converted, key, list_of
from equipoise.records.signed_notes import ID_BYTES, Signature, SigningKey, VerifierKey, verify_signatures

_WHAT = "a signed envelope"


@canonical_object
class _Signed:
    """A signature as an envelope has it: the label of its key, and its bytes."""

    label: str = key("keyid", TEXT)
    signature: bytes = key("sig", BASE64)


def _labelled(signature: Signature) -> _Signed:
    return _Signed(f"{signature.name}+{signature.id.hex()}", signature.signature)


def _signature(signed: _Signed) -> Signature:
    name, _, hashed = signed.label.partition("+")
    return Signature(name, from_hex(hashed, ID_BYTES, "the id in an envelope's signature"), signed.signature)


@canonical_object
class Envelope:
    """A payload, its type, and its signatures. Nothing of it is verified."""

    payload: bytes = key("payload", BASE64)
    payload_type: str = key("payloadType", TEXT)
    signatures: tuple[Signature, ...] = key(
        "signatures", list_of(converted(codec_of(_Signed), _labelled, _signature))
    )


ENVELOPE: Codec[Envelope] = codec_of(Envelope)


def signed_bytes(payload_type: str, payload: bytes) -> bytes:
    """Returns the message that a signature covers: DSSE's pre-authentication encoding of type and payload.

    Args:
        payload_type: a media type, in ASCII.
        payload: the exact bytes.
    """
    kind = payload_type.encode()
    return b"DSSEv1 %d %b %d %b" % (len(kind), kind, len(payload), payload)


def sign(payload_type: str, payload: bytes, keys: Iterable[SigningKey]) -> bytes:
    """Returns a signed envelope.

    Args:
        payload_type: what the payload is; it is signed as well.
        payload: its exact bytes.
        keys: each of which signs.
    """
    message = signed_bytes(payload_type, payload)
    signatures = tuple(Signature(each.verifier.name, each.verifier.id, each.private.sign(message)) for each in keys)
    return ENVELOPE.to_bytes(Envelope(payload, payload_type, signatures))


def open_envelope(
    envelope: bytes, payload_type: str, trusted: Sequence[VerifierKey], listed_keys: Sequence[VerifierKey] = ()
) -> bytes:
    """Returns the payload of a signed envelope.

    Args:
        envelope: what `sign` writes.
        payload_type: the type that it must be of.
        trusted: one of these keys must have signed.
        listed_keys: may have signed besides.

    Raises:
        VerificationFailed: the type or a signature is another (`signed_notes.open_note`), or the bytes are not what
            `sign` writes.
    """
    payload, signatures = _parts(envelope, payload_type)
    verify_signatures(signed_bytes(payload_type, payload), signatures, trusted, listed_keys, _WHAT)
    return payload


def open_cosigned(envelope: bytes, payload_type: str, trusted: Sequence[VerifierKey]) -> bytes:
    """Returns the payload of an envelope that a trusted key has signed, whoever has signed it besides.

    For what comes from a custodian who may be exchanging its key: the next one is not known here yet.

    Args:
        envelope: what `sign` writes.
        payload_type: the type that it must be of.
        trusted: one of these keys must have signed.

    Raises:
        VerificationFailed: the type is another, or no trusted key has signed, or one of their signatures is wrong.
    """
    payload, signatures = _parts(envelope, payload_type)
    known = {(key.name, key.id) for key in trusted}
    own = [each for each in signatures if (each.name, each.id) in known]
    verify_signatures(signed_bytes(payload_type, payload), own, trusted, (), _WHAT)
    return payload


def claimed_type(envelope: bytes) -> str:
    """Returns the type that an envelope says it is of, whoever has signed it. Raises `VerificationFailed`."""
    return ENVELOPE.from_bytes(envelope, _WHAT).payload_type


def _parts(envelope: bytes, payload_type: str) -> tuple[bytes, tuple[Signature, ...]]:
    read = ENVELOPE.from_bytes(envelope, _WHAT)
    if read.payload_type != payload_type:
        raise VerificationFailed(f"{_WHAT} is not of the type {payload_type}")
    return read.payload, read.signatures
