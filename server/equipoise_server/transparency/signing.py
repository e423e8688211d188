"""The private keys of the log, one file each in the state directory, and the signatures that they make.

    keys/log-ID.key     Ed25519, PKCS #8 in PEM, mode 0600

Trust: whoever can read one of these files can sign a second log under the deployment's name. Only readers who
compare checkpoints detect that.
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
    """Return a private key as unencrypted PKCS #8 in PEM."""
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())


@dataclass(frozen=True)
class Signer:
    """The signer of one deployment's log, whose private keys are in `directory`. Safe to use from several threads.

    `origin` names the log and all its keys. A key's file is read when the key is first needed, because keys may be
    added and retired while servers run.
    """

    directory: Path
    origin: str
    _known: dict[str, SigningKey] = field(default_factory=dict, repr=False)

    def make_key(self, now: datetime) -> PublicKey:
        """Make a key, write its file durably, and return its public part. The key is not in force yet."""
        private = Ed25519PrivateKey.generate()
        key = PublicKey(Purpose.LOG, private.public_key().public_bytes_raw(), now)
        write_private(self.path(key), private_pem(private))
        sync_directory(self.directory)
        return key

    def path(self, key: PublicKey) -> Path:
        """Return the path of a key's private part."""
        return self.directory / f"log-{key.id}.key"

    def check(self, connection: Connection) -> None:
        """Raise `InvalidArgument`, naming the file, where the file of any key in force is missing or unusable."""
        self._in_force(connection)

    def checkpoint(self, connection: Connection, head: TreeHead) -> bytes:
        """Return the note that states this size and root, signed by every key that is in force in the log up to it.

        So the note depends on the log alone, and not on the time or the server that signs it.

        Raises:
            DataLoss: no key is in force at this size.
            InvalidArgument: the file of a key is missing, malformed or too open.
        """
        signing = in_force_at(connection, Purpose.LOG, head.size)
        if not signing:
            raise DataLoss(f"the log is damaged: no key is in force at size {head.size}")
        text = Checkpoint(self.origin, head.size, head.root).to_text()
        return sign_note(text, [self._private(key) for key in signing])

    def check_checkpoints(self, connection: Connection) -> int:
        """Verify every stored checkpoint, and return their number. Raises `DataLoss`, naming the first wrong one.

        Each checkpoint must be signed by exactly the keys that were in force in the log at its size.
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
        """Return a signed envelope, with one signature by every key in force."""
        return envelopes.sign(payload_type, payload, self._in_force(connection))

    def receipt(self, connection: Connection, payload_type: str, payload: bytes) -> bytes:
        """Return the envelope of a receipt. Raises `Unavailable` where it cannot be signed."""
        try:
            return self.envelope(connection, payload_type, payload)
        except InvalidArgument as error:
            # The file of a key that was added while this server runs is not here: the analyst is not at fault.
            log.error("receipt_not_signed", problem=error.message)
            raise Unavailable("receipts cannot be signed now") from None

    def verifier_keys(self, connection: Connection) -> list[VerifierKey]:
        """Return every key that was ever in force, present ones first, for readers of old and new signatures."""
        ordered = sorted(all_keys(connection, Purpose.LOG), key=lambda key: key.retired is not None)
        return [self.verifier(key) for key in ordered]

    def verifier(self, key: PublicKey) -> VerifierKey:
        """Return a public key in the form that readers of the log use."""
        return VerifierKey(self.origin, key.public)

    def lines(self, connection: Connection) -> str:
        """Return the keys in force as text for readers, one line each."""
        return "".join(f"{self.verifier(key).to_text()}\n" for key in in_force(connection, Purpose.LOG))

    def remove_retired(self, connection: Connection) -> None:
        """Remove the files of retired keys."""
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
