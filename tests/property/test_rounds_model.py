"""Ledger and life cycle against a simple model: any order of steps, caps, retries, crashes and restarts.

The real service on a real store. The table is not there, so no worker starts; a run's results are stored by the
same functions that store a worker's.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pytest
import structlog
from harness.dangers import LARGE_CAPS
from harness.examples import examples
from harness.modelled_rounds import Account, Round, analyst_charges
from harness.rounds_bench import ANN, CAP, SALT, TERMS, Bench
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
from structlog.testing import capture_logs

from equipoise.accounting import RHO_UNIT, Cost, charge_at, events_from_json
from equipoise.errors import BudgetExhausted, InvalidArgument, WrongState
from equipoise.model.accounts import Budget
from equipoise.model.synopsis import Synopsis
from equipoise.records.record import stream_digest
from equipoise.wire.workloads import workload_to_bytes
from equipoise_server.computation.streams import StreamDigest
from equipoise_server.ledger.accounts import account
from equipoise_server.ledger.caps import Cap, at_order
from equipoise_server.ledger.replay import check_accounts
from equipoise_server.rounds.lifecycle import Lifecycle
from equipoise_server.rounds.new_datasets import AccountingMethod
from equipoise_server.rounds.store.results import Runs
from equipoise_server.storage.crash_points import CrashPoint, install_hook

DATA = "data/shop"
CHUNKS = [b"first", b"second"]
OPTIONS: dict[str, object] = {"rounds": 2, "play": "mixed"}  # nothing is computed, so planning may be quick
EXAMPLES = {"sqlite": 15, "postgresql": 6}
EmptyStore = Callable[[Path], AbstractContextManager[str]]


class Killed(BaseException):
    """What a kill is here: nothing of the process goes on."""


class Life(RuleBasedStateMachine):
    """One service, restarted at will, and the model of what it must say."""

    crashes = st.sampled_from(
        [None, None, None, "WRITTEN", "COMMITTED", "GUARD_DIGESTS_KEPT", "GUARD_PREPARED", "GUARD_ADVANCED"]
    )

    def __init__(self, empty_store: EmptyStore) -> None:
        super().__init__()
        structlog.configure(processors=[structlog.testing.LogCapture()])
        self.place = ExitStack()
        self.directory = Path(self.place.enter_context(tempfile.TemporaryDirectory(prefix="equipoise-model-")))
        self.store_url = self.place.enter_context(empty_store(self.directory))
        self.rounds: dict[str, Round] = {}
        self.requests = 0

    def teardown(self) -> None:
        """Close and remove everything."""
        if hasattr(self, "bench"):
            self.bench.stop()
        self.place.close()
        structlog.reset_defaults()

    def done(self, crash: str | None, step: str, act: Callable[[str], Any]) -> Any:
        """Ask for something; where the server is killed meanwhile, restart it and ask again, as a client does."""
        self.requests += 1
        request_id = f"request {self.requests}"
        if crash is None:
            return act(request_id)
        point = CrashPoint[crash if crash.startswith("GUARD") else f"{step}_{crash}"]

        def kill(reached: CrashPoint) -> None:
            if reached is point:
                raise Killed

        try:
            with install_hook(kill):
                return act(request_id)
        except Killed:
            self.restart()
        answer = act(request_id)
        assert act(request_id) == answer
        return answer

    @initialize(
        unit=st.sampled_from(["query", "analyst"]),
        data_order=st.sampled_from([0.0, 2.5]),
        analyst_order=st.sampled_from([0.0, 2.5]),
    )
    def begin(self, unit: str, data_order: float, analyst_order: float) -> None:
        """There is always a round."""
        accounting = AccountingMethod(data_order, analyst_order)
        self.bench = Bench(self.directory, self.store_url, accounting=accounting)
        self.table = self.directory / "data" / "shop.csv"
        self.rows = self.table.read_bytes()
        self.table.unlink()
        alone = Cap(CAP.epsilon, CAP.delta)
        self.accounts = {DATA: Account(sums=True, cap=at_order("cap", alone, data_order))}
        self.analyst_caps = {"query": alone, "analyst": at_order("cap", alone, analyst_order)}
        self.open(unit, 8.0, None)

    @precondition(lambda self: len(self.rounds) < 6)
    @rule(
        unit=st.sampled_from(["query", "analyst"]),
        epsilon=st.sampled_from([2.0, 4.0, 8.0]),
        crash=crashes,
    )
    def open(self, unit: str, epsilon: float, crash: str | None) -> None:
        """A round that every account could take once all open ones are sealed; otherwise it is refused."""
        budget = Budget(epsilon, 1e-4)
        terms = replace(TERMS, unit=unit, data_budget=budget, analyst_budget=budget, options=OPTIONS)
        plan = self.bench.rounds.opening.plan(terms)
        each = analyst_charges(plan, unit, self.analyst_caps[unit].order or 0)
        mine = {f"analyst/shop/{counted}/{name}": cost for counted, cost in each.items() for name in ("ann", "bob")}
        on_data = charge_at(events_from_json(plan.data_events), self.accounts[DATA].cap.order or 0)
        costs = {DATA: on_data, **mine}
        new = {
            f"analyst/shop/{counted}/{name}": Account(sums=counted == "analyst", cap=self.analyst_caps[counted])
            for counted in each
            for name in ("ann", "bob")
        }
        known = new | self.accounts
        fits = all(known[name].takes([*self.pending(name), cost]) for name, cost in costs.items())
        try:
            opened = self.done(crash, "OPEN", lambda request_id: self.bench.rounds.opening.open(terms, request_id))
        except BudgetExhausted:
            assert not fits
            return
        assert fits
        self.accounts = known
        self.rounds[opened.id] = Round(costs)
        submit = self.bench.rounds.submissions.submit
        sent = workload_to_bytes(ANN)
        self.done(None, "SUBMIT", lambda request_id: submit("ann", opened.id, request_id, sent, SALT))

    def withdraw(self, name: str, crash: str | None) -> None:
        """Nobody has asked then, and nobody sees that."""
        held = self.rounds[name]
        if held.state != "open" or held.withdrawn:
            return
        crash = None if crash and crash.startswith("GUARD") else crash
        self.done(
            crash, "WITHDRAW", lambda request_id: self.bench.rounds.submissions.withdraw("ann", name, request_id)
        )
        held.withdrawn = True

    def seal(self, name: str, crash: str | None) -> None:
        """All accounts are charged; none refuses a round that could be opened."""
        held = self.rounds[name]
        legal = held.state == "open"
        try:
            self.done(crash, "SEAL", lambda request_id: self.bench.rounds.lifecycle.seal(name, request_id))
        except WrongState:
            assert not legal
        else:
            assert legal
            held.state = "sealed"
            for each, cost in held.costs.items():
                self.accounts[each].reserved[name] = cost

    def run(self, name: str, crash: str | None) -> None:
        """From here on the charge can no longer be given back."""
        held = self.rounds[name]
        try:
            self.done(crash, "RUN", lambda request_id: self.run_without_a_table(name, request_id))
        except WrongState:
            assert held.complete or held.state not in ("sealed", "running")
        else:
            assert held.state in ("sealed", "running")
            assert not held.complete
            held.state = "running"

    def run_without_a_table(self, name: str, request_id: str) -> None:
        """The table vanishes after the look at it, so that the state moves and no worker reads."""
        look = Lifecycle._check_table

        def vanishing(lifecycle: Lifecycle, round_id: str) -> None:
            self.table.write_bytes(self.rows)
            look(lifecycle, round_id)
            self.table.unlink()

        with suppress(InvalidArgument), mock.patch.object(Lifecycle, "_check_table", vanishing):
            self.bench.rounds.lifecycle.run(name, request_id)

    def compute(self, name: str, crash: str | None) -> None:  # noqa: ARG002
        """All of what a worker would have stored."""
        self.compute_parts(name, 2)

    def compute_in_vain(self, name: str, crash: str | None) -> None:
        """A worker that is cut off after its first message."""
        self.compute_parts(name, 1)
        if crash is not None:
            self.restart()

    def compute_parts(self, name: str, parts: int) -> None:
        """What a worker would have stored: all of it, or some before it was cut off."""
        held = self.rounds[name]
        if held.state != "running" or held.complete:
            return
        runs = Runs(self.bench.store, self.bench.clock)
        run_id = runs.begin(name)
        for sequence in range(1, parts + 1):
            runs.keep(run_id, "ann", sequence, [CHUNKS[sequence - 1]])
        if parts == 2:
            streams = {"ann": StreamDigest(stream_digest(name, CHUNKS), len(CHUNKS), 1)}
            runs.complete(run_id, Synopsis.of_cells(np.arange(3), (2, 4)), streams, 1)
            held.complete = True

    def release(self, name: str, crash: str | None) -> None:
        """Answers and charges at once."""
        held = self.rounds[name]
        try:
            self.done(crash, "RELEASE", lambda request_id: self.bench.rounds.lifecycle.release(name, request_id))
        except WrongState:
            assert held.state != "running" or not held.complete
        else:
            assert held.state == "running"
            assert held.complete
            held.state = "released"
            self.settle(name, spent=True)
            self.bench.clock.move(60)

    def abort(self, name: str, crash: str | None) -> None:
        """Given back only where no run was ever started."""
        held = self.rounds[name]
        try:
            self.done(
                crash, "ABORT", lambda request_id: self.bench.rounds.lifecycle.abort(name, "a reason", request_id)
            )
        except WrongState:
            assert held.state in ("released", "aborted")
        else:
            assert held.state in ("open", "sealed", "running")
            self.settle(name, spent=held.state == "running")
            held.state = "aborted"

    @precondition(lambda self: self.rounds)
    @rule(
        data=st.data(),
        epsilon=st.sampled_from([5.0, 9.0, 20.0]),
        delta=st.sampled_from([1e-3, 1e-5]),
        crash=crashes,
    )
    def set_cap(self, data: st.DataObject, epsilon: float, delta: float, crash: str | None) -> None:
        """Never below what is committed, and what open rounds will reserve."""
        name = data.draw(st.sampled_from(sorted(self.accounts)))
        held, cap = self.accounts[name], Budget(epsilon, delta)
        under = replace(held, cap=Cap(epsilon, delta, held.cap.order))
        # At an order, a cap of which the conversion takes nearly all is refused besides.
        room = Cost(divergence=round(epsilon / 100 * RHO_UNIT))
        fits = under.holds(under.committed) and (held.cap.order is None or under.holds(room))
        try:
            self.done(
                crash,
                "SET_CAP",
                lambda request_id: self.bench.rounds.budgets.set_cap(name, cap, request_id, accepted=LARGE_CAPS),
            )
        except InvalidArgument:
            assert not fits
        except WrongState:
            assert fits
            assert not under.takes(self.pending(name))
        else:
            assert fits
            assert under.takes(self.pending(name))
            self.accounts[name] = under

    @precondition(lambda self: self.rounds)
    @rule(data=st.data(), crash=crashes)
    def go_on(self, data: st.DataObject, crash: str | None) -> None:
        """The next step of a life that ends well."""
        name = data.draw(st.sampled_from(sorted(self.rounds)))
        held = self.rounds[name]
        match held.state:
            case "open":
                self.seal(name, crash)
            case "sealed":
                self.run(name, crash)
            case "running" if held.complete:
                self.release(name, crash)
            case "running":
                self.compute(name, crash)

    @precondition(lambda self: self.rounds)
    @rule(
        data=st.data(),
        step=st.sampled_from(["withdraw", "seal", "run", "compute", "compute_in_vain", "release", "abort"]),
        crash=crashes,
    )
    def any_step(self, data: st.DataObject, step: str, crash: str | None) -> None:
        """Any step of any round, legal or not."""
        getattr(self, step)(data.draw(st.sampled_from(sorted(self.rounds))), crash)

    @rule()
    def restart(self) -> None:
        """As after a crash: everything in memory is gone."""
        with capture_logs():
            self.bench.restart()

    @invariant()
    def accounts_say_what_they_must(self) -> None:
        """To the last unit, and within the caps."""
        with self.bench.store.read() as connection:
            check_accounts(connection)
            self.bench.guard.check(connection)
            for name, held in self.accounts.items():
                stored = account(connection, name)
                assert stored.spent == held.total(list(held.spent.values()))
                assert stored.committed == held.committed
                assert stored.cap == held.cap
                assert held.holds(stored.committed)
                assert held.takes(self.pending(name))

    @invariant()
    def rounds_stand_where_they_must(self) -> None:
        """And deliver nothing but what was stored, and only when they were released."""
        for name, held in self.rounds.items():
            assert self.bench.state(name).value == held.state
            try:
                assert self.bench.rounds.analyst_views.results("ann", name, 0, 9) == CHUNKS
                assert held.state == "released"
            except WrongState:
                assert held.state != "released"

    def pending(self, name: str) -> list[Cost]:
        """What open rounds will reserve on an account."""
        return [held.costs[name] for held in self.rounds.values() if held.state == "open" and name in held.costs]

    def settle(self, name: str, *, spent: bool) -> None:
        """End what a round has reserved."""
        for held in self.accounts.values():
            cost = held.reserved.pop(name, None)
            if spent and cost is not None:
                held.spent[name] = cost


@pytest.mark.hypothesis  # as far as tiers go
def test_any_life_is_as_the_model_says(empty_store: EmptyStore, request: pytest.FixtureRequest) -> None:
    class OnThisStore(Life):
        def __init__(self) -> None:
            super().__init__(empty_store)

    most = examples(EXAMPLES[request.node.callspec.params["empty_store"]])
    run_state_machine_as_test(OnThisStore, settings=settings(max_examples=most, stateful_step_count=40))
