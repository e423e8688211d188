"""What is shown of the verifiable log, as messages, and back."""

from __future__ import annotations

from equipoise.model.log import ItemOpening, RecordOpening, SealedSeed
from equipoise.v1 import auditor_pb2
from equipoise.wire.messages import MessageCodec

ITEM_OPENING = MessageCodec(auditor_pb2.ItemOpening, ItemOpening)
RECORD_OPENING = MessageCodec(auditor_pb2.RecordOpening, RecordOpening, items=ITEM_OPENING)
SEALED_SEED = MessageCodec(auditor_pb2.SealedSeed, SealedSeed)

record_opening_to_message, record_opening_from_message = RECORD_OPENING.write, RECORD_OPENING.read
sealed_seed_to_message, sealed_seed_from_message = SEALED_SEED.write, SEALED_SEED.read
