"""What analysts see of a server, as it comes off the wire: every message's bytes, every status, all metadata.

Nothing is parsed here but to take out what may differ between neighbouring rounds: random identifiers always, and
under a mechanism whose analyst privacy is not perfect also values, ways of answering, intervals and the synopsis.
What is signed is compared without its signatures, and evidence without its hashes, its salts and the places of its
leaves in the log: of rounds that are sealed at one time, whichever is sealed first comes first. The lengths of all
messages stay, but for what such a place takes.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import grpc
from google.protobuf.message import Message

from equipoise.records.canonical import canonical_json
from equipoise.v1 import analyst_pb2, types_pb2

SERVICE = "/equipoise.v1.AnalystService/"
PATIENCE = 1800  # seconds until a call that has not ended is given up: some watch a whole world

Metadata = tuple[tuple[str, bytes], ...]


@dataclass(frozen=True)
class Seen:
    """All that one call showed to who made it; `about` says in the test's words who asked for what."""

    method: str
    about: str
    status: str
    details: str
    initial: Metadata
    trailing: Metadata
    messages: tuple[bytes, ...]
    lengths: tuple[int, ...]


View = list[Seen]


def raw_call(channel: grpc.Channel, method: str, requests: Iterable[Message]) -> Any:
    """A call of any kind under way: on the wire a single message is a stream of one."""
    call: Any = channel.stream_stream(SERVICE + method)
    return call(iter([request.SerializeToString() for request in requests]), timeout=PATIENCE)


def ask(
    channel: grpc.Channel,
    method: str,
    requests: Iterable[Message],
    about: str = "",
    tell: Callable[[], object] = lambda: None,
) -> Seen:
    """Makes a call and reads it to its end; `tell` is called after every message."""
    call = raw_call(channel, method, requests)
    messages: list[bytes] = []
    try:
        for message in call:
            messages.append(message)
            tell()
    except grpc.RpcError:
        pass  # the status says it
    return Seen(
        method,
        about,
        call.code().name,
        call.details() or "",
        _metadata(call.initial_metadata()),
        _metadata(call.trailing_metadata()),
        tuple(messages),
        tuple(len(message) for message in messages),
    )


def without(seen: Seen, names: Mapping[bytes, bytes]) -> Seen:
    """The same with random identifiers replaced by names of the same length."""

    def named(data: bytes) -> bytes:
        for identifier, name in names.items():
            assert len(identifier) == len(name)
            data = data.replace(identifier, name)
        return data

    return replace(
        seen,
        details=named(seen.details.encode()).decode(),
        initial=tuple((key, named(value)) for key, value in seen.initial),
        trailing=tuple((key, named(value)) for key, value in seen.trailing),
        messages=tuple(map(named, seen.messages)),
    )


def opened(seen: Seen) -> Seen:
    """The same with receipts and evidence as what they say: names of deployments and hashes are random."""
    if seen.method == "DownloadEvidence":
        placeless = tuple(map(_without_places, seen.messages))
        lengths = tuple(len(message) for message in placeless)
        return replace(seen, messages=tuple(map(_open_evidence, placeless)), lengths=lengths)
    if seen.method == "GetAuthority":
        return replace(seen, messages=tuple(map(_open_authority, seen.messages)), lengths=())
    reading = {
        "SubmitWorkload": _open_receipt,
        "WithdrawWorkload": _open_withdrawal,
        "AskQueries": _open_session_receipt,
    }.get(seen.method)
    return seen if reading is None else replace(seen, messages=tuple(map(reading, seen.messages)))


def _without_places(message: bytes) -> bytes:
    response = analyst_pb2.DownloadEvidenceResponse.FromString(message)
    if response.WhichOneof("part") == "evidence":
        fields = json.loads(response.evidence)
        for record in fields["records"]:
            del record["index"], record["path"]
        response.evidence = canonical_json(fields)
    return response.SerializeToString(deterministic=True)


