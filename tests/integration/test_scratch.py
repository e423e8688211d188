from pathlib import Path
import pytest
from harness.audited_rounds import audited, problems
from harness.rounds_bench import Bench
from harness.stores import back_up, restore
from equipoise_server.rounds.recovery import write_off_losses

def test_it(tmp_path: Path) -> None:
    bench = Bench(tmp_path, f"sqlite:///{tmp_path}/s.db")
    opened = bench.opened()
    waiting = bench.sealed()
    bench.rounds.schedule.keep()
    bench.stop(); copy = back_up(bench.url); bench.start(); bench.rounds.lifecycle.recover()
    bench.rounds.lifecycle.run(waiting, "run"); bench.wait(waiting)
    bench.rounds.lifecycle.release(waiting, "release"); bench.clock.move(60); bench.rounds.schedule.keep()
    bench.stop(); restore(bench.url, copy); bench.start()
    done = write_off_losses(bench.store, bench.guard, bench.signer, bench.clock())
    bench.rounds.lifecycle.recover()
    bench.clock.move(60)
    a = audited(bench)
    print(problems(a)); print(a.remarks)
    bench.stop()
    assert not problems(a)
