"""What the protos tell the author of a client in another language is what this program does."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from equipoise.clients.refusals import REASON_KEY, RETRY_KEY
from equipoise.errors import BY_REASON
from equipoise.wire.statements import MAX_STATEMENT_BYTES
from equipoise_server.call_limits import CallLimits
from equipoise_server.identity.names import check_name
from equipoise_server.mechanisms.registry import MECHANISMS, PLANNERS, SESSION_MECHANISMS, STANDING_MECHANISMS
from equipoise_server.sessions.open_session import MAX_STATEMENT
from equipoise_server.storage.idempotency import MAX_ID

ROOT = Path(__file__).parents[2]
PROTOS = ROOT / "protos" / "equipoise" / "v1"
HEAD = " ".join(
    line.removeprefix("//").strip()
    for line in (PROTOS / "types.proto").read_text("utf-8").split("syntax =")[0].splitlines()
)


def test_all_reasons_are_named_and_no_others() -> None:
    listed = HEAD.split("one of ")[1].split(": docs/errors.md")[0]
    assert set(re.findall(r"[A-Z_]{4,}", listed)) == set(BY_REASON)


@pytest.mark.parametrize(
    "said", [REASON_KEY, RETRY_KEY, f"any 1 to {MAX_ID} characters", "P-256", "Ed25519", "X25519"]
)
def test_what_a_client_needs_is_said(said: str) -> None:
    assert said in HEAD


def test_all_mechanisms_are_named_and_no_others() -> None:
    of_rounds, others = HEAD.split("Mechanisms of rounds: ")[1].split("Their options")[0].split("of sessions: ")
    of_sessions, standing = others.split("measurements that stand: ")
    assert set(re.findall(r'"(\w+)"', of_rounds)) == {*PLANNERS, *MECHANISMS}
    assert set(re.findall(r'"(\w+)"', of_sessions)) == set(SESSION_MECHANISMS)
    assert set(re.findall(r'"(\w+)"', standing)) == set(STANDING_MECHANISMS)


def test_limits_are_the_defaults() -> None:
    limits = CallLimits()
    whole, part = limits.workload_limit_bytes >> 20, MAX_STATEMENT_BYTES >> 20
    for said in (
        f"One message has at most {limits.message_limit_bytes >> 20} MiB, a workload {whole} MiB",
        f"a statement of a workload {part} MiB and of a session {MAX_STATEMENT >> 10} KiB",
        f"may have {limits.calls_per_caller} calls open, of which {limits.uploads_per_caller} are uploads",
    ):
        assert said in HEAD


def test_names_are_as_said() -> None:
    assert "1 to 63 letters, digits, `.`, `_` and `-` of ASCII, a letter or digit at both ends" in HEAD
    for name in ("a", "A.b_c-9", "a" * 63):
        assert check_name(name) == name


def test_the_pages_that_are_named_are_there() -> None:
    pages = re.findall(r"docs/[\w/-]+\.md", HEAD)
    assert {"docs/errors.md", "docs/formats.md", "docs/limits.md"} <= set(pages)
    assert all((ROOT / page).is_file() for page in pages)


@pytest.mark.parametrize("service", ["analyst", "operator", "auditor"])
def test_every_service_says_where_that_is(service: str) -> None:
    assert "at the head of types.proto" in (PROTOS / f"{service}.proto").read_text("utf-8")
