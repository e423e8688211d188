"""The synopsis of a released round: a private output, the same for every analyst of the round.

Its size is public, being the plan's number of drawn records; that and its content are accounted for as released.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from sqlalchemy import select

from equipoise.errors import DataLoss, WrongState
from equipoise_server.rounds.service import Rounds
from equipoise_server.rounds.states import RoundState
from equipoise_server.storage.store import Store
from equipoise_server.storage.tables import rounds, synopses

RECORDS_A_MESSAGE = 4096


@dataclass(frozen=True)
class Synopses:
    """Reads what was stored at release."""

    rounds: Rounds
    store: Store

    def pages(self, analyst: str, round_id: str) -> Iterator[list[int]]:
        """The category numbers of up to 4,096 records a page, attribute after attribute, record after record.

        Raises `NotFound` without a share, `WrongState` before the round's results can be read, `DataLoss`.
        """
        record = self.rounds.get_for_analyst(analyst, round_id)
        # RELEASED is shown to analysts from the release time on: the synopsis opens when the streams do.
        if record.state is not RoundState.RELEASED:
            raise WrongState("the round's synopsis cannot be read yet, or there is none")
        sizes = self.rounds.get_dataset(record.terms.dataset).schema.sizes
        with self.store.read() as connection:
            run_id = connection.execute(select(rounds.c.run_id).where(rounds.c.id == round_id)).scalar_one()
            if run_id is None:
                raise WrongState("the round's results are no longer kept")
            query = select(synopses.c.cells).where(synopses.c.run_id == run_id)
            stored = connection.execute(query).scalar_one_or_none()
        if stored is None:
            raise DataLoss("the round's synopsis is not in the store")
        cells = np.frombuffer(stored, dtype="<u4").astype(np.int64)
        for start in range(0, len(cells), RECORDS_A_MESSAGE):
            numbers = np.unravel_index(cells[start : start + RECORDS_A_MESSAGE], sizes)
            yield np.stack(numbers, axis=1).ravel().tolist()
