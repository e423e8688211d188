"""A round's seed after its opening: bound to an auditor's nonce, sealed, read on record, destroyed on record."""

from __future__ import annotations

from dataclasses import replace

import pytest
from harness.record_items import fields_of
from harness.rounds_bench import ANN, AUDITOR_KEY, SALT, SEED, TERMS, Bench, compute
from sqlalchemy import select

from equipoise.errors import AlreadyExists, InvalidArgument, NotFound, VerificationFailed, WrongState
from equipoise.model.times import to_microseconds
from equipoise.records.record import Kind
from equipoise.records.sealed_seeds import open_sealed
from equipoise.wire.workloads import workload_to_bytes
from equipoise_server.rounds.round_job import read_job
from equipoise_server.storage.tables.round import rounds
from equipoise_server.storage.tables.transparency import record_items, records, sealed_seeds
from equipoise_server.transparency import keys, log
from equipoise_server.transparency.keys import Purpose

NONCE = b"an auditor's own randomness, once"[:32]
WINDOW_DAYS = 7
DAY = 86_400.0


def released(bench: Bench) -> str:
    """A round whose streams are open, without the time that a worker takes."""
    round_id = bench.sealed()
    compute(bench, round_id)
    bench.rounds.lifecycle.release(round_id, f"release {round_id}")
    bench.clock.move(60)
    return round_id


def items(bench: Bench, kind: Kind, name: str) -> list[dict[str, object]]:
    """The only item of each record of this kind."""
    with bench.store.read() as connection:
        query = select(record_items.c.content).join(records, records.c.position == record_items.c.record)
        query = query.where(records.c.kind == kind.value, record_items.c.content.is_not(None))
        return [
            fields_of(content, name) for content in connection.execute(query.order_by(records.c.position)).scalars()
        ]


def own_copy(bench: Bench, round_id: str) -> bytes:
    """What the server itself could open."""
    with bench.store.read() as connection:
        return bytes(connection.execute(select(rounds.c.sealed_seed).where(rounds.c.id == round_id)).scalar_one())


def test_the_seed_of_a_round_that_has_ended_is_the_auditors_alone(bench: Bench) -> None:
    going = bench.opened()
    assert own_copy(bench, going)
    round_id = released(bench)
    assert own_copy(bench, round_id) == b""
    commitment = bench.rounds.views.get(round_id).seed_commitment
    (sealed,) = bench.rounds.seeds.read(round_id, "auditor").values()
    assert open_sealed(AUDITOR_KEY, round_id, sealed, commitment) == SEED
    with pytest.raises(VerificationFailed, match="does not open"):
        open_sealed(AUDITOR_KEY, going, sealed, commitment)
    with pytest.raises(VerificationFailed, match="committed"):
        open_sealed(AUDITOR_KEY, round_id, sealed, bytes(32))
    bench.rounds.lifecycle.abort(going, "enough", "abort")
    assert own_copy(bench, going) == b""


def test_reading_a_seed_is_in_the_log_before_it_is_answered(bench: Bench) -> None:
    with pytest.raises(NotFound):
        bench.rounds.seeds.read("0" * 32, "auditor")
    round_id = bench.sealed()
    compute(bench, round_id)
    bench.rounds.lifecycle.release(round_id, "release")
    with pytest.raises(WrongState, match="not ended"):
        bench.rounds.seeds.read(round_id, "auditor")
    assert items(bench, Kind.SEED_READ, "access") == []
    bench.clock.move(60)
    bench.rounds.seeds.read(round_id, "auditor")
    bench.rounds.seeds.read(round_id, "another")
    told = [(each["round"], each["auditor"]) for each in items(bench, Kind.SEED_READ, "access")]
    assert told == [(round_id, "auditor"), (round_id, "another")]
    with bench.store.read() as connection:
        head = log.signed_head(connection)
        reads = connection.execute(select(records.c.log_index).where(records.c.kind == Kind.SEED_READ.value))
        assert head is not None
        assert max(reads.scalars()) == head.size - 1


