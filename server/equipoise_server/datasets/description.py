"""Reads the files of the data directory that say where a table lies: TOML whose keys are all known."""

from __future__ import annotations

import stat
import tomllib
from pathlib import Path
from typing import ClassVar, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from equipoise.errors import InvalidArgument


class Description(BaseModel):
    """What a file says. Unknown keys are refused."""

    model_config: ClassVar[ConfigDict] = ConfigDict(extra="forbid", frozen=True)


Known = TypeVar("Known", bound=Description)


def read_description(path: Path, kind: type[Known]) -> Known:
    """Return what a file says. Raises `InvalidArgument` naming the key, or "table"."""
    try:
        return kind.model_validate(tomllib.loads(path.read_text(encoding="utf-8")))
    except OSError as error:
        raise InvalidArgument("table", f"{path.name} cannot be read: {error.strerror}") from None
    except ValidationError as error:
        first = error.errors()[0]
        field = ": ".join(("table", ".".join(str(part) for part in first["loc"]))).removesuffix(": ")
        raise InvalidArgument(field, f"{first['msg']}, in {path.name}") from None
    except ValueError as error:
        raise InvalidArgument("table", f"{path.name} is not TOML: {error}") from None


def private_file(description: Path, name: str, field: str) -> Path:
    """Return the file of secrets that a description names, relative to its own place.

    Args:
        description: the file that describes the table.
        name: of the file of secrets, as the description has it.
        field: of the description, which messages name.

    Raises:
        InvalidArgument: `field`: it is gone, or open to others than its owner.
    """
    secret = description.parent / name
    try:
        if stat.S_IMODE(secret.stat().st_mode) & 0o077:
            raise InvalidArgument(field, f"{secret} is open to others; make it mode 0600")
    except OSError as error:
        raise InvalidArgument(field, f"{secret} cannot be read: {error.strerror}") from None
    return secret
