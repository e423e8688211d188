"""SQL with means and sums in a session of `online`: asked by the command, verified and replayed like any other."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from harness.client_command import answered, refusal
from harness.dangers import LARGE_CAPS, SMALL_TABLE
from harness.server_process import EACH_ITS_SEED, HURRIED, make_state, running

from equipoise.clients.analyst import Client
from equipoise.clients.operator import Operator
from equipoise.model.accounts import Budget
from equipoise.model.rounds import SessionTerms, Share, Terms
from equipoise.profile.profile import Profile
from equipoise.queries.schema import Attribute, Schema
from equipoise.queries.schema_checks import bin_labels
from equipoise_server.cli import main as run_server_command

EDGES = (0.0, 10.0, 20.0, 60.0)
ORIGINS = ("EWR", "JFK")
SCHEMA = Schema((Attribute("origin", ORIGINS), Attribute("delay", bin_labels(EDGES), EDGES)))
RECORDS = 20_000
BETA = 1e-7  # The chance that a sound session has an interval that its truth lies outside of.
TERMS = Terms(
    "flights",
    (Share("ann", 12, 48), Share("bob", 12, 48)),
    Budget(2.0, 1e-9),
    None,
    mechanism="online",
    beta=BETA,
    accepted=SMALL_TABLE,
    session=SessionTerms(length=24),
)
MEANS = "SELECT origin, AVG(LEAST(delay, 20)) AS late FROM flights WHERE delay IS NOT NULL GROUP BY origin"
TOTAL = "SELECT SUM(LEAST(delay, 20)) AS minutes FROM flights WHERE delay >= 10"


@pytest.mark.nightly
def test_a_mean_is_asked_by_sql_in_a_session_and_verified_and_replayed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    state = make_state(tmp_path / "state", HURRIED)
    random = np.random.default_rng(3)
    origins, delays = random.integers(0, 2, RECORDS), random.uniform(0, 60, RECORDS)
    lines = [f"{ORIGINS[origin]},{delay:.3f}" for origin, delay in zip(origins, delays, strict=True)]
    (state / "data" / "table.csv").write_text("origin,delay\n" + "\n".join(lines) + "\n")
    ann, clamped = tmp_path / "ann", np.minimum(delays, 20)
    with running(state, script=EACH_ITS_SEED) as server:
        for name in ("operator", "auditor"):
            path = state / "profiles" / name / "profile.toml"
            path.write_text(path.read_text().replace(Profile.load(path.parent).target, f"127.0.0.1:{server.port}"))
        with Operator.from_profile(state / "profiles" / "operator") as operator:
            cap = Budget(20.0, 1e-5)
            operator.register_dataset("flights", "table.csv", SCHEMA, cap, cap, accepted=LARGE_CAPS)
            for name in ("ann", "bob"):
                operator.add_analyst(name, tmp_path / name)
            session_id = operator.open_session(TERMS).round.id
            assert "does not protect analysts from one another" in refusal(capsys, ann, "sql", session_id, MEANS)
            asked = ("sql", session_id, "--accept-unprotected")
            (means,) = answered(capsys, ann, *asked, MEANS)["answers"]
            assert [row["origin"] for row in means] == list(ORIGINS)
            for place, row in enumerate(means):
                truth = clamped[origins == place].mean()
                assert row["late_low"] <= truth <= row["late_high"]
                assert row["late_high"] - row["late_low"] < 15
            ((total,),) = answered(capsys, ann, *asked, TOTAL)["answers"]
            assert total["minutes_low"] <= clamped[delays >= 10].sum() <= total["minutes_high"]
            with Client.from_profile(ann) as client:
                questions = client.sql(session_id, MEANS)
                (frame,) = client.frames(session_id, questions, accept_unprotected=True)
                assert frame.names == tuple(means[0])
            operator.close_session(session_id)
            operator.run_to_completion(session_id)
            operator.release(session_id)
            with Client.from_profile(ann) as client:
                client.wait(session_id)
                (tmp_path / "bundle").write_bytes(client.bundle(session_id).to_bytes())
        assert answered(capsys, ann, "verify", tmp_path / "bundle")["verified"]
    with pytest.raises(SystemExit) as stopped:
        run_server_command(["audit", "replay", session_id, "--state", str(state), "--json"])
    out = capsys.readouterr().out
    assert not stopped.value.code, out
    assert json.loads(out)["difference"] is None
