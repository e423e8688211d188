"""Memory: threads share the C library's heaps, seen in a process of its own, and a process knows its own peak."""

from __future__ import annotations

import platform
import re
import subprocess
import sys

from equipoise_server.memory import HEAPS, peak_memory_bytes

SCRIPT = """
import ctypes, threading
from equipoise_server.memory import share_heaps

share_heaps()
ready = threading.Barrier(12)

def allocate():
    ready.wait()
    kept = bytearray(100_000)
    ready.wait()

threads = [threading.Thread(target=allocate) for _ in range(ready.parties)]
for thread in threads: thread.start()
for thread in threads: thread.join()
library = ctypes.CDLL(None)
if hasattr(library, "malloc_info"):
    library.fdopen.restype = ctypes.c_void_p
    stream = ctypes.c_void_p(library.fdopen(1, b"w"))
    library.malloc_info(0, stream)
    library.fflush(stream)
"""


def test_threads_share_a_few_heaps() -> None:
    told = subprocess.run([sys.executable, "-c", SCRIPT], check=True, capture_output=True, text=True).stdout
    heaps = len(re.findall("<heap ", told))
    assert heaps <= HEAPS
    assert heaps or platform.libc_ver()[0] != "glibc"


def test_peak_memory_is_in_bytes() -> None:
    assert 10 << 20 < peak_memory_bytes() < 64 << 30
