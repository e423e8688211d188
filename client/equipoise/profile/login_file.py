"""What somebody needs to log in: one file, which the custodian publishes and which holds nothing secret.

    {"version": 1, "door": HOST:PORT, "target": HOST:PORT, "issuer": ..., "client": ..., "authority": PEM,
     "log_keys": C2SP verifier keys, one a line}

`door` is where certificates are had and `target` where they are used. Whoever can exchange the file on its way can
send its readers to another server; so it comes over a channel that is trusted, such as the company's own pages. A
profile that was made by logging in keeps the file as `login.json`.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path

from equipoise.errors import InvalidArgument
from equipoise.profile.certificates import read_certificates
from equipoise.profile.profile import LOGIN, parse_log_keys, read_file
from equipoise.queries.strict_json import parse_json

VERSION = 1


@dataclass(frozen=True)
class LoginFile:
    """Where to log in, and whom to believe. `authority` in PEM; `client`: the deployment's name at the provider."""

    door: str
    target: str
    issuer: str
    client: str
    authority: str
    log_keys: str

    def to_json(self) -> str:
        """Return the file's text."""
        return json.dumps({"version": VERSION, **asdict(self)}, indent=1) + "\n"

    @classmethod
    def from_json(cls, text: str) -> LoginFile:
        """Return the inverse of `to_json`. Raises `InvalidArgument("login file", ...)`."""
        fields = parse_json(text, "login file")
        names = set(cls.__dataclass_fields__)
        if not isinstance(fields, dict) or set(fields) != names | {"version"}:
            raise InvalidArgument("login file", f"must be a JSON object of version, {', '.join(sorted(names))}")
        if fields.pop("version") != VERSION:
            raise InvalidArgument("login file: version", f"must be {VERSION}")
        for name, value in fields.items():
            if not isinstance(value, str) or not value or not value.isascii():
                raise InvalidArgument(f"login file: {name}", "must be a string of ASCII, and not empty")
        parse_log_keys(fields["log_keys"].encode(), "login file: log_keys")
        try:
            read_certificates(fields["authority"].encode())
        except ValueError as error:
            raise InvalidArgument("login file: authority", str(error)) from None
        return cls(**fields)


def kept_login(directory: Path) -> LoginFile:
    """Return the login file that a profile keeps. Raises `InvalidArgument`."""
    path = directory / LOGIN
    if not path.is_file():
        raise InvalidArgument(
            f"profile {directory}", "has no login; begin with the file that your custodian publishes: --from FILE"
        )
    try:
        return LoginFile.from_json(read_file(path).decode("ascii"))
    except UnicodeDecodeError:
        raise InvalidArgument(str(path), "must be ASCII") from None
