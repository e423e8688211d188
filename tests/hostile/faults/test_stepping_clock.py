"""A real server's clock steps by a year: what that would destroy waits until somebody has looked at the clock."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

import pytest
from harness.dangers import LARGE_CAPS
from harness.faults.asking import ASKED, CAP, SCHEMA, TERMS, make_deployment
from harness.faults.clock import settable_clock
from harness.server_process import ServerProcess, command, running
from harness.waiting import until
from sqlalchemy import func, select

from equipoise.clients.analyst import Client
from equipoise.clients.operator import Operator
from equipoise.errors import Unavailable, WrongState
from equipoise.model.rounds import RoundState
from equipoise_server.config_file import CONFIG_FILE
from equipoise_server.storage.store import read_only
from equipoise_server.storage.tables.round import result_chunks, rounds
from equipoise_server.storage.tables.transparency import sealed_seeds

YEAR = timedelta(days=365)


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Clients that tell of a refusal, and do not ask again by themselves."""
    monkeypatch.setattr("equipoise.clients.connection.ATTEMPTS", 1)


def set_up(state: Path) -> None:
    """A deployment that destroys results after a day, and seeds after a month."""
    make_deployment(state)
    path = state / CONFIG_FILE
    settings = {"retention_days": 1, "audit_window_days": 30}
    text = path.read_text()
    for name, value in settings.items():
        text, found = re.subn(rf"(?m)^{name} = .*$", f"{name} = {value}", text)
        assert found == 1
    path.write_text(text)


def told(server: ServerProcess, event: str, times: int) -> None:
    """Wait until the operator was told so often."""
    until(lambda: server.log().count(f'"{event}"') == times)


def held(state: Path, round_id: str) -> dict[str, int]:
    """How many rows there are of what a clock can destroy of a round."""
    with read_only(f"sqlite:///{state / 'equipoise.db'}") as store, store.read() as connection:
        run = select(rounds.c.run_id).where(rounds.c.id == round_id).scalar_subquery()
        own = {"results": result_chunks.c.run_id == run, "seeds": sealed_seeds.c.round_id == round_id}
        counted = {name: select(func.count()).where(each) for name, each in own.items()}
        return {name: connection.execute(query).scalar_one() for name, query in counted.items()}


def confirmed(state: Path) -> datetime:
    """What `clock confirm` prints as the time that it confirms, under the clock of this machine."""
    done = command("clock", "confirm", "--state", str(state))
    assert done.returncode == 0, done.stderr
    found = re.match(r"Confirmed (\S+ \S+) UTC\. The time recorded before was \S+ \S+ UTC\.", done.stdout)
    assert found is not None
    return datetime.strptime(found[1], "%Y-%m-%d %H:%M").replace(tzinfo=UTC)


@pytest.mark.nightly
def test_a_real_clock_that_steps_by_a_year_and_back_loses_nothing_until_it_is_confirmed(tmp_path: Path) -> None:
    state = tmp_path / "state"
    set_up(state)
    with (
        settable_clock(tmp_path) as clock,
        running(state) as server,
        Operator.from_profile(state / "profiles" / "operator") as operator,
    ):
        for name in ASKED:
            operator.add_analyst(name, tmp_path / name)
        operator.register_dataset("shop", "shop.csv", SCHEMA, CAP, CAP, accepted=LARGE_CAPS)
        with Client.from_profile(tmp_path / "ann") as ann:

            def asked(close_time: datetime | None = None) -> str:
                terms = replace(TERMS, mechanism="gaussian", close_time=close_time)
                round_id: str = operator.open(terms).round.id
                ann.submit(round_id, ASKED["ann"])
                return round_id

            released, complete = asked(), asked()
            waiting = asked(close_time=datetime.now(UTC) + timedelta(days=100))
            for round_id in (released, complete):
                operator.seal(round_id)
                operator.run_to_completion(round_id)
            operator.release(released)
            ann.wait(released)
            results = list(ann.results(released, ASKED["ann"]))
            before = held(state, released)
            assert min(before.values()) > 0

            for step in (1, 2):
                clock.step(YEAR)
                told(server, "clock_not_trusted", step)
                for refused in (partial(operator.release, complete), partial(operator.open, TERMS)):
                    with pytest.raises(Unavailable, match=r"clock says 20.* equipoise-server clock confirm"):
                        refused()
                # Whoever must be locked out cannot wait until somebody has looked at the clock.
                operator.revoke_analyst("bob")
                clock.step(-YEAR)
                told(server, "clock_trusted", step)
            assert held(state, released) == before
            assert list(ann.results(released, ASKED["ann"])) == results
            assert operator.round(waiting).round.state is RoundState.OPEN

            clock.step(YEAR)
            told(server, "clock_not_trusted", 3)
            now = datetime.now(UTC) + YEAR
            assert abs(confirmed(state) - now) < timedelta(hours=1)
            told(server, "clock_trusted", 3)
            until(lambda: held(state, released) == {"results": 0, "seeds": 0})
            until(lambda: operator.round(waiting).round.state is not RoundState.OPEN)
            with pytest.raises(WrongState, match="no longer kept"):
                list(ann.results(released, ASKED["ann"]))

            # Set right again, the same clock is as far off what was confirmed, and has to be confirmed once more.
            clock.step(-YEAR)
            told(server, "clock_not_trusted", 4)
            assert abs(confirmed(state) - (now - YEAR)) < timedelta(hours=1)
            told(server, "clock_trusted", 4)
            assert operator.release(complete).round.state is RoundState.RELEASED
