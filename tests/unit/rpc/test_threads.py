"""Shared threads: nobody has more than a share, nobody waits for all that another has asked for."""

from __future__ import annotations

import asyncio
import gc
import threading
import weakref
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from harness.waiting import PATIENCE

from equipoise.errors import InternalError, InvalidArgument
from equipoise_server.rpc.threads import SharedThreads


@asynccontextmanager
async def shared(threads: int) -> AsyncIterator[SharedThreads]:
    made = SharedThreads(threads, "test")
    try:
        yield made
    finally:
        await asyncio.to_thread(made.close)


async def test_results_and_errors_come_back() -> None:
    async with shared(2) as threads:
        assert await threads.run("ann", int, "7") == 7
        with pytest.raises(ValueError, match="invalid literal"):
            await threads.run("ann", int, "x")
        assert await threads.run("ann", int, "8") == 8


class Large:
    """What a function holds while it runs, such as a workload that has been parsed."""


async def test_what_an_ended_function_held_needs_no_collector() -> None:
    held: list[weakref.ref[Large]] = []

    def answer() -> Large:
        large = Large()
        held.append(weakref.ref(large))
        return large

    def refuse() -> None:
        large = answer()
        try:
            raise KeyError(large)
        except KeyError as cause:
            raise InvalidArgument("workload", "is wrong") from cause

    async with shared(1) as threads:

        async def refused() -> bool:
            try:
                await threads.run("eve", refuse)
            except InvalidArgument:
                return True
            return False

        gc.disable()
        try:
            assert await threads.run("eve", answer) is held[0]()
            assert await refused()
            # The one thread has let go of a task when it has begun the next.
            await threads.run("eve", int, "1")
            assert [each() for each in held] == [None, None]
        finally:
            gc.enable()


async def test_only_unexpected_errors_keep_where_they_arose() -> None:
    def fail(error: Exception) -> None:
        raise error

    async with shared(1) as threads:
        for error, kept in (
            (InvalidArgument("a", "is wrong"), False),
            (InternalError("x"), True),
            (OSError(), True),
        ):
            with pytest.raises(type(error)) as caught:
                await threads.run("eve", fail, error)
            assert (caught.traceback[-1].name == "fail") is kept


async def test_a_caller_has_a_quarter_of_the_threads_however_much_it_asks_for() -> None:
    async with shared(8) as threads:
        going, release, begun = asyncio.get_running_loop(), threading.Event(), asyncio.Semaphore(0)

        def work() -> None:
            going.call_soon_threadsafe(begun.release)
            release.wait(PATIENCE)

        try:
            many = [asyncio.create_task(threads.run("eve", work)) for _ in range(50)]
            for _ in range(2):
                await asyncio.wait_for(begun.acquire(), PATIENCE)
            # Others are answered at once, and one of eve's further tasks would have begun before them.
            for name in ("ann", "bob"):
                assert await asyncio.wait_for(threads.run(name, int, "1"), PATIENCE) == 1
            assert begun.locked()
        finally:
            release.set()
        await asyncio.gather(*many)


async def test_waiting_callers_take_turns() -> None:
    order: list[str] = []
    async with shared(1) as threads:
        release = threading.Event()
        try:
            first = asyncio.create_task(threads.run("eve", release.wait, PATIENCE))
            await asyncio.sleep(0)
            names = ["eve", "eve", "eve", "ann", "ann", "bob"]
            tasks = [asyncio.create_task(threads.run(name, order.append, name)) for name in names]
            await asyncio.sleep(0)
        finally:
            release.set()
        await asyncio.gather(first, *tasks)
    assert order == ["eve", "ann", "bob", "eve", "ann", "eve"]


async def test_cancelled_tasks_leave_their_places() -> None:
    async with shared(1) as threads:
        release = threading.Event()
        try:
            running = asyncio.create_task(threads.run("eve", release.wait, PATIENCE))
            waiting = [asyncio.create_task(threads.run("eve", int, "1")) for _ in range(5)]
            later = asyncio.create_task(threads.run("ann", int, "2"))
            await asyncio.sleep(0)
            for task in (*waiting, running):
                task.cancel()
            ended = await asyncio.gather(*waiting, running, return_exceptions=True)
            assert all(isinstance(each, asyncio.CancelledError) for each in ended)
            # The thread itself cannot be interrupted: it is not given away before it is free.
            assert not later.done()
        finally:
            release.set()
        assert await asyncio.wait_for(later, PATIENCE) == 2
        assert await asyncio.wait_for(threads.run("eve", int, "3"), PATIENCE) == 3


async def test_a_task_cancelled_at_the_moment_of_its_turn_passes_it_on() -> None:
    async with shared(1) as threads:
        for _ in range(20):
            first = asyncio.create_task(threads.run("eve", int, "1"))
            second = asyncio.create_task(threads.run("ann", int, "2"))
            await asyncio.sleep(0)
            first.cancel()
            assert await asyncio.wait_for(second, PATIENCE) == 2
            await asyncio.gather(first, return_exceptions=True)
