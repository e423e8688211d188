"""How long the console's pages take on a real server: 1,000 rounds listed, and a table of 10^5 answers.

    PYTHONPATH=tests python benchmarks/console_pages.py

The server is a process of its own, on SQLite. The console answers in this process, as to a browser, without the
browser's own drawing. A page's seconds are the fewest of the clock, and of the processor: the console's and the
server's together, so that what else the machine does is left out of them. Where Chromium is installed, the pages
with an aim are opened in it, too, by the program `equipoise console`: until all is loaded, and drawn.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from pathlib import Path

import numpy as np
from harness.console_browser import Person, browser_is_here, chromium, console_of
from harness.console_pages import Browser
from harness.server_process import HURRIED, make_state, running

from equipoise.clients.analyst import Client
from equipoise.clients.operator import Operator
from equipoise.model.accounts import Budget, Danger
from equipoise.model.rounds import Share, Terms
from equipoise.profile.profile import Profile
from equipoise.queries.schema import Attribute, Schema
from equipoise.queries.statements import Marginal

ATTRIBUTES = 17  # a table over all of them has 131,072 cells
SCHEMA = Schema(tuple(Attribute(f"a{i}", ("0", "1")) for i in range(ATTRIBUTES)))
RECORDS = 20_000
BEST_OF = 3
DRAWN = "new Promise(drawn => requestAnimationFrame(() => requestAnimationFrame(drawn)))"
AIMS = {"rounds": 1.0, "results": 2.0}  # seconds of the clock


def main() -> None:
    """Prints the seconds of each page."""
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    arguments.add_argument("--rounds", type=int, default=1000)
    options = arguments.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        state = make_state(Path(scratch) / "state", HURRIED)
        table = np.random.default_rng(0).integers(0, 2, (RECORDS, ATTRIBUTES))
        np.savetxt(state / "data" / "bits.csv", table, "%d", ",", header=",".join(SCHEMA.names), comments="")
        with running(state) as server:
            at = state / "profiles" / "operator"
            settings = at / "profile.toml"
            target = f"127.0.0.1:{server.port}"
            settings.write_text(settings.read_text().replace(Profile.load(at).target, target))
            with Operator.from_profile(at) as operator:
                cap = Budget(40.0, 1e-3)
                operator.register_dataset(
                    "bits", "bits.csv", SCHEMA, cap, cap, accepted=(Danger.EPSILON, Danger.DELTA)
                )
                operator.add_analyst("ann", Path(scratch) / "ann")
                big = released(operator, Path(scratch) / "ann")
                for _ in range(options.rounds - 1):
                    operator.abort(operator.open(terms(1)).round.id, "counted")
            measure(at, Path(scratch) / "ann", big, options.rounds, server.process.pid)
            if browser_is_here():
                draw(f"operator, {options.rounds:,} rounds", at, "/", AIMS["rounds"])
                draw(f"analyst, {options.rounds:,} rounds", Path(scratch) / "ann", "/", AIMS["rounds"])
                results = f"/rounds/{big}/results"
                draw("analyst, 131,072 answers", Path(scratch) / "ann", results, AIMS["results"])


def released(operator: Operator, profile: Path) -> str:
    """A round whose results are the cells of the widest table."""
    opened = operator.open(terms(1 << ATTRIBUTES)).round.id
    with Client.from_profile(profile) as client:
        client.submit(opened, [Marginal(SCHEMA.names)])
        operator.seal(opened)
        operator.run_to_completion(opened, lambda _: None)
        operator.release(opened)
        client.wait(opened)
    return opened


def terms(queries: int) -> Terms:
    """Of a round of one analyst."""
    return Terms(
        dataset="bits",
        shares=(Share("ann", 1, queries),),
        data_budget=Budget(1.0, 1e-6),
        analyst_budget=Budget(1.0, 1e-6),
        unit="query",
        beta=0.05,
        mechanism="gaussian",
        accepted=(Danger.NOISE, Danger.PROMISE),
    )


def measure(operator: Path, analyst: Path, big: str, rounds: int, server: int) -> None:
    """Opens the pages, each by a console that has just begun; what is asked again is said so."""
    with Operator.from_profile(operator) as client:
        ids = [each.round.id for each in client.rounds()]
    assert len(ids) == rounds
    oldest = f"/?after={ids[max(0, rounds - 51)]}"
    for role, profile, paths in (
        ("operator", operator, ("/", oldest, "/sessions", "/health", "/datasets/bits")),
        ("analyst", analyst, ("/", oldest, "/receipts")),
    ):
        for path in paths:
            title = f"{role} {path.replace(oldest, '/, its oldest')}"
            show(title, path, profile, server)
    here = f"/rounds/{big}/results"
    show("analyst results, first page", here, analyst, server)
    show("analyst results, last page", f"{here}?page=1311", analyst, server)
    show("analyst results, counts", f"{here}?counts=yes", analyst, server)
    show("analyst results.csv", f"{here}/results.csv", analyst, server)
    show("analyst results, after another page", here, analyst, server, before=f"{here}?page=2")


def show(title: str, path: str, profile: Path, server: int, before: str = "") -> None:
    """Prints the fewest seconds of a few tries, of the clock and of the processor. `before`: what was asked."""
    found = []
    for _ in range(BEST_OF):
        with Browser.of(profile) as own:
            if before:
                own.get(before)
            clock, spent, served = time.perf_counter(), time.process_time(), processor_seconds(server)
            answer = own.get(path)
            served = processor_seconds(server) - served
            found.append((time.process_time() - spent + served, time.perf_counter() - clock))
            assert answer.status_code == 200, answer.text
    processor, clock = map(min, zip(*found, strict=True))
    print(
        f"{title:42} {processor:6.2f} s of the processor, {clock:6.2f} s of the clock, {len(answer.content):9,} B"
    )


def draw(title: str, profile: Path, path: str, aim: float) -> None:
    """Prints how long Chromium takes at best to load and draw a page, of consoles that have just been opened."""
    found = []
    with chromium() as browser:
        for _ in range(BEST_OF):
            with console_of(profile) as address:
                person = Person(browser, address)
                began = time.perf_counter()
                person.go(path)
                person.page.evaluate(DRAWN)
                found.append(time.perf_counter() - began)
    print(f"in Chromium: {title:29} {min(found):6.2f} s of the clock, aim {aim:.0f} s")


def processor_seconds(process: int) -> float:
    """Return the processor time of a process so far, in seconds."""
    fields = Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


if __name__ == "__main__":
    main()
