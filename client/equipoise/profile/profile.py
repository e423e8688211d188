"""A profile: the directory that lets its holder in.

    profile.toml        target = "127.0.0.1:7443", name = "AA"
    ca.pem              the deployment's authority; servers it did not certify are refused. While the profile
                        follows it to a new key, the old one comes second
    certificate.pem     who the holder is
    key.pem             the holder's private key, mode 0600
    log.vkey            the custodian's public keys, by which records of rounds are verified: one a line
    seed.key            auditors': the private key to which rounds' seeds are sealed, mode 0600
    login.json          where the profile was made by logging in: how its certificate is renewed

An analyst's also has what `equipoise.profile.receipt_store` puts there: the custodian's receipts, and the log's
checkpoint.

`equipoise.profile.enrolment` makes and renews profiles.

Trusted: whoever reads `key.pem` can ask and read as its holder, so a key that others may open is refused. Whoever
writes `log.vkey` can make its holder believe other records.
"""

from __future__ import annotations

import json
import os
import re
import stat
import tomllib
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path

import grpc
from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from cryptography.hazmat.primitives.serialization import load_pem_private_key

from equipoise.errors import InvalidArgument, VerificationFailed
from equipoise.profile.certificates import issued_by, read_certificate, read_certificates
from equipoise.records.signed_notes import VerifierKey

KEY, CERTIFICATE, AUTHORITY, SETTINGS = "key.pem", "certificate.pem", "ca.pem", "profile.toml"
LOG_KEYS, SEED_KEY, LOGIN = "log.vkey", "seed.key", "login.json"
_IDENTITY = re.compile(r"equipoise://[^/]+/(?P<name>[^/]+)")


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
        target, name = read_settings(directory)
        profile = cls(
            target=target,
            name=name,
            authority=read_file(directory / AUTHORITY),
            certificate=read_file(directory / CERTIFICATE),
            _key=read_key(directory / KEY),
        )
        check_chain(f"{directory}{os.sep}", profile.authority, profile.certificate, profile._key, name)
        if profile.expire_time < datetime.now(UTC):
            renewed_by = "equipoise login" if (directory / LOGIN).exists() else "equipoise enroll --renew"
            problem = f"expired on {profile.expire_time:%Y-%m-%d}; ask for another with: {renewed_by}"
            raise InvalidArgument(str(directory / CERTIFICATE), problem)
        return profile

    @property
    def expire_time(self) -> datetime:
        """When the certificate expires; servers refuse it from then on."""
        return read_certificate(self.certificate).not_valid_after_utc

    def credentials(self) -> grpc.ChannelCredentials:
        """Returns what a channel needs to prove the holder and to check the server."""
        return grpc.ssl_channel_credentials(
            root_certificates=self.authority, private_key=self._key, certificate_chain=self.certificate
        )


