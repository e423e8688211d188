"""Items of records in tests: as JSON fields, and forged ones that no program would write."""

from __future__ import annotations

import json
import secrets
from collections.abc import Mapping
from typing import Any

from equipoise.records.canonical import canonical_json
from equipoise.records.record import SALT_BYTES, VERSION, Audience, Item
from equipoise.records.record_layouts import NAMES, read_item

CLASSES = {name: cls for cls, name in NAMES.items()}


def forge_item(name: str, audience: Audience, fields: Mapping[str, Any], analyst: str = "") -> Item:
    """An item of any fields, under a fresh salt; they win over its name and version."""
    content = canonical_json({"item": name, "version": VERSION, **fields})
    return Item(content, secrets.token_bytes(SALT_BYTES), audience, analyst)


def fields_of(content: bytes, name: str) -> dict[str, Any]:
    """The JSON object of an item, which is read strictly."""
    read_item(content, CLASSES[name])
    found: dict[str, Any] = json.loads(content)
    return found
