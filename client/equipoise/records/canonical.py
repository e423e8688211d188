"""The one encoding of what is hashed or signed: canonical JSON, base64 and hexadecimal, read strictly.

Each reader accepts exactly what its writer writes: it decodes, encodes again and compares. So a value has one
encoding and every other is refused, and a flipped bit is either another value or no value (`docs/formats.md`).
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from typing import Any

from equipoise.errors import VerificationFailed


def canonical_json(value: Any) -> bytes:
    """Returns the bytes of a JSON value: ASCII, keys in the order of their code points, no white space.

    Integers are decimal. Floats are the shortest decimal that reads back as the same double, always with a point or
    an exponent, so that the two stay apart. Raises `ValueError` for what is not finite, `TypeError` for what JSON
    does not have.
    """
    return json.dumps(
        value, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False, check_circular=False
    ).encode("ascii")


def parse_canonical_json(data: bytes, what: str) -> Any:
    """Return the value of which `data` is the canonical JSON.

    Args:
        data: the bytes.
        what: names them in messages.

    Raises:
        VerificationFailed: the bytes are no JSON, or not in canonical form.
    """
    try:
        value = json.loads(data.decode("ascii"))
        encoded = canonical_json(value)
    except (ValueError, RecursionError):
        raise VerificationFailed(f"{what} is not canonical JSON") from None
    if encoded != data:
        raise VerificationFailed(f"{what} is not canonical JSON")
    return value


def read_object(value: Any, kinds: Mapping[str, type | tuple[type, ...]], what: str) -> dict[str, Any]:
    """Checks a JSON value that must be an object with exactly these keys.

    Args:
        value: as JSON was read.
        kinds: the type of each key's value, or several. A type counts exactly: true is no integer, and 1 no float.
            For a key that may be null, give `type(None)` too.
        what: what errors call the value.

    Returns:
        The value.

    Raises:
        VerificationFailed: naming the first key that is missing, unknown or of another type.
    """
    if type(value) is not dict:
        raise VerificationFailed(f"{what} is not an object")
    for key in (*(key for key in kinds if key not in value), *(key for key in value if key not in kinds)):
        raise VerificationFailed(f"{what}: {key} is {'missing' if key in kinds else 'unknown'}")
    for key, kind in kinds.items():
        if type(value[key]) not in (kind if isinstance(kind, tuple) else (kind,)):
            raise VerificationFailed(f"{what}: {key} is of another type")
    return value


def to_base64(data: bytes) -> str:
    """Base64 in the standard alphabet, padded."""
    return base64.b64encode(data).decode("ascii")


def from_base64(text: Any, what: str) -> bytes:
    """Returns the bytes that `to_base64` writes as this text.

    Raises `VerificationFailed` for any other text or type.
    """
    try:
        data = base64.b64decode(text.encode("ascii"), validate=True)
    except (AttributeError, ValueError):
        raise VerificationFailed(f"{what} is not base64") from None
    if to_base64(data) != text:
        raise VerificationFailed(f"{what} is not canonical base64")
    return data


def from_hex(text: Any, length: int, what: str) -> bytes:
    """Returns the bytes that some text is the hexadecimal of.

    Args:
        text: in lower case.
        length: how many bytes there must be.
        what: what errors call the text.

    Raises:
        VerificationFailed: it is anything else.
    """
    try:
        data = bytes.fromhex(text)
    except (TypeError, ValueError):
        raise VerificationFailed(f"{what} is not hexadecimal") from None
    if len(data) != length or data.hex() != text:
        raise VerificationFailed(f"{what} is not {length} bytes in lower-case hexadecimal")
    return data
