"""Two servers on one PostgreSQL behind one address: the first is killed, and everybody goes on with the second."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from harness.dangers import SMALL_TABLE
from harness.lying_server import command
from harness.one_address import one_address
from harness.rounds_bench import COLOUR, write_table
from harness.server_process import EACH_ITS_SEED, HURRIED, make_state, running
from harness.server_rounds import SCHEMA
from harness.stores import Cluster
from harness.waiting import PATIENCE

from equipoise.clients.analyst import Client
from equipoise.clients.operator import Operator
from equipoise.model.accounts import Budget
from equipoise.model.rounds import RoundState, Share, Terms
from equipoise.profile.profile import Profile
from equipoise.queries.statements import Marginal, Statement

pytestmark = pytest.mark.full
CAP, DELTA = 8.0, 1e-4
RHO = 1e-3
ASKED: tuple[Statement, ...] = (COLOUR == "red", Marginal(("colour",)), COLOUR == "green")


@pytest.fixture
def state(tmp_path: Path, postgresql: Cluster) -> Iterator[Path]:
    url = postgresql.create()
    made = make_state(tmp_path / "state", HURRIED, store=url)
    write_table(made / "data")
    yield made
    postgresql.drop(url)


def test_nothing_is_lost_or_charged_twice_when_a_server_behind_the_address_is_killed(
    state: Path, tmp_path: Path
) -> None:
    with ExitStack() as stack:
        second = stack.enter_context(running(state, script=EACH_ITS_SEED))
        with running(state, script=EACH_ITS_SEED) as first, one_address((first.port, second.port)) as port:
            for name in ("operator", "auditor"):
                settings = state / "profiles" / name / "profile.toml"
                target = Profile.load(settings.parent).target
                settings.write_text(settings.read_text().replace(target, f"127.0.0.1:{port}"))
            operator = stack.enter_context(Operator.from_profile(state / "profiles" / "operator"))
            operator.register_dataset("shop", "shop.csv", SCHEMA, Budget(CAP, DELTA), Budget(CAP, DELTA))
            for name in ("ann", "bob"):
                operator.add_analyst(name, tmp_path / name)
            ann, bob = (stack.enter_context(Client.from_profile(tmp_path / name)) for name in ("ann", "bob"))
            round_id = operator.open(terms()).round.id
            grant_id = operator.give_grant("shop", "ann", Budget(1.0, 1e-6), accepted=SMALL_TABLE).round.id
            receipts = [client.submit(round_id, ASKED) for client in (ann, bob)]
            operator.seal(round_id)
            # The first is killed while it computes the round, and between two statements of one stream.
            operator.run(round_id)

            def statements() -> Iterator[Statement]:
                yield ASKED[0]
                first.process.kill()
                first.process.wait(PATIENCE)
                yield from ASKED[1:]

            told = list(ann.ask(grant_id, statements(), after=None, rho=RHO))
            assert len(told) == len(ASKED)
            assert [each.cost > 0 for each in told[:2]] == [True, True]
            # The second runs the round again by itself.
            assert any(detail.progress.complete for detail in operator.watch(round_id))
            operator.release(round_id)
            for client, receipt in zip((ann, bob), receipts, strict=True):
                assert client.wait(round_id).state is RoundState.RELEASED
                assert len(client.results(round_id, ASKED)) == receipt.queries
            # The same questions again are answered alike at no cost, by the second server.
            again = list(ann.ask(grant_id, ASKED, after=None, rho=RHO))
            assert [each.cost for each in again] == [0, 0, 0]
            assert [[one.value for one in each.results] for each in again] == [
                [one.value for one in each.results] for each in told
            ]
            (mine,) = [each.grant for each in ann.sessions() if each.id == grant_id]
            assert mine is not None
            assert mine.spent == sum(each.cost for each in told)
            operator.end_grant(grant_id)
            charges = [
                (entry.round_id, entry.action)
                for entry in operator.account_history("data/shop")
                if entry.round_id in (round_id, grant_id)
            ]
            assert len(charges) == len(set(charges))
            auditor = state / "profiles" / "auditor"
            audited = command(tmp_path, "equipoise.cli", "audit", "verify", "--profile", auditor)
            assert audited.code == 0, audited.text
    checked = command(tmp_path, "equipoise_server.cli", "check", "--state", state)
    assert checked.code == 0, checked.text


def terms() -> Terms:
    """A round that computes for a moment."""
    return Terms(
        dataset="shop",
        shares=(Share("ann", 3, 10), Share("bob", 3, 10)),
        data_budget=Budget(2.0, 1e-6),
        analyst_budget=Budget(2.0, 1e-6),
        mechanism="equilibrium",
        options={"prior": "none"},
        accepted=SMALL_TABLE,
    )
