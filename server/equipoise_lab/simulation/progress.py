"""A progress bar on standard error that follows the runs of a simulation."""

from __future__ import annotations

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from equipoise_server.mechanisms.interface import OnStep


class RunsProgress:
    """Use as a context; call with the number of each run that begins, counted from 0."""

    def __init__(self, runs: int, console: Console) -> None:
        self._runs = runs
        self._bar = Progress(
            SpinnerColumn(),
            TextColumn("{task.description:<24}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            console=console,
            transient=True,
        )
        self._task = self._bar.add_task("reading and planning", total=None)

    def __enter__(self) -> RunsProgress:
        self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.stop()

    def __call__(self, run: int) -> OnStep:
        """Return what follows this run."""
        name = "" if self._runs == 1 else f"run {run + 1} of {self._runs}: "

        def follow(phase: str, done: int, total: int) -> None:
            self._bar.update(self._task, description=f"{name}{phase}", completed=done, total=total)

        return follow