def read_settings(directory: Path) -> tuple[str, str]:
    """Returns a profile's target and name.

    Raises `InvalidArgument` naming the directory that is missing, or the file and the key.
    """
    path = directory / SETTINGS
    if not path.is_file():
        missing = f"the directory has no {SETTINGS}" if directory.is_dir() else "there is no such directory"
        raise InvalidArgument(
            f"profile {directory}",
            f"{missing}; name your own with --profile or EQUIPOISE_PROFILE, or make one with: equipoise enroll",
        )
    try:
        settings = tomllib.loads(read_file(path).decode("utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InvalidArgument(str(path), f"is not TOML: {error}") from None
    for key in ("target", "name"):
        if not isinstance(settings.get(key), str) or not settings[key]:
            raise InvalidArgument(f"{path}: {key}", "must be a string, and not empty")
    return settings["target"], settings["name"]


def settings_text(target: str, name: str) -> bytes:
    """Returns the settings file that `read_settings` reads, in UTF-8.

    Args:
        target: host and port of the server.
        name: of the profile's owner.
    """
    # JSON's strings are TOML's, too.
    return f"target = {json.dumps(target)}\nname = {json.dumps(name)}\n".encode()


def read_log_keys(file: Path) -> tuple[VerifierKey, ...]:
    """Returns the custodian's public keys in a file such as a profile's `log.vkey`.

    Raises `InvalidArgument` naming it.
    """
    return parse_log_keys(read_file(file), str(file))


@lru_cache(maxsize=8)  # asking of a grant reads the file again each time, which is rarely another one
def parse_log_keys(content: bytes, place: str) -> tuple[VerifierKey, ...]:
    """Returns the keys of such lines, of which there must be one at least.

    Raises `InvalidArgument` naming the place.

    Args:
        content: of the file.
        place: the file's path, which messages name.
    """
    try:
        keys = tuple(VerifierKey.from_text(line) for line in content.decode("utf-8").splitlines())
    except UnicodeDecodeError:
        raise InvalidArgument(place, "is not UTF-8 text") from None
    except VerificationFailed as error:
        raise InvalidArgument(place, f"must be C2SP verifier keys, one a line: {error.message}") from None
    if not keys:
        raise InvalidArgument(place, "holds no key; ask your custodian for the log's")
    return keys


def check_chain(place: str, authority: bytes, certificate: bytes, key: bytes, name: str) -> None:
    """Checks the parts of a profile against one another: a server would answer a wrong one by hanging up only.

    Args:
        place: what comes before a part's name in errors, such as the directory.
        authority: the authority's certificates, in PEM.
        certificate: the holder's, in PEM.
        key: the holder's private key, in PEM without a password.
        name: who the holder is. With a certificate of somebody else a server would take it for that other.

    Raises:
        InvalidArgument: naming the first part that cannot be read or does not fit the others.
    """
    own = _certificate(place + CERTIFICATE, certificate)
    try:
        issuers = read_certificates(authority)
    except ValueError as error:
        raise InvalidArgument(place + AUTHORITY, str(error)) from None
    try:
        public = load_pem_private_key(key, password=None).public_key()
    except (ValueError, TypeError, UnsupportedAlgorithm):
        raise InvalidArgument(place + KEY, "is not a private key in PEM") from None
    if public != own.public_key():
        raise InvalidArgument(place + KEY, f"is not the key of {CERTIFICATE}")
    if not any(issued_by(own, issuer) for issuer in issuers):
        problem = f"was not issued by the authority in {AUTHORITY}; servers of that authority would refuse it"
        raise InvalidArgument(place + CERTIFICATE, problem)
    if (certified := _certified_name(own)) != name:
        problem = "carries no name, not that" if certified is None else f"is of {certified!a}, not"
        raise InvalidArgument(place + CERTIFICATE, f"{problem} of {name!a}")


def _certificate(field: str, pem: bytes) -> x509.Certificate:
    try:
        return read_certificate(pem)
    except ValueError as error:
        raise InvalidArgument(field, str(error)) from None


def _certified_name(certificate: x509.Certificate) -> str | None:
    """Returns the name where servers look for it: in the only alternative name, equipoise://DEPLOYMENT/NAME."""
    try:
        alternatives = list(certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value)
    except (x509.ExtensionNotFound, x509.DuplicateExtension, x509.UnsupportedGeneralNameType, ValueError):
        return None
    if len(alternatives) != 1 or not isinstance(alternatives[0], x509.UniformResourceIdentifier):
        return None
    identity = _IDENTITY.fullmatch(alternatives[0].value)
    return None if identity is None else identity["name"]


def read_file(path: Path) -> bytes:
    """Returns a file's content. Raises `InvalidArgument` naming it."""
    try:
        return path.read_bytes()
    except OSError as error:
        raise InvalidArgument(str(path), f"cannot be read: {error.strerror}") from None


def read_key(path: Path) -> bytes:
    """Returns a private key's file. Raises `InvalidArgument` naming it, also where others may open it."""
    try:
        with path.open("rb") as file:
            # Asked of the open file, not of the path, which could be exchanged in between.
            if os.fstat(file.fileno()).st_mode & (stat.S_IRWXG | stat.S_IRWXO):
                raise InvalidArgument(
                    str(path), f"can be read by other users of this machine; run: chmod 600 {path}"
                )
            return file.read()
    except OSError as error:
        raise InvalidArgument(str(path), f"cannot be read: {error.strerror}") from None


def read_seed_key(path: Path) -> X25519PrivateKey:
    """Returns an auditor's private key, PEM.

    Raises `InvalidArgument` naming the file, also where others may open it.
    """
    try:
        private = load_pem_private_key(read_key(path), None)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        private = None
    if not isinstance(private, X25519PrivateKey):
        raise InvalidArgument(str(path), "is not an X25519 private key in PEM without a password")
    return private
