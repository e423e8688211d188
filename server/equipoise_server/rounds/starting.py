"""How a worker process starts: where people who wait for a call want it, before it loads its program.

    process = start(context, serve_job, pipe, job, name, BEHIND_CALLS)

Loading takes seconds of a processor, so this module imports nothing that takes long. Nobody waits for a round,
which comes out on a grid of times anyway; a session is answered while its analysts wait.
"""

from __future__ import annotations

import os
import pickle
from collections.abc import Callable
from contextlib import suppress
from multiprocessing.connection import Connection
from multiprocessing.context import SpawnContext, SpawnProcess
from pathlib import Path
from typing import TypeVar

BEHIND_CALLS = 10  # a run takes a tenth of a processor that calls need, and all that is left
AMONG_CALLS = 0
NICEST = 19  # there is
AUTOGROUP = Path("/proc/self/autogroup")

Work = TypeVar("Work")


def start(
    context: SpawnContext,
    serve: Callable[[Connection, Work], None],
    pipe: Connection,
    work: Work,
    name: str,
    behind: int,
) -> SpawnProcess:
    """A process, just started, that calls `serve(pipe, work)`. `behind`: how much nicer than the server it is."""
    niceness = min(NICEST, os.getpriority(os.PRIO_PROCESS, 0) + behind)
    called = pickle.dumps((serve, work))
    process = context.Process(target=_begin, args=(pipe, called, niceness), name=name, daemon=True)
    process.start()
    assert process.pid is not None
    # Whatever multiprocessing itself loads there comes before `_begin`.
    os.setpriority(os.PRIO_PROCESS, process.pid, niceness)
    return process


def _begin(pipe: Connection, called: bytes, niceness: int) -> None:
    # A terminal interrupts its own session only; the server decides when its workers end.
    os.setsid()
    # Where Linux shares processors among sessions first (sched(7), autogroups), niceness counts within a session
    # only, and a database would wait for a worker as for its equal.
    with suppress(OSError):
        AUTOGROUP.write_text(str(niceness))
    serve, work = pickle.loads(called)  # loads the program
    serve(pipe, work)
