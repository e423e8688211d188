"""What ends a session's stream besides its analyst: nothing asked, a revocation, a server that stops."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from harness.abuse.place import SCHEMA, admitted, connection, session_terms
from harness.abuse.talk import RED, Talk, asked, attach
from harness.dangers import LARGE_CAPS
from harness.server_process import HURRIED, Refusal, ServerProcess, make_state, running, wait_for_exit
from harness.waiting import PATIENCE, until

from equipoise.clients.analyst import Client
from equipoise.clients.operator import Operator
from equipoise.clients.session_stream import SessionStream
from equipoise.clients.statement_answer import StatementAnswer
from equipoise.errors import NotAuthenticated
from equipoise.model.accounts import Budget
from equipoise.model.rounds import SessionTerms
from equipoise.queries.predicates import attribute

REVOKED = Refusal("UNAUTHENTICATED", "IDENTITY", "the certificate is not, or no longer, in force")


@pytest.fixture
def server(tmp_path: Path) -> Iterator[ServerProcess]:
    state = make_state(tmp_path / "state", ["asking_idle_seconds = 5", "asked_at_once = 2", *HURRIED])
    rows = [f"{('red', 'green')[row % 2]},{row % 20 / 10}" for row in range(400)]
    (state / "data" / "shop.csv").write_text("\n".join(["colour,price", *rows]) + "\n")
    with running(state) as made:
        yield made


@pytest.mark.nightly
def test_streams_end_for_the_reason_that_there_is(server: ServerProcess) -> None:
    ann, bob = admitted(server, "ann"), admitted(server, "bob")
    budget = Budget(4.0, 1e-5)
    by_turns = session_terms(
        "ann", "bob", mechanism="online_private", analyst_budget=budget, session=SessionTerms(20, 3600)
    )
    with connection(server, server.operator()) as way:
        operator = Operator(way)
        cap = Budget(50.0, 1e-3)
        operator.register_dataset("shop", "shop.csv", SCHEMA, cap, cap, accepted=LARGE_CAPS)
        session_id = operator.open_session(by_turns).round.id
        with server.blocking_channel(ann) as anns, server.blocking_channel(bob) as bobs:
            # Nothing is asked, and nothing waits.
            idle = Talk(anns)
            idle.say(attach(session_id))
            end = idle.end()
            assert (end.status, "nothing was asked for too long" in end.message) == ("UNAVAILABLE", True)
            # What waits for its turn may wait for hours; the third statement is not even read.
            waiting, others = Talk(anns), Talk(bobs)
            for stream in (waiting, others):
                stream.say(attach(session_id), asked(1, RED), asked(2, RED), asked(3, b"\xff"))
                assert stream.hear().attached.answered == 0
            operator.revoke_analyst("ann")
            assert waiting.end() == REVOKED
            server.process.terminate()
            end = others.end()
            assert (end.status, "the server is stopping" in end.message) == ("UNAVAILABLE", True)
            assert wait_for_exit(server, PATIENCE) == 0
    assert "Traceback" not in server.log()
    assert '"unexpected"' not in server.log()


@pytest.mark.nightly
def test_a_stream_that_a_client_keeps_ends_when_it_is_idle_and_when_its_analyst_is_revoked(
    server: ServerProcess, tmp_path: Path
) -> None:
    red = attribute("colour") == "red"
    with connection(server, server.operator()) as way:
        operator, cap = Operator(way), Budget(50.0, 1e-3)
        operator.register_dataset("shop", "shop.csv", SCHEMA, cap, cap, accepted=LARGE_CAPS)
        profile = operator.add_analyst("ann", tmp_path / "ann")
        grant = operator.give_grant("shop", "ann", Budget(0.5, 1e-6)).round.id
        with Client.from_profile(profile) as client:

            def ask() -> tuple[StatementAnswer, SessionStream]:
                (answer,) = client.ask(grant, [red], error=40)
                kept = client._kept._stream
                assert kept is not None
                return answer, kept

            first, kept = ask()
            until(lambda: not kept.open)
            again, other = ask()
            assert other is not kept
            assert (again.cost, again.value, again.sequence) == (0, first.value, 2)
            assert ask()[1] is other
            operator.revoke_analyst("ann")
            until(lambda: not other.open)
            with pytest.raises(NotAuthenticated):
                ask()
    assert "Traceback" not in server.log()