def test_seeds_are_sealed_to_the_keys_in_force_at_the_opening(bench: Bench) -> None:
    before = bench.opened()
    with bench.store.write() as connection:
        (key,) = keys.in_force(connection, Purpose.AUDITOR)
        keys.retire(connection, Purpose.AUDITOR, key.id, bench.clock())
    after = bench.opened()
    for round_id in (before, after):
        bench.rounds.lifecycle.abort(round_id, "enough", f"abort {round_id}")
    assert list(bench.rounds.seeds.read(before, "auditor")) == [key.id]
    with pytest.raises(WrongState, match="no auditor's key"):
        bench.rounds.seeds.read(after, "auditor")


def test_sealed_seeds_are_destroyed_on_record_when_the_time_for_audits_is_over(bench: Bench) -> None:
    bench.audit_window_days = WINDOW_DAYS
    bench.restart()
    round_id, going = released(bench), bench.opened()
    aborted = bench.opened(replace(TERMS, close_time=None))
    bench.clock.move(WINDOW_DAYS * DAY / 2)
    bench.rounds.lifecycle.abort(aborted, "enough", "abort")
    bench.clock.move(WINDOW_DAYS * DAY / 2 - 2)  # a second after the streams opened was there already
    bench.rounds.schedule.keep()
    assert items(bench, Kind.SEED_DESTROYED, "destruction") == []
    bench.clock.move(1)
    bench.rounds.schedule.keep()
    bench.rounds.schedule.keep()
    (destruction,) = items(bench, Kind.SEED_DESTROYED, "destruction")
    assert (destruction["round"], destruction["time"]) == (round_id, to_microseconds(bench.clock()))
    with pytest.raises(WrongState, match="destroyed"):
        bench.rounds.seeds.read(round_id, "auditor")
    with bench.store.read() as connection:
        kept = set(connection.execute(select(sealed_seeds.c.round_id)).scalars())
    assert kept == {going, aborted}


def test_an_auditor_adds_randomness_once_until_the_round_is_sealed(bench: Bench) -> None:
    round_id = bench.opened()
    for wrong in (b"", NONCE[:-1], NONCE + b"!"):
        with pytest.raises(InvalidArgument, match=r"^nonce: "):
            bench.rounds.seeds.set_nonce(round_id, wrong, "1", "auditor")
    with pytest.raises(NotFound):
        bench.rounds.seeds.set_nonce("0" * 32, NONCE, "1", "auditor")
    bench.rounds.seeds.set_nonce(round_id, NONCE, "1", "auditor")
    bench.rounds.seeds.set_nonce(round_id, NONCE, "1", "auditor")
    bench.rounds.seeds.set_nonce(round_id, NONCE, "2", "another")
    for request_id, caller in (("1", "auditor"), ("3", "another")):
        with pytest.raises(AlreadyExists):
            bench.rounds.seeds.set_nonce(round_id, bytes(32), request_id, caller)
    bench.rounds.submissions.submit("ann", round_id, "1", workload_to_bytes(ANN), SALT)
    bench.rounds.lifecycle.seal(round_id, "seal")
    sealed = bench.sealed()
    with pytest.raises(WrongState, match="until it is sealed"):
        bench.rounds.seeds.set_nonce(sealed, NONCE, "4", "auditor")
    with bench.store.write() as connection:
        connection.execute(rounds.update().where(rounds.c.id.in_([round_id, sealed])).values(state="running"))
    with bench.store.read() as connection:
        jobs = [read_job(connection, bench.rounds.context, each) for each in (round_id, sealed)]
    assert [job and (job.seed, job.audit_nonce) for job in jobs] == [(SEED, NONCE), (SEED, None)]


def test_a_nonce_comes_too_late_from_the_closing_time_on(bench: Bench) -> None:
    """Also where the server has not come to sealing the round yet: who is late must not see what others do."""
    closes = replace(TERMS, close_time=bench.clock.now.replace(hour=13))
    round_id = bench.opened(closes)
    bench.clock.move(3600)
    with pytest.raises(WrongState, match="until it is sealed"):
        bench.rounds.seeds.set_nonce(round_id, NONCE, "1", "auditor")
