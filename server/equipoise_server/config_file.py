"""Reads and writes the configuration's file, `equipoise.toml` in the state directory."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

from pydantic import ValidationError

from equipoise.errors import InvalidArgument
from equipoise_server.config import Config

CONFIG_FILE = "equipoise.toml"
_HEADER = "# The configuration of one Equipoise server. Relative paths start at this file's directory."


def load_config(state: Path) -> Config:
    """Reads and checks `equipoise.toml`. Raises `InvalidArgument` naming the file and the key."""
    path = state / CONFIG_FILE
    if not path.is_file():
        raise InvalidArgument(str(path), "does not exist; make a state directory with: equipoise-server init")

    try:
        values = tomllib.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:  # also of bytes that are not UTF-8, and of whole numbers of thousands of digits
        raise InvalidArgument(str(path), f"is not TOML: {error}") from None
    except RecursionError:
        raise InvalidArgument(str(path), "is not TOML: it is nested too deeply") from None
    try:
        return Config.model_validate(values)
    except ValidationError as error:
        key, problem = _first(error)
        raise InvalidArgument(f"{path}: {key}", problem) from None


def make_config(**values: object) -> Config:
    """Return a configuration from values, the rest being defaults. Raises `InvalidArgument` naming the key."""
    try:
        return Config.model_validate(values)
    except ValidationError as error:
        raise InvalidArgument(*_first(error)) from None


def _first(error: ValidationError) -> tuple[str, str]:
    """Return the key and the problem of the first thing that is wrong."""
    first = error.errors()[0]
    return ".".join(str(part) for part in first["loc"]), first["msg"].removeprefix("Value error, ")


def render(config: Config) -> str:
    """Return the text of an `equipoise.toml` that says `config`, each field under its description."""
    blocks = [_HEADER]
    for name, field in Config.model_fields.items():
        # JSON's strings and numbers are TOML's, too.
        value = json.dumps(getattr(config, name), ensure_ascii=False)
        blocks.append(f"# {field.description}\n{name} = {value}")
    return "\n\n".join(blocks) + "\n"
