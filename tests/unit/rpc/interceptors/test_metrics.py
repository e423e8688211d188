"""Metrics count calls by method and status, and name nobody."""

from __future__ import annotations

import asyncio
import re
import urllib.request
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import cast

import pytest
from harness.waiting import PATIENCE
from prometheus_client import generate_latest

from equipoise.accounting import Cost
from equipoise.errors import InvalidArgument, NotFound
from equipoise_server.ledger.accounts import Account, free_part
from equipoise_server.ledger.caps import Cap, Composition, at_order, limits
from equipoise_server.rpc.interceptors.gauges import CertificateGauge, FailedRuns, StoreGauges
from equipoise_server.rpc.interceptors.interceptor import Call, Context
from equipoise_server.rpc.interceptors.metrics import Metrics
from equipoise_server.storage.store import Store, open_store

CAP = at_order("cap", Cap(1.0, 1e-6))
SUBMIT = "/equipoise.v1.AnalystService/SubmitWorkload"
GET = "/equipoise.v1.AnalystService/GetAnalystRound"


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    opened = open_store(f"sqlite:///{tmp_path / 'test.db'}")
    yield opened
    opened.close()


async def counted(metrics: Metrics, method: str, error: BaseException | None = None) -> None:
    with suppress(type(error or KeyError())):
        async with metrics.guard()(Call(method, cast(Context, None))):
            if error is not None:
                raise error


def lines(metrics: Metrics, name: str) -> set[str]:
    """What is offered under a name, without the moments at which counters were made."""
    text = generate_latest(metrics.registry).decode()
    return {line for line in text.splitlines() if line.startswith(name) and "_created" not in line}


async def test_calls_are_counted_by_method_and_status(store: Store) -> None:
    metrics = Metrics([StoreGauges(store)])
    for method, error in (
        (GET, None),
        (GET, None),
        (GET, NotFound("alice")),
        (SUBMIT, ValueError("alice")),
        (SUBMIT, asyncio.CancelledError()),
    ):
        await counted(metrics, method, error)
    assert lines(metrics, "equipoise_calls_total") == {
        'equipoise_calls_total{method="GetAnalystRound",status="OK"} 2.0',
        'equipoise_calls_total{method="GetAnalystRound",status="NOT_FOUND"} 1.0',
        'equipoise_calls_total{method="SubmitWorkload",status="INTERNAL"} 1.0',
        'equipoise_calls_total{method="SubmitWorkload",status="CANCELLED"} 1.0',
    }
    assert lines(metrics, "equipoise_open_calls") == {
        'equipoise_open_calls{method="GetAnalystRound"} 0.0',
        'equipoise_open_calls{method="SubmitWorkload"} 0.0',
    }
    # How long an upload took would tell how large it was.
    timed = lines(metrics, "equipoise_call_seconds_count")
    assert timed == {'equipoise_call_seconds_count{method="GetAnalystRound"} 3.0'}
    assert b"alice" not in generate_latest(metrics.registry)


async def test_labels_are_methods_statuses_states_and_sizes_of_buckets_only(store: Store) -> None:
    metrics = Metrics([StoreGauges(store)])
    await counted(metrics, GET)
    offered = generate_latest(metrics.registry).decode()
    assert set(re.findall(r'(\w+)="', offered)) == {"method", "status", "state", "le"}


def test_what_is_left_of_budgets_certificates_and_failed_runs_is_offered(store: Store) -> None:
    half = Account("data/t", "t", Composition.SEQUENTIAL, CAP, limits(CAP), Cost(), Cost())
    assert free_part(half) == 1.0
    limit = limits(CAP)
    spent = Cost(divergence=limit.divergence // 4, delta=limit.delta // 2)
    assert free_part(replace(half, committed=spent)) == pytest.approx(0.5)
    now = datetime(2026, 1, 1, tzinfo=UTC)
    ends = {"server": now + timedelta(days=2), "authority": now - timedelta(seconds=5)}
    failed = iter((0, 3))
    metrics = Metrics(
        [StoreGauges(store), CertificateGauge(lambda: ends, lambda: now), FailedRuns(lambda: next(failed))]
    )
    assert lines(metrics, "equipoise_certificate_seconds_left") == {
        'equipoise_certificate_seconds_left{certificate="server"} 172800.0',
        'equipoise_certificate_seconds_left{certificate="authority"} -5.0',
    }
    assert lines(metrics, "equipoise_failed_runs_total") == {"equipoise_failed_runs_total 3.0"}


@pytest.mark.slow
async def test_they_are_offered_over_http_until_the_server_stops(store: Store) -> None:
    metrics = Metrics([StoreGauges(store)])
    await counted(metrics, GET)

    def fetched(port: int) -> str:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=PATIENCE) as answer:
            return str(answer.read().decode())

    async with metrics.served("127.0.0.1:0") as port:
        text = await asyncio.to_thread(fetched, port)
        assert 'equipoise_rounds{state="open"} 0.0' in text
        with pytest.raises(InvalidArgument, match="metrics_listen: cannot listen"):
            async with metrics.served(f"127.0.0.1:{port}"):
                pass
        store.close()
    async with metrics.served("") as nowhere:
        assert nowhere == 0