def _open_evidence(message: bytes) -> bytes:
    """With every hash, salt and signature as its length."""
    response = analyst_pb2.DownloadEvidenceResponse.FromString(message)
    if response.WhichOneof("part") == "evidence":
        fields = json.loads(response.evidence)
        fields["deployment"] = len(fields["deployment"])
        origin, size, root, *signatures = fields["checkpoint"].split("\n")
        fields["checkpoint"] = [len(origin), size, len(root), *map(len, signatures)]
        fields["keys"] = [len(key) for key in fields["keys"]]
        fields["salt"] = fields["salt"] and len(fields["salt"])
        fields["receipt"] = fields["receipt"] and _said(fields["receipt"].encode()).decode()
        for record in fields["records"]:
            leaf = json.loads(record["leaf"])
            record["leaf"] = leaf | {"root": len(leaf["root"])}
            for item in record["items"]:
                content = json.loads(item["content"])
                random = {name for name in content if name.endswith("_root")} | {"seed_commitment"}
                item["content"] = {name: len(value) if name in random else value for name, value in content.items()}
                for committed in ("stream", "synopsis"):
                    # Over what has the round's identifier in it, or may differ.
                    if content.get(committed):
                        content[committed]["digest"] = len(content[committed]["digest"])
                item["salt"], item["path"] = len(item["salt"]), [len(each) for each in item["path"]]
        response.evidence = canonical_json(fields)
    return response.SerializeToString(deterministic=True)


def _open_authority(message: bytes) -> bytes:
    """With every certificate as nothing: keys, serial numbers and signatures are random, and vary in length."""
    response = analyst_pb2.GetAuthorityResponse.FromString(message)
    return b"%d certificates, link: %d" % (len(response.certificates), len(response.link))


def _open_receipt(message: bytes) -> bytes:
    response = analyst_pb2.SubmitWorkloadResponse.FromString(message)
    response.receipt.envelope = _said(response.receipt.envelope)
    return response.SerializeToString(deterministic=True)


def _open_withdrawal(message: bytes) -> bytes:
    response = analyst_pb2.WithdrawWorkloadResponse.FromString(message)
    response.envelope = _said(response.envelope)
    return response.SerializeToString(deterministic=True)


def _open_session_receipt(message: bytes) -> bytes:
    response = analyst_pb2.AskQueriesResponse.FromString(message)
    if response.WhichOneof("part") == "answered":
        response.answered.envelope = _said(response.answered.envelope)
    return response.SerializeToString(deterministic=True)


def _said(envelope: bytes) -> bytes:
    fields = json.loads(envelope)
    payload = json.loads(base64.b64decode(fields["payload"]))
    assert payload.pop("deployment")
    for name in ("opened_root", "seed_commitment"):
        payload["promise"][name] = len(payload["promise"][name])
    if "chain" in payload:
        payload["chain"] = len(payload["chain"])  # over the deployment's name and what may differ
    lengths = [{name: len(value) for name, value in each.items()} for each in fields["signatures"]]
    return canonical_json({**fields, "payload": payload, "signatures": lengths})


def blanked(seen: Seen) -> Seen:
    """The same without values, ways of answering and intervals, or without the synopsis's records."""
    blank = {
        "StreamResults": _blank_results,
        "DownloadSynopsis": _blank_synopsis,
        "AskQueries": _blank_answers,
    }.get(seen.method)
    return seen if blank is None else replace(seen, messages=tuple(map(blank, seen.messages)))


def _blank_results(message: bytes) -> bytes:
    return _blank(analyst_pb2.StreamResultsResponse.FromString(message).chunk)


def _blank_answers(message: bytes) -> bytes:
    response = analyst_pb2.AskQueriesResponse.FromString(message)
    if response.WhichOneof("part") == "answered":
        response.answered.chunk = _blank(response.answered.chunk)
    return response.SerializeToString(deterministic=True)


def _blank(data: bytes) -> bytes:
    chunk = types_pb2.ResultChunk.FromString(data)
    chunk.values[:] = [0] * len(chunk.values)
    chunk.methods = bytes(len(chunk.methods))
    for column in (chunk.lows, chunk.highs, chunk.standard_errors):
        column[:] = [0] * len(column)
    return chunk.SerializeToString(deterministic=True)


def _blank_synopsis(message: bytes) -> bytes:
    response = analyst_pb2.DownloadSynopsisResponse.FromString(message)
    response.cells[:] = [0] * len(response.cells)
    return response.SerializeToString(deterministic=True)


def _metadata(pairs: Any) -> Metadata:
    return tuple((key, value.encode() if isinstance(value, str) else value) for key, value in pairs or ())


def difference(view: View, other: View) -> tuple[Seen, Seen] | None:
    """The first call that showed the viewers something else."""
    return next(((one, two) for one, two in zip(view, other, strict=True) if one != two), None)
