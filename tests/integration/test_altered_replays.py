"""Replays of released rounds: whatever is changed is found and named."""

from __future__ import annotations

from dataclasses import replace
from hashlib import sha256
from pathlib import Path

import numpy as np
import pytest
from harness.released_rounds import QUERY, ROUNDS, Change, Released, by_units, fails, release, sql
from numpy.typing import NDArray

from equipoise.model.results import AnswerMethod
from equipoise.records.sealed_seeds import seal_to
from equipoise_server.mechanisms.equilibrium.mechanism import Equilibrium
from equipoise_server.mechanisms.interface import PublicParameters
from equipoise_server.mechanisms.prior.choice import Start
from equipoise_server.randomness.discrete_gaussian import DiscreteGaussian
from equipoise_server.randomness.stream import KeyedStream


@pytest.fixture(scope="module")
def released(tmp_path_factory: pytest.TempPathFactory) -> Released:
    return release(tmp_path_factory.mktemp("released"), ROUNDS)


@pytest.mark.full
def test_a_fingerprint_of_another_seed_is_found(released: Released, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else a custodian could use one seed twice, and say that they are two."""
    monkeypatch.setattr("equipoise_server.replay.replay.fingerprint", lambda seed: sha256(seed).digest())
    assert fails(released.replay("equilibrium"), "seed", "the seed's fingerprint")


RUN = "(SELECT run_id FROM rounds WHERE id = :round)"


SEALED = "(SELECT position FROM records WHERE round_id = :round AND kind = 'round-sealed')"


# What is changed in the store of an exact round, the check that finds it, and how it is named.
CHANGES: dict[str, tuple[Change, str, str]] = {
    "an answer by one unit": (by_units(1), "answers", f"analyst ann, message 1, query {QUERY}, value"),
    "a message that is none": (
        sql(f"UPDATE result_chunks SET chunk = x'ff' WHERE analyst = 'bob' AND run_id = {RUN}"),
        "answers",
        "analyst bob, message 1, a result message cannot be read",
    ),
    "a message dropped": (
        sql(f"DELETE FROM result_chunks WHERE analyst = 'bob' AND run_id = {RUN}"),
        "answers",
        "analyst bob, message 1, the message is missing",
    ),
    "a message added": (
        sql(f"INSERT INTO result_chunks SELECT run_id, analyst, 2, chunk FROM result_chunks WHERE run_id = {RUN}"),
        "streams",
        "analyst ann, messages: 2 is there, but it must be 1",
    ),
    "the synopsis": (
        sql(f"UPDATE synopses SET cells = CAST(x'0103' || substr(cells, 3) AS BLOB) WHERE run_id = {RUN}"),
        "synopsis",
        "the bytes of the synopsis's record 0: 0103 is there",
    ),
    "the synopsis dropped": (
        sql(f"DELETE FROM synopses WHERE run_id = {RUN}"),
        "synopsis",
        "the round's synopsis is not in the store",
    ),
    "a workload": (
        sql(
            "UPDATE submissions SET workload = (SELECT workload FROM submissions WHERE round_id = :round "
            "AND analyst = 'bob') WHERE round_id = :round AND analyst = 'ann'"
        ),
        "workloads",
        "analyst ann, the workload's commitment",
    ),
    "a workload withdrawn": (
        sql("DELETE FROM submissions WHERE round_id = :round AND analyst = 'bob'"),
        "workloads",
        "analyst bob, the workload's commitment: nothing is there",
    ),
    "a salt": (
        sql("UPDATE submissions SET salt = zeroblob(32) WHERE round_id = :round AND analyst = 'bob'"),
        "workloads",
        "analyst bob, the workload's commitment",
    ),
    "the plan": (
        sql(
            """UPDATE rounds SET plan = replace(plan, '"max_uncertified":', '"max_uncertified":1') """
            "WHERE id = :round"
        ),
        "plan",
        "plan.max_uncertified",
    ),
    "the terms": (
        sql("""UPDATE rounds SET terms = replace(terms, '"beta":0.05', '"beta":0.06') WHERE id = :round"""),
        "plan",
        "terms.beta: 0.06 is there, but it must be 0.05",
    ),
    "the schema": (
        sql("UPDATE dataset_versions SET schema = replace(schema, 'green', 'blue')"),
        "plan",
        "schema",
    ),
    "a nonce put in": (
        sql("UPDATE rounds SET audit_nonce = zeroblob(32) WHERE id = :round"),
        "seed",
        "the auditor's nonce: 0000",
    ),
    "the commitment": (
        sql("UPDATE rounds SET seed_commitment = zeroblob(32) WHERE id = :round"),
        "seed",
        "the seed's commitment: 0000",
    ),
    "an item": (
        sql(f"UPDATE record_items SET content = x'7b7d' WHERE place = 0 AND record = {SEALED}"),
        "records",
        "the round-sealed record: the item seal does not open to its hash",
    ),
    "a hash": (
        sql(
            "UPDATE record_items SET hash = zeroblob(32) WHERE content IS NULL "
            "AND record = (SELECT position FROM records WHERE round_id = :round AND kind = 'round-released')"
        ),
        "records",
        "the round-released record has an item twice",
    ),
    "a root": (
        sql("UPDATE records SET root = zeroblob(32) WHERE round_id = :round AND kind = 'round-opened'"),
        "records",
        "the root of the round-opened record",
    ),
}  # fmt: skip


@pytest.mark.thin(2)
@pytest.mark.parametrize("change", CHANGES)
def test_what_is_changed_in_the_store_is_found_and_named(released: Released, change: str, tmp_path: Path) -> None:
    changing, check, named = CHANGES[change]
    found = released.altered(tmp_path / "copy", "equilibrium", changing)
    assert fails(found, check, named), found


def test_another_seed_is_found(released: Released, tmp_path: Path) -> None:
    """Sealed to the same key, but not what was committed to; or bytes that do not open at all."""
    mine = released.key.public_key().public_bytes_raw()
    another = seal_to(mine, released.rounds["equilibrium"], bytes(32), bytes(32))
    for sealed, named in (
        (another, "the round's seed is not the one that was committed to"),
        (bytes(100), "the round's sealed seed does not open"),
    ):
        change = sql(f"UPDATE sealed_seeds SET sealed = x'{sealed.hex()}' WHERE round_id = :round")
        found = released.altered(tmp_path / str(len(sealed)), "equilibrium", change)
        assert fails(found, "seed", named), found


def test_other_data_are_found(released: Released, tmp_path: Path) -> None:
    copy = released.copy(tmp_path / "copy")
    table = copy.state / "data" / "shop.csv"
    lines = table.read_text().splitlines()
    lines[-1] = "red,xl" if lines[-1] != "red,xl" else "green,s"
    table.write_text("\n".join(lines) + "\n")
    assert fails(copy.replay("equilibrium"), "data", "the table's records are not those")


def test_a_plan_that_does_not_follow_from_the_terms_is_found(
    released: Released, monkeypatch: pytest.MonkeyPatch
) -> None:
    starts = Equilibrium.starts

    def dearer(planner: Equilibrium, setting: PublicParameters) -> list[Start]:
        best, *others = starts(planner, setting)
        cost = replace(best.plan.data_cost, rho=best.plan.data_cost.rho + 1)
        return [replace(best, plan=replace(best.plan, data_cost=cost)), *others]

    monkeypatch.setattr(Equilibrium, "starts", dearer)
    assert fails(released.replay("equilibrium"), "plan", "plan.data_cost.rho")


def test_one_changed_draw_of_noise_is_found(released: Released, monkeypatch: pytest.MonkeyPatch) -> None:
    draw = DiscreteGaussian.draw

    def one_more(noise: DiscreteGaussian, count: int, stream: KeyedStream) -> NDArray[np.int64]:
        drawn = draw(noise, count, stream)
        drawn[-1] += 1
        return drawn

    monkeypatch.setattr(DiscreteGaussian, "draw", one_more)
    found = released.replay("projection")
    assert fails(found, "answers", "analyst ann, message 1, query ")
    assert found.difference is not None
    assert found.difference.what.startswith(("value", "bound"))


def test_fitted_answers_are_compared_loosely_and_their_digests_exactly(released: Released, tmp_path: Path) -> None:
    found = released.altered(tmp_path / "little", "projection", by_units(1))
    assert fails(found, "streams", "analyst ann, stream.digest")
    assert found.ways[AnswerMethod.PROJECTION][1:] == (1, 2**20)
    found = released.altered(tmp_path / "much", "projection", by_units(2**20 + 1))
    assert fails(found, "answers", f"analyst ann, message 1, query {QUERY}, value")
    assert "to within 1048576" in str(found.difference)
