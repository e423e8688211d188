"""Checks the bill of materials that `make sbom` wrote: valid CycloneDX, every locked package with its hashes."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator

LOCK = Path(__file__).parents[2] / "requirements" / "base.txt"


def hashes_of(component: dict[str, object]) -> set[str]:
    """All digests that a component names, in its own list or in those of its references."""
    return set(re.findall(r"\b[0-9a-f]{64}\b", json.dumps(component)))


text = Path(sys.argv[1]).read_text(encoding="utf-8")
bill = json.loads(text)
problem = JsonStrictValidator(SchemaVersion.from_version(bill["specVersion"])).validate_str(text)
if problem is not None:
    sys.exit(f"The bill of materials is no valid CycloneDX: {problem}")
named = {(each["name"].lower().replace("_", "-"), each["version"]): each for each in bill["components"]}
locked = re.findall(r"^([A-Za-z0-9._-]+)==([^ ;\\]+)(.*?)(?=^\S|\Z)", LOCK.read_text(encoding="utf-8"), re.M | re.S)
for name, version, rest in locked:
    component = named.get((name.lower().replace("_", "-"), version))
    if component is None:
        sys.exit(f"The bill of materials lacks {name} {version}")
    if lacking := set(re.findall(r"sha256:([0-9a-f]{64})", rest)) - hashes_of(component):
        sys.exit(f"The bill of materials lacks {len(lacking)} hashes of {name} {version}")
print(f"The bill of materials is valid and names all {len(locked)} locked packages with their hashes.")
