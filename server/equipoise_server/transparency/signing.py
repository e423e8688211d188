"""The private keys of the log, one file each in the state directory, and what is signed with them.

    keys/log-ID.key     Ed25519, PKCS #8 in PEM, mode 0600

Trusted: who reads one of these files can sign a second log under the deployment's name; readers who compare
checkpoints notice that, and nobody else does.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

import structlog
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)
from sqlalchemy import Connection, select

from equipoise.errors import DataLoss, InvalidArgument, Unavailable, VerificationFailed
from equipoise.records import envelopes
from equipoise.records.signed_notes import (
    Checkpoint,
    SigningKey,
    VerifierKey,
    count_signatures,
    open_checkpoint,
    sign_note,
)
from equipoise_server.identity.keyfiles import read_private, write_private
from equipoise_server.storage.durable import sync_directory
from equipoise_server.storage.tables.transparency import checkpoints
from equipoise_server.storage.tree_heads import TreeHead
from equipoise_server.transparency.keys import PublicKey, Purpose, all_keys, in_force, in_force_at, key_events

log = structlog.get_logger(__name__)


def private_pem(key: Ed25519PrivateKey | X25519PrivateKey) -> bytes:
    """A private key as unencrypted PKCS #8 in PEM."""
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())


@dataclass(frozen=True)
class Signer:
    """The keys of one deployment's log, in `directory`. Safe to use from several threads.

    `origin` names the log and all its keys. Files are read when a key is first needed, as keys may be added and
    retired while servers run.
    """

    directory: Path
    origin: str
    _known: dict[str, SigningKey] = field(default_factory=dict, repr=False)

    def make_key(self, now: datetime) -> PublicKey:
        """A new key's public part; its file is on disk before this returns, and it is not in force yet."""
        private = Ed25519PrivateKey.generate()
        key = PublicKey(Purpose.LOG, private.public_key().public_bytes_raw(), now)
        write_private(self.path(key), private_pem(private))
        sync_directory(self.directory)
        return key

    def path(self, key: PublicKey) -> Path:
        """The file of a key's private part."""
        return self.directory / f"log-{key.id}.key"

    def check(self, connection: Connection) -> None:
        """Raises `InvalidArgument` naming the file of a key in force that is missing, malformed or too open."""
        self._in_force(connection)

    def checkpoint(self, connection: Connection, head: TreeHead) -> bytes:
        """The note that says this size and root, signed by every key that is in force by the log up to it.

        So it is a function of the log alone, whenever and by whichever server it is signed.
        """
        signing = in_force_at(connection, Purpose.LOG, head.size)
        if not signing:
            raise DataLoss(f"the log is damaged: no key is in force at size {head.size}")
        text = Checkpoint(self.origin, head.size, head.root).to_text()
        return sign_note(text, [self._private(key) for key in signing])

    def check_checkpoints(self, connection: Connection) -> int:
        """Verify every stored checkpoint; how many there are. Raises `DataLoss` naming the first that is wrong.

        Each must be signed by just the keys that the log says were in force at its size.
        """
        count = 0
        events = key_events(connection, Purpose.LOG)
        standing: dict[str, VerifierKey] = {}
        query = select(checkpoints.c.size, checkpoints.c.note).where(checkpoints.c.note.is_not(None))
        for row in connection.execute(query.order_by(checkpoints.c.size)):
            while events and events[0][0] < row.size:
                _, is_retired, key = events.pop(0)
                standing.pop(key.id, None)
                if not is_retired:
                    standing[key.id] = self.verifier(key)
            try:
                checkpoint = open_checkpoint(row.note, list(standing.values()))
            except VerificationFailed as error:
                raise DataLoss(f"the log's checkpoint of size {row.size} is damaged: {error.message}") from None
            if checkpoint.origin != self.origin or count_signatures(row.note) != len(standing):
                problem = "is of another log, or is not signed by every key that was in force"
                raise DataLoss(f"the log's checkpoint of size {row.size} {problem}")
            count += 1
        return count

    def envelope(self, connection: Connection, payload_type: str, payload: bytes) -> bytes:
        """A signed envelope, with one signature by every key in force."""
        return envelopes.sign(payload_type, payload, self._in_force(connection))

    def receipt(self, connection: Connection, payload_type: str, payload: bytes) -> bytes:
        """The envelope of a receipt. Raises `Unavailable` where it cannot be signed."""
        try:
            return self.envelope(connection, payload_type, payload)
        except InvalidArgument as error:
            # A key that was added while this server runs, and whose file is not here: no analyst's doing.
            log.error("receipt_not_signed", problem=error.message)
            raise Unavailable("receipts cannot be signed now") from None

    def verifier_keys(self, connection: Connection) -> list[VerifierKey]:
        """Every key that has ever signed, those in force first: what a reader of old and new signatures needs."""
        ordered = sorted(all_keys(connection, Purpose.LOG), key=lambda key: key.retired is not None)
        return [self.verifier(key) for key in ordered]

    def verifier(self, key: PublicKey) -> VerifierKey:
        """A key as its readers know it."""
        return VerifierKey(self.origin, key.public)

    def lines(self, connection: Connection) -> str:
        """The keys in force as readers are given them: a line each."""
        return "".join(f"{self.verifier(key).to_text()}\n" for key in in_force(connection, Purpose.LOG))

    def remove_retired(self, connection: Connection) -> None:
        """Remove the files of keys that sign no more."""
        for key in all_keys(connection, Purpose.LOG):
            if key.retired is not None:
                self.path(key).unlink(missing_ok=True)
        sync_directory(self.directory)

    def _in_force(self, connection: Connection) -> list[SigningKey]:
        return [self._private(key) for key in in_force(connection, Purpose.LOG)]

    def _private(self, key: PublicKey) -> SigningKey:
        if key.id not in self._known:
            path = self.path(key)
            try:
                private = load_pem_private_key(read_private(path), None)
            except (ValueError, TypeError, UnsupportedAlgorithm):
                raise InvalidArgument(str(path), "is not a private key in PEM") from None
            if not isinstance(private, Ed25519PrivateKey) or private.public_key().public_bytes_raw() != key.public:
                raise InvalidArgument(str(path), f"is not the key {key.id} of the log")
            self._known[key.id] = SigningKey(self.origin, private)
        return self._known[key.id]
