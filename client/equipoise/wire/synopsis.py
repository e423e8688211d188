"""Parts of a synopsis as messages, and back: category numbers, attribute after attribute, record after record."""

from __future__ import annotations

import numpy as np

from equipoise.errors import DataLoss
from equipoise.model.synopsis import Synopsis, SynopsisPart
from equipoise.v1 import analyst_pb2


def synopsis_part_to_message(part: SynopsisPart) -> analyst_pb2.DownloadSynopsisResponse:
    """Returns the message."""
    cells = part.synopsis.categories.ravel().tolist()
    return analyst_pb2.DownloadSynopsisResponse(cells=cells, records=part.total)


def synopsis_part_from_message(
    message: analyst_pb2.DownloadSynopsisResponse, sizes: tuple[int, ...]
) -> SynopsisPart:
    """Returns the inverse. Raises `DataLoss` for what are not whole records of such a schema."""
    numbers = np.array(message.cells, dtype=np.int64)
    if numbers.size % len(sizes):
        raise DataLoss("the synopsis ends in the middle of a record")
    try:
        synopsis = Synopsis.from_categories(numbers.reshape(-1, len(sizes)), sizes)
    except ValueError:
        raise DataLoss("the synopsis holds categories that the schema does not have") from None
    return SynopsisPart(synopsis, message.records)
