"""How a server starts, refuses to start, and stops."""

from __future__ import annotations

import asyncio
import json
import signal
from pathlib import Path

import pytest
from harness.lying_server import command
from harness.server_process import make_state, refusal_of, running, wait_for_exit
from harness.server_rounds import registration, terms

from equipoise.v1 import analyst_pb2, analyst_pb2_grpc, operator_pb2, operator_pb2_grpc, types_pb2
from equipoise_lab.demo.process import free_address


@pytest.mark.full
def test_a_second_server_refuses_the_same_directory_and_the_same_port(tmp_path: Path) -> None:
    with running(make_state(tmp_path / "one")) as server:
        same = command(tmp_path, "equipoise_server.cli", "serve", "--state", server.state)
        assert (same.code, "in use by another server" in same.text) == (1, True), same.text
        other = make_state(tmp_path / "two", [f'listen = "127.0.0.1:{server.port}"'])
        taken = command(tmp_path, "equipoise_server.cli", "serve", "--state", other)
        assert taken.code == 1
        assert f"cannot listen on 127.0.0.1:{server.port}" in taken.text
        assert "Traceback" not in taken.text


@pytest.mark.full
def test_a_second_server_refuses_a_store_that_a_server_uses_without_its_lock_file_or_under_another_name(
    tmp_path: Path,
) -> None:
    state = make_state(tmp_path / "state")
    with running(state):
        (state / "equipoise.db-server").unlink()
        refused = command(tmp_path, "equipoise_server.cli", "serve", "--state", state)
        assert (refused.code, "in use by another server" in refused.text) == (1, True), refused.text
        (state / "equipoise.db").rename(state / "renamed.db")
        settings = state / "equipoise.toml"
        settings.write_text(settings.read_text().replace("equipoise.db", "renamed.db"))
        refused = command(tmp_path, "equipoise_server.cli", "serve", "--state", state)
        assert (refused.code, "in use by another server" in refused.text) == (1, True), refused.text


@pytest.mark.full
def test_check_says_what_is_there_also_while_serving(tmp_path: Path) -> None:
    state = make_state(tmp_path / "state")
    with running(state):
        checked = command(tmp_path, "equipoise_server.cli", "check", "--state", state, "--json")
    assert checked.code == 0, checked.text
    assert json.loads(checked.text)["identities"] == 2


@pytest.mark.full
@pytest.mark.parametrize("health", [True, False])
def test_ping_says_whether_the_server_answers(tmp_path: Path, health: bool) -> None:
    state = make_state(tmp_path / "state", [f'health_listen = "{free_address()}"'] if health else [])

    def pinged() -> tuple[int, str]:
        told = command(tmp_path, "equipoise_server.cli", "ping", "--state", state)
        return told.code, told.text

    with running(state) as server:
        config = state / "equipoise.toml"
        config.write_text(config.read_text().replace("127.0.0.1:0", f"127.0.0.1:{server.port}"))
        code, text = pinged()
        assert (code, "The server answers at" in text) == (0, True), text
        server.process.send_signal(signal.SIGSTOP)
        try:
            code, text = pinged()
        finally:
            server.process.send_signal(signal.SIGCONT)
        assert (code, "no server answers at" in text) == (1, True), text
    assert pinged()[0] == 1


@pytest.mark.thin(2)
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_a_signal_ends_watches_at_once_and_the_server_cleanly(tmp_path: Path, number: int) -> None:
    # Calls could go on by themselves for longer than anybody here waits.
    state = make_state(tmp_path / "state", ["drain_seconds = 600"])
    (state / "data" / "shop.csv").write_text("colour,size\n" + "red,s\ngreen,m\n" * 200)
    with running(state) as server:
        credentials = {name: await server.admit(name) for name in ("ann", "bob")}
        async with server.channel(server.operator()) as channel, server.channel(credentials["ann"]) as own:
            operator = operator_pb2_grpc.OperatorServiceStub(channel)
            await operator.RegisterDataset(registration())
            opened = await operator.OpenRound(operator_pb2.OpenRoundRequest(terms=terms(), request_id="o"))
            request = analyst_pb2.WatchAnalystRoundRequest(round_id=opened.detail.round.id)
            watch = analyst_pb2_grpc.AnalystServiceStub(own).WatchAnalystRound(request)
            assert (await anext(aiter(watch))).round.state == types_pb2.ROUND_STATE_OPEN
            server.process.send_signal(number)
            refused = await refusal_of(watch)
            assert (refused.status, refused.reason) == ("UNAVAILABLE", "UNAVAILABLE")
            assert await asyncio.to_thread(wait_for_exit, server, 60) == 0
        events = [json.loads(line)["event"] for line in server.log().splitlines()]
        assert [each for each in events if each in ("serving", "stopping", "stopped")][-3:] == [
            "serving",
            "stopping",
            "stopped",
        ]
    # What was stored is there again.
    with running(state) as server:
        async with server.channel(server.operator()) as channel:
            rounds = await operator_pb2_grpc.OperatorServiceStub(channel).ListRounds(
                operator_pb2.ListRoundsRequest()
            )
            assert [detail.round.id for detail in rounds.details] == [request.round_id]
