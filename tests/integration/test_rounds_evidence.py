"""Evidence from the store: when there is some, under which keys, and from which checkpoint on."""

from __future__ import annotations

from dataclasses import replace

import pytest
from harness.rounds_bench import ANN, BOB, DEPLOYMENT, SALT, TERMS, Bench

from equipoise.errors import NotFound, OutOfRange, WrongState
from equipoise.records.bundle import Bundle
from equipoise.records.evidence import Evidence, log_origin
from equipoise.records.signed_notes import VerifierKey
from equipoise.verification.checks import Check, CheckFailed, VerifierInputs, verify
from equipoise.verification.log_history import EarlierCheckpoint
from equipoise.wire.workloads import workload_to_bytes
from equipoise_server.rounds.store.results import read_synopsis
from equipoise_server.transparency import keys
from equipoise_server.transparency.keys import Purpose
from equipoise_server.transparency.signing import Signer

QUICK = replace(TERMS, mechanism="gaussian", options={})


def evidence(bench: Bench, analyst: str, round_id: str, since_size: int = 0) -> Evidence:
    bench.rounds.schedule.keep()
    told = bench.rounds.analyst_views.evidence(analyst, round_id, since_size)
    assert told is not None
    return Evidence.from_bytes(told)


def bundle(bench: Bench, analyst: str, round_id: str) -> bytes:
    told = evidence(bench, analyst, round_id)
    stream = tuple(bench.rounds.analyst_views.results(analyst, round_id, 0, 1000))
    with bench.store.read() as connection:
        synopsis = read_synopsis(connection, round_id) or None
    return Bundle(
        told, bench.rounds.analyst_views.submitted(analyst, round_id, 0, 1 << 20), stream, synopsis
    ).to_bytes()


def found(data: bytes, papers: VerifierInputs) -> Check | None:
    try:
        verify(data, papers, lambda check, said: None)
    except CheckFailed as failed:
        return failed.check
    return None


def log_keys(bench: Bench) -> tuple[Signer, list[VerifierKey]]:
    signer = Signer(bench.directory, log_origin(DEPLOYMENT))
    with bench.store.read() as connection:
        return signer, signer.verifier_keys(connection)


def test_evidence_comes_with_the_results_and_once_it_is_in_the_log(bench: Bench) -> None:
    round_id = bench.sealed(QUICK)
    for analyst in ("cyd", "nobody"):  # who have no share
        with pytest.raises(NotFound):
            bench.rounds.analyst_views.evidence(analyst, round_id, 0)
    with pytest.raises(WrongState):
        bench.rounds.analyst_views.evidence("ann", round_id, 0)
    bench.rounds.lifecycle.run(round_id, "run")
    assert bench.wait(round_id).complete
    bench.rounds.lifecycle.release(round_id, "release")
    bench.rounds.schedule.keep()
    with pytest.raises(WrongState):  # before the release time
        bench.rounds.analyst_views.evidence("ann", round_id, 0)
    bench.clock.move(60)
    assert bench.rounds.analyst_views.evidence("ann", round_id, 0) is None
    _, trusted = log_keys(bench)
    for analyst, statements in (("ann", ANN), ("bob", BOB)):
        assert found(bundle(bench, analyst, round_id), VerifierInputs(trusted, statements=statements)) is None
    for size in (1 << 40, 1 << 63):
        with pytest.raises(OutOfRange):
            bench.rounds.analyst_views.evidence("ann", round_id, size)
    workload = workload_to_bytes(ANN)
    assert bench.rounds.analyst_views.submitted("ann", round_id, 3, 4) == workload[3:7]
    assert bench.rounds.analyst_views.submitted("ann", round_id, len(workload), 4) == b""
    assert bench.rounds.analyst_views.submitted("cyd", round_id, 0, 4) == b""


def test_after_a_change_of_keys_old_and_new_signatures_can_be_checked(bench: Bench) -> None:
    """The receipt is signed by the old key, the checkpoint by the new one; both keys are told, no other."""
    first = bench.sealed(QUICK)
    signer, (old,) = log_keys(bench)
    bench.rounds.lifecycle.abort(first, "the power failed", "abort")
    before = evidence(bench, "ann", first)
    held = EarlierCheckpoint(before.checkpoint)
    size = int(before.checkpoint.split(b"\n")[1])
    assert before.keys == (old.to_text(),)
    second = bench.sealed(QUICK)
    for _ in range(2):
        with bench.store.write() as connection:
            added = signer.make_key(bench.clock())
            keys.add(connection, added)
    with bench.store.write() as connection:
        for key in keys.in_force(connection, Purpose.LOG):
            if key.id != added.id:
                keys.retire(connection, Purpose.LOG, key.id, bench.clock())
    bench.rounds.lifecycle.abort(second, "the power failed again", "abort again")
    new = signer.verifier(added)
    told = evidence(bench, "ann", second, size)
    data = Bundle(told, bench.rounds.analyst_views.submitted("ann", second, 0, 1 << 20), (), None).to_bytes()
    assert set(told.keys) == {old.to_text(), new.to_text()}
    assert found(data, VerifierInputs([old, new], checkpoint=held)) is None
    assert found(data, VerifierInputs([old])) is Check.CHECKPOINT
    assert found(data, VerifierInputs([new])) is Check.RECEIPT
    assert evidence(bench, "bob", second, size).earlier == told.earlier


def test_a_round_without_a_workload_has_evidence_of_the_same_shape(bench: Bench) -> None:
    round_id = bench.opened(QUICK)
    bench.rounds.submissions.submit("bob", round_id, "bob", workload_to_bytes(BOB), SALT)
    bench.rounds.lifecycle.seal(round_id, "seal")
    bench.rounds.lifecycle.abort(round_id, "the power failed", "abort")
    ann, bob = (evidence(bench, name, round_id) for name in ("ann", "bob"))
    _, trusted = log_keys(bench)
    assert found(Bundle(ann, None, (), None).to_bytes(), VerifierInputs(trusted)) is None
    shapes = [[[len(item.path) for item in each.items] for each in told.records] for told in (ann, bob)]
    assert shapes[0] == shapes[1]
