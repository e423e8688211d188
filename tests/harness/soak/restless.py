"""Callers who hang up: every call is cut off at a random moment, if it has not ended by then."""

from __future__ import annotations

import hashlib
import random
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grpc
from harness.crash.callers import operator
from harness.crash.clients import ANALYST_BUDGET, DATA_BUDGET, EACH, WORKLOADS
from harness.crash.dying_server import Persisting, Server
from harness.crash.promises import Promises
from harness.dangers import SMALL_TABLE
from harness.rounds_bench import SALT

from equipoise.clients.auditor import Auditor
from equipoise.clients.operator import Operator
from equipoise.errors import BudgetExhausted, InvalidArgument
from equipoise.model.rounds import Share, Terms
from equipoise.profile.profile import Profile
from equipoise.v1 import analyst_pb2, analyst_pb2_grpc, operator_pb2, operator_pb2_grpc
from equipoise.wire.results import chunk_from_bytes
from equipoise.wire.workloads import workload_to_bytes
from equipoise_server.mechanisms.registry import MECHANISMS

MAX_SECONDS = 1.5  # until a call is cut off; half of all sooner than a tenth of it
PAUSE_SECONDS = 0.5  # at most, between calls: rounds must go on beside
ASKED = workload_to_bytes(WORKLOADS[2])

# How calls of theirs may end: cut off, too early or too late, too many at once, or the server was away.
ENDINGS = {
    grpc.StatusCode.CANCELLED,
    grpc.StatusCode.FAILED_PRECONDITION,
    grpc.StatusCode.NOT_FOUND,
    grpc.StatusCode.RESOURCE_EXHAUSTED,
    grpc.StatusCode.UNAVAILABLE,
}


@dataclass
class RestlessAnalyst:
    """One with a share in every round, whose workload nobody can tell the state of, since submits are cut off."""

    profile: Path
    name: str
    promises: Promises
    random: random.Random
    calls: int = 0
    pulse: float = 0.0

    def go_on(self, stopping: threading.Event) -> None:
        """One call after the other."""
        with _channel(self.profile) as channel:
            stub = analyst_pb2_grpc.AnalystServiceStub(channel)
            while not stopping.wait((PAUSE_SECONDS + self.pulse) * self.random.random()):
                if known := list(self.promises.states):
                    self._call(stub, self.random.choice((known[-1], known[-1], self.random.choice(known))))
                    self.calls += 1

    def _call(self, stub: analyst_pb2_grpc.AnalystServiceStub, round_id: str) -> None:
        request_id = f"{self.random.getrandbits(64):x}"
        header = analyst_pb2.SubmitHeader(
            round_id=round_id, request_id=request_id, commitment_salt=SALT, workload_bytes=len(ASKED)
        )
        gone = threading.Event()

        def pieces(kind: Any, *, whole: bool) -> Iterator[Any]:
            yield kind(header=header)
            yield kind(piece=ASKED[: None if whole else -1])
            if not whole:
                gone.wait()

        match self.random.randrange(11):
            case 0:
                self._ended(stub.GetAnalystRound.future(analyst_pb2.GetAnalystRoundRequest(round_id=round_id)))
            case 1:
                self._ended(stub.ListAnalystRounds.future(analyst_pb2.ListAnalystRoundsRequest()))
            case 2:
                self._read(stub.WatchAnalystRound(analyst_pb2.WatchAnalystRoundRequest(round_id=round_id)))
            case 3:
                self._read(stub.DownloadSynopsis(analyst_pb2.DownloadSynopsisRequest(round_id=round_id)))
            case 4:
                self._ended(stub.DryRunWorkload.future(pieces(analyst_pb2.DryRunWorkloadRequest, whole=True)))
            case 5:
                self._ended(stub.SubmitWorkload.future(pieces(analyst_pb2.SubmitWorkloadRequest, whole=False)))
            case 6 | 7:
                self.promises.facts[("workload", round_id, self.name)] = (None, hashlib.sha256(ASKED).digest())
                self._ended(stub.SubmitWorkload.future(pieces(analyst_pb2.SubmitWorkloadRequest, whole=True)))
            case 8:
                request = analyst_pb2.WithdrawWorkloadRequest(round_id=round_id, request_id=request_id)
                self._ended(stub.WithdrawWorkload.future(request))
            case 9:
                self._read(stub.DownloadEvidence(analyst_pb2.DownloadEvidenceRequest(round_id=round_id)))
            case _:
                call = stub.StreamResults(analyst_pb2.StreamResultsRequest(round_id=round_id))
                with cut_off(call, self.random):
                    read = [chunk_from_bytes(message.chunk) for message in call]
                    self.promises.read(round_id, self.name, read)
        gone.set()

    def _ended(self, call: Any) -> None:
        with cut_off(call, self.random):
            call.result()

    def _read(self, call: Any) -> None:
        with cut_off(call, self.random):
            list(call)


