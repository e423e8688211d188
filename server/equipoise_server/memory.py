"""How the C library's allocator is set up for a server, before it has threads; and the most memory a process had.

glibc gives threads that allocate at the same time heaps of their own, up to eight for each processor, and each heap
keeps what it has ever needed at once: what was freed between pieces that are still in use goes back to nobody. With
sixteen heaps for some thirty threads on two processors, a server held 43 MiB of freed memory beside 64 MiB in use,
and grew until each heap had had its largest call; with two heaps it holds 10 MiB. More processors make it more.
"""

from __future__ import annotations

import ctypes
import resource
import sys
from pathlib import Path

HEAPS = 2  # Python's lock lets one thread at a time allocate for Python; gRPC and SQLite also do so without it
M_ARENA_MAX = -8  # of glibc's malloc.h, see mallopt(3)


def share_heaps() -> None:
    """Let all threads of this process share a few heaps. Does nothing where the C library is not glibc."""
    if (mallopt := getattr(ctypes.CDLL(None), "mallopt", None)) is not None:
        mallopt(M_ARENA_MAX, HEAPS)


def peak_memory_bytes() -> int:
    """Return the largest resident size this process has had.

    Where there is /proc it is read from there: `getrusage` also counts what the starting process held before
    the worker's own program was loaded.
    """
    try:
        status = Path("/proc/self/status").read_text()
    except OSError:
        kibibytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return kibibytes if sys.platform == "darwin" else kibibytes * 1024
    lines = dict(line.partition(":")[::2] for line in status.splitlines())
    return int(lines["VmHWM"].split()[0]) * 1024
