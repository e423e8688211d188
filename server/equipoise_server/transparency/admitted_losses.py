"""What the log admits to be lost, as an analyst is shown it whose checkpoint the log does not contain.

Formal guarantee: it is a function of the restorations, of the keys that were retired, and of hashes and signatures.
Nothing that an analyst does makes such a record.
"""

from __future__ import annotations

from sqlalchemy import Connection, func, select

from equipoise.records.admitted_losses import AdmittedLosses
from equipoise.records.evidence import needed_keys
from equipoise.records.log_items import KeyItem
from equipoise.records.record import Audience, Kind
from equipoise.records.record_layouts import read_item
from equipoise_server.storage.tables.transparency import record_items, records
from equipoise_server.transparency import log
from equipoise_server.transparency.evidence import RecordedStep, opened_record
from equipoise_server.transparency.keys import Purpose
from equipoise_server.transparency.signing import Signer

_SHOWN = (Kind.LOG_RESTORED, Kind.KEY_RETIRED)
# A restoration is told once for each lost entry, in the same words: the first one shows where it begins.
_FIRST = (
    select(func.min(records.c.log_index), record_items.c.content)
    .join(record_items, record_items.c.record == records.c.position)
    .where(
        records.c.round_id == "",  # uses the index on rounds, as nearly all records have one
        records.c.kind.in_([kind.value for kind in _SHOWN]),
        records.c.log_index.is_not(None),
        record_items.c.audience == Audience.ROUND.value,
    )
    .group_by(records.c.kind, record_items.c.content)
)


def admitted_losses(connection: Connection, signer: Signer, deployment: str) -> AdmittedLosses | None:
    """Return the records of restorations and of retired log keys, under the newest checkpoint.

    Args:
        connection: to the store.
        signer: knows the log's public keys.
        deployment: the deployment's name.

    Returns:
        What is shown to every analyst; None where no checkpoint is signed yet.
    """
    head = log.signed_head(connection)
    if head is None:
        return None
    indices = [index for index, content in connection.execute(_FIRST) if index < head.size and _is_shown(content)]
    columns = (records.c.position, records.c.kind, records.c.log_index, records.c.leaf)
    rows = connection.execute(
        select(*columns).where(records.c.log_index.in_(indices)).order_by(records.c.log_index)
    ).all()
    keys = needed_keys(signer.verifier_keys(connection), [head.note], None)
    return AdmittedLosses(
        deployment=deployment,
        checkpoint=head.note,
        keys=tuple(sorted(key.to_text() for key in keys)),
        records=tuple(opened_record(connection, RecordedStep(*row), head) for row in rows),
    )


def _is_shown(content: bytes) -> bool:
    """Whether it is a restoration, or a key of the log: auditors' keys sign nothing."""
    return b'"item":"key"' not in content or read_item(content, KeyItem).purpose == Purpose.LOG.value
