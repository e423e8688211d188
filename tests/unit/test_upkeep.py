"""What a server does by itself goes on after whatever went wrong once."""

from __future__ import annotations

import asyncio
from typing import cast

import pytest

from equipoise.errors import Unavailable
from equipoise_server import upkeep
from equipoise_server.rounds.lifecycle import Lifecycle


class Failing:
    """RoundServices that cannot be looked after twice, in two ways, and end the server the third time."""

    def __init__(self, stopping: asyncio.Event) -> None:
        self.loop = asyncio.get_running_loop()
        self.stopping = stopping
        self.looked = 0

    def take_over(self) -> None:
        self.looked += 1
        if self.looked == 1:
            raise OSError(11, "no more processes")
        if self.looked == 2:
            raise Unavailable("the store is out of order now")
        self.loop.call_soon_threadsafe(self.stopping.set)


async def test_a_round_that_cannot_be_taken_over_does_not_end_the_server(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(upkeep, "TAKE_OVER_SECONDS", 0.01)
    stopping = asyncio.Event()
    rounds = Failing(stopping)
    await asyncio.wait_for(upkeep.take_over(cast("Lifecycle", rounds), stopping), 30)
    assert rounds.looked >= 3
