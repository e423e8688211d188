"""A client in another language, written from the protos' comments: it asks, resumes and checks a whole round."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from harness.identity_provider import NODE, need_node
from harness.rounds_bench import write_table
from harness.server_process import key_to_pem, make_state, running
from harness.server_rounds import registration, terms

from equipoise.v1 import operator_pb2, operator_pb2_grpc, types_pb2

pytestmark = pytest.mark.full

ROOT = Path(__file__).parents[2]
TIMES = 300  # marginals of 8 cells: three messages of results
SECONDS = 120


async def test_the_client_for_node_asks_resumes_and_finds_its_results_on_record(tmp_path: Path) -> None:
    node = need_node()
    state = make_state(tmp_path / "state")
    write_table(state / "data")
    shutil.copy(ROOT / "examples" / "node" / "client.mjs", tmp_path)
    (tmp_path / "node_modules").symlink_to(NODE / "node_modules")
    with running(state) as server, server.blocking_channel(server.operator()) as channel:
        key = ec.generate_private_key(ec.SECP256R1())
        shown = await server.admit("ann", key)
        profile = tmp_path / "ann"
        profile.mkdir(mode=0o700)
        (profile / "ca.pem").write_bytes(shown.authority)
        (profile / "certificate.pem").write_bytes(shown.certificate or b"")
        (profile / "key.pem").write_bytes(key_to_pem(key))
        (profile / "profile.toml").write_text(f'target = "127.0.0.1:{server.port}"\nname = "ann"\n')
        operator = operator_pb2_grpc.OperatorServiceStub(channel)
        operator.RegisterDataset(registration())
        wanted = terms()
        wanted.mechanism, wanted.options = "gaussian", ""
        del wanted.shares[:]
        wanted.shares.append(types_pb2.Share(analyst="ann", statements=TIMES, queries=8 * TIMES))
        round_id = operator.OpenRound(
            operator_pb2.OpenRoundRequest(terms=wanted, request_id="open")
        ).detail.round.id
        command = [node, "client.mjs", str(profile), round_id, str(TIMES)]
        environment = {**os.environ, "EQUIPOISE_PROTOS": str(ROOT / "protos")}
        with subprocess.Popen(
            command, cwd=tmp_path, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        ) as client:
            assert client.stdout is not None
            first, submitted = (json.loads(client.stdout.readline() or "{}") for _ in range(2))
            if "queries" not in submitted:
                client.kill()
                raise AssertionError(client.communicate())
            assert (first["name"], first["role"], submitted["queries"]) == ("ann", "ROLE_ANALYST", 8 * TIMES)
            operator.SealRound(operator_pb2.SealRoundRequest(round_id=round_id, request_id="seal"))
            operator.RunRound(operator_pb2.RunRoundRequest(round_id=round_id, request_id="run"))
            for shown_round in operator.WatchRound(operator_pb2.WatchRoundRequest(round_id=round_id)):
                if shown_round.detail.progress.complete:
                    break
            operator.ReleaseRound(operator_pb2.ReleaseRoundRequest(round_id=round_id, request_id="release"))
            told, problems = client.communicate(timeout=SECONDS)
        assert client.returncode == 0, problems
        last = json.loads(told.splitlines()[-1])
        assert (last["answers"], last["messages"], last["verified"]) == (8 * TIMES, 3, True)
