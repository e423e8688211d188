"""Streams of mechanisms that answer each analyst from its own workload alone."""

from __future__ import annotations

from equipoise.queries.compiled_workload import CompiledWorkload
from equipoise_server.randomness.stream import KeyedStream


def own_stream(seed: bytes, workload: CompiledWorkload, *labels: str) -> KeyedStream:
    """Derive an analyst's stream for a purpose, bound to its workload and to nobody else's.

    So no two workloads are answered with the same noise, and what an analyst sees does not depend on what others
    asked at all. Labels alone name the stream of a workload that has no bytes.
    """
    return KeyedStream.derive(seed, *labels, *([workload.digest.hex()] if workload.digest else []))
