"""Sums in rounds of a real server: answered, verified and replayed, or refused by the round's mechanism."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from harness.client_command import answered
from harness.dangers import LARGE_CAPS, SMALL_TABLE
from harness.server_process import EACH_ITS_SEED, HURRIED, make_state, running

from equipoise.clients.analyst import Client
from equipoise.clients.operator import Operator
from equipoise.derived import answers_to, mean
from equipoise.errors import InvalidArgument
from equipoise.model.accounts import Budget
from equipoise.model.rounds import Share, Terms
from equipoise.profile.profile import Profile
from equipoise.queries.schema import Attribute, Schema
from equipoise.queries.schema_checks import bin_labels
from equipoise.queries.statements import Marginal, Statement, Sum
from equipoise_server.cli import main as run_server_command

EDGES = (0.0, 10.0, 20.0, 60.0)
SCHEMA = Schema((Attribute("origin", ("EWR", "JFK")), Attribute("delay", bin_labels(EDGES), EDGES)))
TOTALS = Sum("delay", ("origin",), high=20)
ASKED: tuple[Statement, ...] = (TOTALS, Marginal(("origin",)))
BUDGET, CAP, RECORDS = Budget(2.0, 1e-7), Budget(20.0, 1e-4), 2_000
BETA = 1e-7  # The chance that a sound round has an interval that its truth lies outside of.


def test_sums_are_answered_verified_and_replayed_or_refused_by_name(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    state = make_state(tmp_path / "state", HURRIED)
    random = np.random.default_rng(3)
    origins, delays = random.integers(0, 2, RECORDS), random.uniform(0, 60, RECORDS)
    lines = [f"{SCHEMA.attributes[0].categories[o]},{d:.3f}" for o, d in zip(origins, delays, strict=True)]
    (state / "data" / "table.csv").write_text("origin,delay\n" + "\n".join(lines) + "\n")
    with running(state, script=EACH_ITS_SEED) as server:
        for name in ("operator", "auditor"):
            path = state / "profiles" / name / "profile.toml"
            path.write_text(path.read_text().replace(Profile.load(path.parent).target, f"127.0.0.1:{server.port}"))
        with Operator.from_profile(state / "profiles" / "operator") as operator:
            operator.register_dataset("flights", "table.csv", SCHEMA, CAP, CAP, accepted=LARGE_CAPS)
            operator.add_analyst("ann", tmp_path / "ann")
            share = (Share("ann", 2, 4, 4),)
            with Client.from_profile(tmp_path / "ann") as client:
                refusing = operator.open(
                    Terms("flights", share, BUDGET, BUDGET, mechanism="histogram", beta=BETA, accepted=SMALL_TABLE)
                ).round.id
                with pytest.raises(InvalidArgument, match=r"statements\[0\].*is a sum, which histogram does not"):
                    client.submit(refusing, ASKED)
                # Without the option it would be histogram.
                terms = Terms("flights", share, BUDGET, BUDGET, beta=BETA, accepted=SMALL_TABLE)
                opened = operator.open(replace(terms, options={"sums": True}))
                round_id = opened.round.id
                client.submit(round_id, ASKED)
                operator.seal(round_id)
                operator.run_to_completion(round_id)
                operator.release(round_id)
                client.wait(round_id)
                results = client.results(round_id, ASKED)
                weighed, counted = (answers_to(results, place, RECORDS) for place in range(2))
                found = mean(weighed, counted, TOTALS.values(SCHEMA))
                truths = [np.minimum(delays, 20)[origins == place].mean() for place in range(2)]
                assert ((found.lows <= truths) & (truths <= found.highs)).all()
                assert (found.highs - found.lows < 20).all()
                (tmp_path / "bundle").write_bytes(client.bundle(round_id).to_bytes())
        assert answered(capsys, tmp_path / "ann", "verify", tmp_path / "bundle")["verified"]
    with pytest.raises(SystemExit) as stopped:
        run_server_command(["audit", "replay", round_id, "--state", str(state), "--json"])
    out = capsys.readouterr().out
    assert not stopped.value.code, out
    assert json.loads(out)["difference"] is None
