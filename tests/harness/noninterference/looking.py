"""All that bob, cyd and eve do and see: every call that an analyst can make, at a stage of every round."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import grpc
from google.protobuf.message import Message
from harness.noninterference.conducts import BEYOND, USUAL, asking, dry, upload, withdrawal
from harness.noninterference.wire_view import PATIENCE, Seen, View, ask, blanked, opened, without
from harness.rounds_bench import COLOUR, SIZE

from equipoise.queries.statements import Marginal, Statement
from equipoise.v1 import analyst_pb2
from equipoise.wire.workloads import workload_to_bytes

OWN: Mapping[str, Sequence[Statement]] = {
    "bob": (Marginal(("colour",)), SIZE == "m"),
    "cyd": (COLOUR == "green", SIZE.isin(["s", "xl"]), SIZE == "l"),
}
VIEWERS = (*OWN, "eve")  # eve has no share
NOWHERE = "0" * 32


@dataclass(frozen=True)
class Watched:
    """A round as the viewers know it. `perfect`: values, ways, intervals and synopsis may not differ either."""

    name: str
    round_id: str
    seed_commitment: bytes
    perfect: bool


@dataclass
class Viewers:
    """The viewers' connections, and all that they have seen in the order in which they asked.

    `measurement`: the id of the standing measurement, which is named to all of them; empty where there is none.
    """

    channels: Mapping[str, grpc.Channel]
    rounds: Sequence[Watched]
    view: View = field(default_factory=list)
    measurement: str = ""

    def submit(self) -> None:
        """Bob and cyd submit, the same again, and something else under the same id."""
        for each in self.rounds:
            for viewer in OWN:
                self._call(viewer, each, "own", "SubmitWorkload", first_submission(viewer, each))
                self._call(viewer, each, "own again", "SubmitWorkload", first_submission(viewer, each))
                other = upload(each.round_id, "mine", workload_to_bytes(USUAL))
                self._call(viewer, each, "other", "SubmitWorkload", other)

    def withdraw(self) -> None:
        """Bob withdraws, twice, and comes back."""
        for each in self.rounds:
            for name in ("withdrawal", "another"):
                self._call("bob", each, name, "WithdrawWorkload", [withdrawal(each.round_id, name)])
            back = upload(each.round_id, "back", workload_to_bytes(OWN["bob"]))
            self._call("bob", each, "back", "SubmitWorkload", back)

    def look(self, stage: str) -> None:
        """Everything that can be asked for, about every round and about the server."""
        for each in self.rounds:
            for viewer in VIEWERS:
                self._look_at(viewer, each, stage)
            for viewer in OWN:
                self._try_what_is_refused(viewer, each, stage)
        for viewer in VIEWERS:
            self._look_around(viewer, stage)

    def keep(self, seen: Seen, each: Watched) -> None:
        """Without what may differ."""
        names = {self.measurement.encode(): b"the id of the measurement".ljust(32)} if self.measurement else {}
        for number, known in enumerate(self.rounds):
            names[known.round_id.encode()] = f"the id of round {number}".ljust(32).encode()
            names[known.seed_commitment] = f"the commitment of {number}".ljust(32).encode()
        seen = opened(seen)
        self.view.append(without(seen if each.perfect else blanked(seen), names))

    def _look_at(self, viewer: str, each: Watched, stage: str) -> None:
        shown = analyst_pb2.GetAnalystRoundRequest(round_id=each.round_id)
        self._call(viewer, each, stage, "GetAnalystRound", [shown])
        results = analyst_pb2.StreamResultsRequest(round_id=each.round_id)
        self._call(viewer, each, stage, "StreamResults", [results])
        synopsis = analyst_pb2.DownloadSynopsisRequest(round_id=each.round_id)
        self._call(viewer, each, stage, "DownloadSynopsis", [synopsis])
        evidence = analyst_pb2.DownloadEvidenceRequest(round_id=each.round_id)
        self._call(viewer, each, stage, "DownloadEvidence", [evidence])
        self._call(viewer, each, stage, "AskQueries", asking(each.round_id))
        own = workload_to_bytes(OWN.get(viewer, USUAL))
        self._call(viewer, each, stage, "DryRunWorkload", dry(each.round_id, own))

    def _try_what_is_refused(self, viewer: str, each: Watched, stage: str) -> None:
        far = analyst_pb2.StreamResultsRequest(round_id=each.round_id, after_sequence=7)
        self._call(viewer, each, f"{stage}, beyond the end", "StreamResults", [far])
        further = analyst_pb2.DownloadSynopsisRequest(round_id=each.round_id, after_records=2**40)
        self._call(viewer, each, f"{stage}, beyond the end", "DownloadSynopsis", [further])
        never = analyst_pb2.DownloadEvidenceRequest(round_id=each.round_id, since_size=2**40)
        self._call(viewer, each, f"{stage}, never shown", "DownloadEvidence", [never])
        for what, workload in {"large": workload_to_bytes(BEYOND), "broken": b"\xff"}.items():
            self._call(viewer, each, f"{stage}, {what}", "DryRunWorkload", dry(each.round_id, workload))
            sent = upload(each.round_id, f"{stage} {what}", workload)
            self._call(viewer, each, f"{stage}, {what}", "SubmitWorkload", sent)
        late = upload(each.round_id, stage, workload_to_bytes(OWN[viewer]))
        self._call(viewer, each, f"{stage}, own anew", "SubmitWorkload", late)
        self._call(viewer, each, f"{stage}, own again", "SubmitWorkload", first_submission(viewer, each))

    def _look_around(self, viewer: str, stage: str) -> None:
        listing, first, last = analyst_pb2.ListAnalystRoundsRequest, self.rounds[0], self.rounds[-1]
        pages = {
            "all": listing(),
            "one": listing(page_size=1),
            "too many": listing(page_size=2**31),
            "after the newest": listing(page_token=last.round_id, page_size=2),
            "after none": listing(page_token=NOWHERE),
        }
        for what, page in pages.items():
            self._call(viewer, first, f"{stage}, {what}", "ListAnalystRounds", [page])
        for name in ("shop", "none"):
            dataset = analyst_pb2.GetDatasetRequest(name=name)
            self._call(viewer, first, f"{stage}, {name}", "GetDataset", [dataset])
        nowhere = analyst_pb2.GetAnalystRoundRequest(round_id=NOWHERE)
        self._call(viewer, first, f"{stage}, no such round", "GetAnalystRound", [nowhere])
        self._call(viewer, first, stage, "GetIdentity", [analyst_pb2.GetIdentityRequest()])
        self._call(viewer, first, stage, "GetAuthority", [analyst_pb2.GetAuthorityRequest()])
        self._call(viewer, first, stage, "ListSessions", [analyst_pb2.ListSessionsRequest()])
        self._call(viewer, first, f"{stage}, no such session", "AskQueries", asking(NOWHERE))
        self._call(viewer, first, stage, "ListOwnDatasets", [analyst_pb2.ListOwnDatasetsRequest()])
        self._call(viewer, first, stage, "ListSpending", [analyst_pb2.ListSpendingRequest(round_id=first.round_id)])
        wish = analyst_pb2.RequestGrantRequest(dataset="shop", reason="to look on", request_id=f"wish, {stage}")
        self._call(viewer, first, stage, "RequestGrant", [wish])
        self._call(viewer, first, stage, "ListOwnGrantRequests", [analyst_pb2.ListOwnGrantRequestsRequest()])

    def _call(self, viewer: str, each: Watched, about: str, method: str, requests: Sequence[Message]) -> None:
        self.keep(ask(self.channels[viewer], method, requests, f"{viewer}, {each.name}: {about}"), each)


class Watcher:
    """Bob's stream of one round's states, read by a thread of its own until it ends."""

    def __init__(self, viewers: Viewers, each: Watched) -> None:
        self._viewers, self._each = viewers, each
        self._come, self._got = threading.Semaphore(0), 0
        self._seen: View = []
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def wait(self, messages: int) -> None:
        """Until so many messages have come in all."""
        while self._got < messages:
            assert self._come.acquire(timeout=PATIENCE), f"bob was told of no change of {self._each.name}"
            self._got += 1

    def end(self) -> None:
        """Keeps all that was told, once the stream has ended."""
        self._thread.join(PATIENCE)
        assert self._seen, f"bob's watch of {self._each.name} did not end"
        self._viewers.keep(self._seen[0], self._each)

    def _read(self) -> None:
        request = analyst_pb2.WatchAnalystRoundRequest(round_id=self._each.round_id)
        about, channel = f"bob, {self._each.name}", self._viewers.channels["bob"]
        self._seen.append(ask(channel, "WatchAnalystRound", [request], about, self._come.release))


def first_submission(viewer: str, each: Watched) -> list[Message]:
    """What a viewer sends first, and may send again at any time."""
    return upload(each.round_id, "mine", workload_to_bytes(OWN[viewer]))
