"""A profile: the directory that lets its holder in.

    profile.toml        target = "127.0.0.1:7443", name = "AA"
    ca.pem              the deployment's authority; servers it did not certify are refused
    certificate.pem     who the holder is
    key.pem             the holder's private key, mode 0600
    pending.json        until the profile is complete: the request that was sent, so that it can be sent again

Trusted: whoever reads `key.pem` can ask and read as its holder, so a key that others may open is refused.
"""

from __future__ import annotations

import json
import os
import stat
import tomllib
from dataclasses import dataclass
from pathlib import Path

import grpc
from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives.serialization import load_pem_private_key

from equipoise.errors import InvalidArgument

_KEY, _CERTIFICATE, _AUTHORITY, _SETTINGS = "key.pem", "certificate.pem", "ca.pem", "profile.toml"
_PENDING = "pending.json"


@dataclass(frozen=True)
class Profile:
    """Where a server is, and what is shown to it. The key stays out of `repr`."""

    target: str
    name: str
    authority: bytes
    certificate: bytes
    _key: bytes

    def __repr__(self) -> str:
        return f"Profile(target={self.target!r}, name={self.name!r})"

    @classmethod
    def load(cls, directory: Path) -> Profile:
        """Reads a profile. Raises `InvalidArgument` naming the file that is missing, malformed or too open."""
        path = directory / _SETTINGS
        try:
            settings = tomllib.loads(_read(path).decode("utf-8"))
        except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
            raise InvalidArgument(str(path), f"is not TOML: {error}") from None
        for key in ("target", "name"):
            if not isinstance(settings.get(key), str) or not settings[key]:
                raise InvalidArgument(f"{path}: {key}", "must be a string, and not empty")
        profile = cls(
            target=settings["target"],
            name=settings["name"],
            authority=_read(directory / _AUTHORITY),
            certificate=_read(directory / _CERTIFICATE),
            _key=_read_key(directory / _KEY),
        )
        _check_chain(directory, profile.authority, profile.certificate, profile._key)
        return profile

    def credentials(self) -> grpc.ChannelCredentials:
        """What a channel needs to prove the holder and to check the server."""
        return grpc.ssl_channel_credentials(
            root_certificates=self.authority, private_key=self._key, certificate_chain=self.certificate
        )


@dataclass(frozen=True)
class Enrolment:
    """A request to admit `name` whose answer has not come; the same request again gets the first answer."""

    name: str
    request_id: str
    signing_request: bytes


def read_enrolment(directory: Path) -> Enrolment | None:
    """What an incomplete profile waits for; None where the directory is something else, or nothing."""
    if (directory / _SETTINGS).exists() or not (directory / _PENDING).exists():
        return None
    try:
        fields = json.loads(_read(directory / _PENDING))
        return Enrolment(fields["name"], fields["request_id"], fields["signing_request"].encode("ascii"))
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise InvalidArgument(
            str(directory / _PENDING), "is damaged; remove the directory and begin anew"
        ) from None


def write_enrolment(directory: Path, enrolment: Enrolment) -> None:
    """Remember a request before it is sent."""
    fields = {
        "name": enrolment.name,
        "request_id": enrolment.request_id,
        "signing_request": enrolment.signing_request.decode("ascii"),
    }
    prepared = directory / f"{_PENDING}.new"
    prepared.write_text(json.dumps(fields) + "\n", encoding="utf-8")
    prepared.replace(directory / _PENDING)


def begin_profile(directory: Path, key: bytes) -> None:
    """Makes a profile's directory (0700) with its key (0600). Raises `InvalidArgument` if it exists already.

    The key comes first: a certificate that was signed for a lost key could not be used, and its name is taken.
    """
    try:
        directory.mkdir(mode=0o700, parents=True)
    except FileExistsError:
        raise InvalidArgument(str(directory), "exists already") from None
    except OSError as error:
        raise InvalidArgument(str(directory), f"cannot be made: {error.strerror}") from None
    # The mode is given at creation: a file narrowed afterwards is readable for a moment.
    descriptor = os.open(directory / _KEY, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(key)


def complete_profile(directory: Path, target: str, name: str, certificate: bytes, authority: bytes) -> None:
    """Writes what `begin_profile` left out; `profile.toml` last, so that a profile without it is incomplete."""
    (directory / _CERTIFICATE).write_bytes(certificate)
    (directory / _AUTHORITY).write_bytes(authority)
    (directory / _SETTINGS).write_text(f'target = "{target}"\nname = "{name}"\n', encoding="utf-8")
    (directory / _PENDING).unlink(missing_ok=True)


def _check_chain(directory: Path, authority: bytes, certificate: bytes, key: bytes) -> None:
    """Finds here what a server would answer with a closed connection only, and names the file that is wrong."""
    try:
        issuer = x509.load_pem_x509_certificate(authority)
    except ValueError:
        raise InvalidArgument(str(directory / _AUTHORITY), "is not a certificate in PEM") from None
    try:
        own = x509.load_pem_x509_certificate(certificate)
    except ValueError:
        raise InvalidArgument(str(directory / _CERTIFICATE), "is not a certificate in PEM") from None
    try:
        public = load_pem_private_key(key, password=None).public_key()
    except (ValueError, TypeError, UnsupportedAlgorithm):
        raise InvalidArgument(str(directory / _KEY), "is not a private key in PEM") from None
    if public != own.public_key():
        raise InvalidArgument(str(directory / _KEY), f"is not the key of {_CERTIFICATE}")
    try:
        own.verify_directly_issued_by(issuer)
    except (ValueError, TypeError, InvalidSignature):
        problem = f"was not issued by the authority in {_AUTHORITY}; servers of that authority would refuse it"
        raise InvalidArgument(str(directory / _CERTIFICATE), problem) from None


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise InvalidArgument(str(path), f"cannot be read: {error.strerror}") from None


def _read_key(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            # Asked of the open file, not of the path, which could be exchanged in between.
            if os.fstat(file.fileno()).st_mode & (stat.S_IRWXG | stat.S_IRWXO):
                raise InvalidArgument(str(path), f"others may open it; run: chmod 600 {path}")
            return file.read()
    except OSError as error:
        raise InvalidArgument(str(path), f"cannot be read: {error.strerror}") from None
