"""Turns are taken in the order of coming, also beside one who comes back at once."""

from __future__ import annotations

import threading
import time

import pytest

from equipoise_server.storage.fair_lock import Turns

SECONDS = 30


def test_who_comes_back_at_once_waits_behind_those_who_came_before() -> None:
    turns, order = Turns(), []

    def take(number: int) -> None:
        with turns:
            order.append(number)

    threads = [threading.Thread(target=take, args=(number,)) for number in range(8)]
    with turns:
        for number, thread in enumerate(threads):
            thread.start()
            end = time.monotonic() + SECONDS
            while len(turns._waiting) <= number and time.monotonic() < end:
                time.sleep(0.001)
        assert order == []
    with turns:
        assert order == list(range(8))
    for thread in threads:
        thread.join(SECONDS)


def test_one_thread_at_a_time() -> None:
    turns, inside, most = Turns(), 0, 0

    def take() -> None:
        nonlocal inside, most
        for _ in range(50):
            with turns:
                inside += 1
                most = max(most, inside)
                time.sleep(0)
                inside -= 1

    threads = [threading.Thread(target=take) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(SECONDS)
    assert (inside, most) == (0, 1)


def test_a_turn_ends_with_an_exception() -> None:
    turns = Turns()
    with pytest.raises(ValueError, match="stop"), turns:
        raise ValueError("stop")
    with turns:
        pass
