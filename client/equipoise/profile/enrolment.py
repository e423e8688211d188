"""How somebody gets in: a key that is made here and never leaves, a request to an operator, and the answer.

    begin(directory)              makes   pending.key    the new private key, mode 0600
                                          request.pem    what the operator is sent; holds nothing secret
    install(directory, bundle)    makes a profile of them, or renews the one that is there

The operator answers a request with a bundle, one JSON file: a certificate of the request's key, the deployment's
authority, the keys of its log and the server's address. It holds nothing secret either, but whoever can exchange
the request on its way gets in instead, and whoever can exchange the first bundle can send its reader to another
server, or make it believe other records. So they go over a channel that is trusted, or the fingerprints of key and
authority are compared over one that is, and the log's keys with those that the custodian has published.

Renewing is the same with a fresh key. The profile works with the old certificate until the new one is installed.
"""

from __future__ import annotations

import hashlib
import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.types import CertificatePublicKeyTypes

from equipoise.errors import InvalidArgument
from equipoise.profile.certificates import read_certificate, read_request
from equipoise.profile.profile import (
    AUTHORITY,
    CERTIFICATE,
    KEY,
    LOG_KEYS,
    SETTINGS,
    check_chain,
    parse_log_keys,
    read_file,
    read_key,
    read_settings,
    settings_text,
)
from equipoise.queries.strict_json import parse_json

PENDING_KEY, REQUEST = "pending.key", "request.pem"
VERSION = 2


@dataclass(frozen=True)
class Bundle:
    """An operator's answer to a request; certificates in PEM. Who holds the key of the request can install it.

    `log_keys`: by which records of rounds are verified, C2SP verifier keys, one a line.
    """

    name: str
    target: str
    certificate: bytes
    authority: bytes
    log_keys: str

    def to_json(self) -> str:
        """Returns the bundle's file."""
        fields = {**asdict(self), "certificate": self.certificate.decode(), "authority": self.authority.decode()}
        return json.dumps({"version": VERSION, **fields}, indent=1) + "\n"

    @classmethod
    def from_json(cls, text: str) -> Bundle:
        """Returns the inverse of `to_json`. Raises `InvalidArgument("bundle", ...)`."""
        fields = parse_json(text, "bundle")
        if isinstance(fields, dict) and fields.get("version", VERSION) != VERSION:
            raise InvalidArgument("bundle: version", f"is {fields['version']}, this client reads {VERSION}")
        names = ("name", "target", "certificate", "authority", "log_keys")
        if not isinstance(fields, dict) or set(fields) != {"version", *names}:
            raise InvalidArgument("bundle", f"must be a JSON object of version, {', '.join(names)}")
        for name in names:
            if not isinstance(fields[name], str) or not fields[name] or not fields[name].isascii():
                raise InvalidArgument(f"bundle: {name}", "must be a string of ASCII, and not empty")
        parse_log_keys(fields["log_keys"].encode(), "bundle: log_keys")
        certificate, authority = fields["certificate"].encode(), fields["authority"].encode()
        return cls(fields["name"], fields["target"], certificate, authority, fields["log_keys"])


def begin(directory: Path) -> bytes:
    """Returns the request in `directory`, which is made with its key where it is not there; PKCS #10 in PEM.

    A directory that does not exist is made (0700); one that holds a profile gets a request to renew it. Raises
    `InvalidArgument` for a directory that is something else, and for a key that others may open.
    """
    if not directory.exists():
        try:
            directory.mkdir(mode=0o700, parents=True)
        except OSError as error:
            raise InvalidArgument(str(directory), f"cannot be made: {error.strerror}") from None
    elif not is_profile(directory) and not (directory / PENDING_KEY).exists() and any(directory.iterdir()):
        raise InvalidArgument(str(directory), "exists already, and is no profile")
    if not (directory / PENDING_KEY).exists():
        # The key comes first: a certificate that was signed for a lost key could not be used.
        (directory / REQUEST).unlink(missing_ok=True)
        _write_key(directory / PENDING_KEY, ec.generate_private_key(ec.SECP256R1()))
    if not (directory / REQUEST).exists():
        key = _private_key(directory / PENDING_KEY)
        # The subject stays empty: the server gives the name that the operator asks for, and reads nothing else.
        unsigned = x509.CertificateSigningRequestBuilder().subject_name(x509.Name([]))
        replace_file(
            directory / REQUEST, unsigned.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)
        )
    return read_file(directory / REQUEST)


