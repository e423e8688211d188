"""Progress bars on standard error."""

from __future__ import annotations

from rich.progress import BarColumn, MofNCompleteColumn, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.progress import Progress as Bars

from equipoise.commands.printing import err
from equipoise.model.rounds import Progress, RoundDetail
from equipoise.wire.printable import printable


class ShownProgress:
    """A progress bar on standard error, gone when it is done: use as a context, call with done and total."""

    def __init__(self, unit: str) -> None:
        # A server's words are no markup.
        words = TextColumn("{task.description}", markup=False)
        columns = SpinnerColumn(), words, BarColumn(), MofNCompleteColumn()
        # Where no terminal is, what is printed is read by programs.
        shown = err.is_terminal
        self._bar = Bars(*columns, TimeElapsedColumn(), console=err, transient=True, disable=not shown)
        self._task = self._bar.add_task(unit, total=None)

    def __enter__(self) -> ShownProgress:
        self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.stop()

    def __call__(self, done: int, total: int) -> None:
        """Shows how far it is."""
        self._bar.update(self._task, completed=done, total=total)

    def follow(self, progress: Progress) -> None:
        """Shows how far the server is with a request."""
        if progress.phase:
            phase, total = printable(progress.phase), progress.total or None
            self._bar.update(self._task, description=phase, completed=progress.done, total=total)


class RunProgress:
    """A progress bar on standard error that follows a run: use as a context, call with every change."""

    def __init__(self) -> None:
        self._bar = Bars(
            SpinnerColumn(),
            # A server's words are no markup.
            TextColumn("{task.description:<12}", markup=False),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TextColumn("{task.fields[left]}"),
            console=err,
        )
        self._task = self._bar.add_task("waiting", total=None, left="")
        self._last_step = ""

    def __enter__(self) -> RunProgress:
        self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.stop()

    def __call__(self, detail: RoundDetail) -> None:
        """Shows what `detail` says."""
        progress = detail.progress
        self._bar.update(
            self._task,
            description=printable(progress.phase) or detail.round.state.value,
            completed=progress.done,
            total=progress.total or None,
            left=f"{progress.seconds_left:.0f} s left" if progress.seconds_left else "",
        )

    def say(self, step: str) -> None:
        """Prints what the round waits for above the bar, once, and whole: it is a command to copy."""
        if step not in ("", self._last_step):
            self._bar.console.print(printable(step), soft_wrap=True, markup=False, highlight=False)
        self._last_step = step
