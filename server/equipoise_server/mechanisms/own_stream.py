"""Random streams for mechanisms that answer each analyst from its own workload alone."""

from __future__ import annotations

from equipoise.queries.compiled_workload import CompiledWorkload
from equipoise_server.randomness.stream import KeyedStream


def own_stream(seed: bytes, workload: CompiledWorkload, *labels: str) -> KeyedStream:
    """Derive an analyst's stream for one purpose, bound to the analyst's own workload and to no other.

    So no two workloads are answered with the same noise, and an analyst's answers do not depend on the workloads of
    others.

    Args:
        seed: the round's secret seed.
        workload: the analyst's workload. A workload without a digest has a stream that only the labels name.
        labels: the purpose and the analyst.
    """
    return KeyedStream.derive(seed, *labels, *([workload.digest.hex()] if workload.digest else []))