def install(directory: Path, bundle: Bundle) -> None:
    """Completes or renews a profile. Interrupted, it is simply done again; done twice, it changes nothing.

    A profile that is there keeps its server, its authority and the log's keys: only a certificate for the same
    name, by the same authority, renews it. Raises `InvalidArgument` for every other, for a certificate that is not
    of the bundle's name, and where the key is not here.
    """
    renewed = is_profile(directory)
    if renewed:
        _, name = read_settings(directory)
        if bundle.name != name:
            raise InvalidArgument("bundle: name", f"is {bundle.name}, this profile is of {name}")
        authority = read_file(directory / AUTHORITY)
    else:
        authority = bundle.authority
    holder = _key_of(directory, bundle.certificate)
    check_chain("bundle: ", authority, bundle.certificate, read_key(holder), bundle.name)
    replace_file(directory / AUTHORITY, authority)
    replace_file(directory / CERTIFICATE, bundle.certificate)
    if not renewed or not (directory / LOG_KEYS).exists():
        replace_file(directory / LOG_KEYS, bundle.log_keys.encode())
    if not renewed:
        replace_file(directory / SETTINGS, settings_text(bundle.target, bundle.name))
    # Last: cut off before it, the request is still there, and the same bundle is installed again.
    holder.replace(directory / KEY)
    (directory / REQUEST).unlink(missing_ok=True)


def is_profile(directory: Path) -> bool:
    """Returns whether the directory holds a complete profile."""
    return (directory / SETTINGS).exists() and (directory / KEY).exists()


def default_request_id(purpose: str, signing_request: bytes) -> str:
    """Returns one for each request, so that the same file sent again for the same purpose gets the first answer.

    Args:
        purpose: the call's name.
        signing_request: the file's exact bytes.
    """
    return f"{purpose} {hashlib.sha256(signing_request).hexdigest()}"


def key_fingerprint(signing_request: bytes) -> str:
    """Of a request's key, for people to compare. Raises `InvalidArgument`."""
    try:
        return _fingerprint(read_request(signing_request).public_key())
    except ValueError as error:
        raise InvalidArgument("signing_request", str(error)) from None


def authority_fingerprint(authority: bytes) -> str:
    """Of the key of a deployment's authority, for people to compare. Raises `InvalidArgument`."""
    try:
        return _fingerprint(read_certificate(authority).public_key())
    except ValueError as error:
        raise InvalidArgument("authority", str(error)) from None


def _fingerprint(key: CertificatePublicKeyTypes) -> str:
    """128 bits of SHA-256 over the key's encoding (SPKI), in hexadecimal."""
    encoded = key.public_bytes(serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)
    digits = hashlib.sha256(encoded).hexdigest()[:32]
    return " ".join(digits[start : start + 4] for start in range(0, len(digits), 4))


def _key_of(directory: Path, certificate: bytes) -> Path:
    try:
        public = read_certificate(certificate).public_key()
    except ValueError as error:
        raise InvalidArgument("bundle: certificate", str(error)) from None
    for path in (directory / PENDING_KEY, directory / KEY):
        if path.exists() and _private_key(path).public_key() == public:
            return path
    problem = "holds no key that this certificate is for; install it where the request was made"
    raise InvalidArgument(str(directory), problem)


def _private_key(path: Path) -> ec.EllipticCurvePrivateKey:
    try:
        key = serialization.load_pem_private_key(read_key(path), None)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        key = None
    if not isinstance(key, ec.EllipticCurvePrivateKey):
        raise InvalidArgument(str(path), "holds no unencrypted elliptic-curve key in PEM")
    return key


def _write_key(path: Path, key: ec.EllipticCurvePrivateKey) -> None:
    pem = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    prepared = path.with_name(f"{path.name}.new")
    prepared.unlink(missing_ok=True)
    # The mode is given at creation: a file narrowed afterwards is readable for a moment.
    descriptor = os.open(prepared, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(pem)
        file.flush()
        os.fsync(file.fileno())
    prepared.replace(path)


def replace_file(path: Path, content: bytes) -> None:
    """Replaces a file of a profile as a whole."""
    prepared = path.with_name(f"{path.name}.new")
    prepared.write_bytes(content)
    prepared.replace(path)
