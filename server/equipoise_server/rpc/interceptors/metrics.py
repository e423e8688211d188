"""The metrics of a server's calls: how many there were, how they ended, and how long they took.

Labels are methods of the policy table, `unknown` for all others, and statuses of gRPC: nothing that names a person
or that a caller chooses. The durations of streams and uploads are not measured, because they depend on the size of
one analyst's work.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager

from grpc import aio
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector, start_http_server
from prometheus_client.registry import Collector

from equipoise.errors import EquipoiseError, InternalError, InvalidArgument, Unavailable
from equipoise_server.identity.policy import POLICY, Rate
from equipoise_server.rpc.interceptors.interceptor import Call, Guard

SECONDS = (0.005, 0.02, 0.1, 0.5, 2.0, 10.0, 60.0)


class Metrics:
    """The metrics of one server: its calls, its process, and those of further collectors."""

    def __init__(self, collectors: Iterable[Collector]) -> None:
        self.registry = CollectorRegistry()
        self._calls = Counter(
            "equipoise_calls", "Calls that have ended.", ("method", "status"), registry=self.registry
        )
        self._open = Gauge("equipoise_open_calls", "Calls that are open.", ("method",), registry=self.registry)
        self._seconds = Histogram(
            "equipoise_call_seconds",
            "How long calls with one request and one response took.",
            ("method",),
            registry=self.registry,
            buckets=SECONDS,
        )
        for collector in collectors:
            self.registry.register(collector)
        ProcessCollector(registry=self.registry)

    def guard(self) -> Guard:
        """Return the guard that counts each call by its method. It must run inside `hide_errors`."""

        @asynccontextmanager
        async def measure(call: Call) -> AsyncIterator[None]:
            name = call.method.rpartition("/")[2]
            begin = asyncio.get_running_loop().time()
            status = "OK"
            self._open.labels(name).inc()
            try:
                yield
            except EquipoiseError as error:
                status = error.status
                raise
            except asyncio.CancelledError:
                status = "CANCELLED"
                raise
            except aio.AbortError:
                # `rpc.methods` has already ended a stream that was not read.
                status = Unavailable.status
                raise
            except Exception:
                status = InternalError.status
                raise
            finally:
                self._open.labels(name).dec()
                self._calls.labels(name, status).inc()
                if call.method in POLICY and POLICY[call.method].rate in (Rate.READ, Rate.CHANGE):
                    self._seconds.labels(name).observe(asyncio.get_running_loop().time() - begin)

        return measure

    @asynccontextmanager
    async def served(self, listen: str) -> AsyncIterator[int]:
        """Serve the metrics over HTTP while the context is open, and yield the port.

        Args:
            listen: HOST:PORT; where it is empty, nothing is served and the port is 0.

        Raises:
            InvalidArgument: The address cannot be used.
        """
        if not listen:
            yield 0
            return
        host, _, port = listen.rpartition(":")
        try:
            server, thread = start_http_server(int(port), host.strip("[]"), self.registry)
        except OSError:
            raise InvalidArgument("metrics_listen", f"cannot listen on {listen}") from None
        try:
            yield server.server_port
        finally:
            await asyncio.to_thread(server.shutdown)
            server.server_close()
            await asyncio.to_thread(thread.join)