@dataclass
class RestlessOperator:
    """One who looks at everything, plans rounds of every mechanism and opens none; with an auditor beside."""

    server: Server
    promises: Promises
    random: random.Random
    calls: int = 0
    pulse: float = 0.0

    def go_on(self, stopping: threading.Event) -> None:
        """One question after the other, some of them cut off."""
        asking, profiles = operator(self.server), self.server.state / "profiles"
        auditing = Persisting(self.server, lambda: Auditor.from_profile(profiles / "auditor"))
        with _channel(profiles / "operator") as channel:
            stub = operator_pb2_grpc.OperatorServiceStub(channel)
            while not stopping.wait((PAUSE_SECONDS + self.pulse) * self.random.random()):
                if not (known := list(self.promises.states)):
                    continue
                match self.random.randrange(6):
                    case 0:
                        watched = stub.WatchRound(operator_pb2.WatchRoundRequest(round_id=known[-1]))
                        with cut_off(watched, self.random):
                            list(watched)
                    case 1:
                        listed = stub.ListRounds.future(operator_pb2.ListRoundsRequest(page_size=20))
                        with cut_off(listed, self.random):
                            listed.result()
                    case 2:
                        auditing.ask(lambda it: next(it.journal()))
                    case 3:
                        dataset = asking.ask(lambda it, of=known[-1]: it.round(of)).round.terms.dataset  # type: ignore[misc]
                        asking.ask(lambda it, of=dataset: list(it.accounts(of)))  # type: ignore[misc]
                        asking.ask(self._plan(dataset))
                    case 4:
                        auditing.ask(lambda it: (it.checkpoint(), next(it.records())))
                    case _:
                        asking.ask(lambda it: next(it.rounds()))
                self.calls += 1
        asking.close()
        auditing.close()

    def _plan(self, dataset: str) -> Callable[[Operator], None]:
        terms = Terms(
            dataset,
            tuple(Share(name, *EACH) for name in ("ann", "bob")),
            DATA_BUDGET,
            ANALYST_BUDGET,
            self.random.choice(("query", "analyst")),
            mechanism=self.random.choice((*MECHANISMS, "auto")),
            accepted=SMALL_TABLE,
        )

        def plan(it: Operator) -> None:
            with suppress(InvalidArgument, BudgetExhausted):
                it.plan(terms)

        return plan


def _channel(profile: Path) -> grpc.Channel:
    read = Profile.load(profile)
    options = [("grpc.max_reconnect_backoff_ms", 1000), ("grpc.use_local_subchannel_pool", 1)]
    return grpc.secure_channel(read.target, read.credentials(), options=options)


@contextmanager
def cut_off(call: Any, drawn: random.Random) -> Iterator[None]:
    """Ends a call at a random moment, while the block waits for it."""
    timer = threading.Timer(MAX_SECONDS * drawn.random() ** 3, call.cancel)
    timer.start()
    try:
        yield
    except grpc.FutureCancelledError:
        pass
    except grpc.RpcError as error:
        ended: Any = error
        assert ended.code() in ENDINGS, ended
    finally:
        timer.cancel()
