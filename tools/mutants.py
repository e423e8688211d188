"""Breaks the code on purpose, one small fault at a time, and sees whether the tests that are named for it notice.

    python tools/mutants.py                  all mutants of `tools/mutants.toml`, each core one at a time
    python tools/mutants.py --only WORDS     those whose name, file or origin has these words
    python tools/mutants.py --check          only compares the list with the tree; no test is run
    python tools/mutants.py --table          prints the tables of `docs/mutants.md`

Every mutant is applied alone, in a temporary copy of the tree's files, of which each core has one; the tree itself
is never written. First the named tests must pass on the copies as they are. Then each mutant's own tests run, and
one of them must fail. Exit code 1: a mutant survived; 2: the list does not fit the tree, or tests fail without any
mutant.

A mutant is a table of the list: `name`, how a promise breaks; `file`; `find`, a text that stands once in it;
`replace`; `origin`, who found it; and `tests`, the ids of tests, or `equal`, why nothing that can be seen changes.
"""

from __future__ import annotations

import argparse
import ast
import importlib
import importlib.util
import multiprocessing
import os
import re
import shutil
import signal
import subprocess
import sys
import tomllib
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory, TemporaryFile

import pytest
from trees import ROOT

LIST = "tools/mutants.toml"
# Loaded once for all mutants. What pytest loads as plugins is not among them.
LIBRARIES = ("numpy", "scipy.stats", "dp_accounting", "sqlalchemy", "pydantic", "grpc", "cryptography.x509")
SECONDS = 1800  # that tests may take, also where a machine has much else to do
PYTEST = ("-x", "-q", "-p", "no:cacheprovider", "--no-header", "--tb=no", "-rfE")
FAILED = re.compile(r"^(?:FAILED|ERROR) (\S+)", re.MULTILINE)


@dataclass(frozen=True)
class Mutant:
    """One fault. `tests` catch it; or `equal` says why it is none."""

    name: str
    origin: str
    file: str
    find: str
    replace: str
    tests: tuple[str, ...] = ()
    equal: str = ""

    @property
    def words(self) -> str:
        """What `--only` looks in."""
        return f"{self.name} {self.origin} {self.file}"

    def problems(self, tree: Path) -> list[str]:
        """Say what of this mutant does not fit the tree; nothing where all does."""
        source = (tree / self.file).read_text(encoding="utf-8") if (tree / self.file).is_file() else None
        if source is None:
            return [f"{self.name}: there is no file {self.file}"]
        found, problems = source.count(self.find), []
        if found != 1:
            problems.append(f"{self.name}: what is to be replaced stands {found} times in {self.file}, not once")
        elif compiled(source) == compiled(self.applied(source)):
            problems.append(f"{self.name}: does not change the code of {self.file}")
        if bool(self.tests) is bool(self.equal):
            problems.append(f"{self.name}: needs tests, or a reason why it changes nothing")
        missing = [test for test in self.tests if not is_defined(tree, test)]
        return problems + [f"{self.name}: there is no test {test}" for test in missing]

    def applied(self, source: str) -> str:
        """Return a source with this fault in it."""
        return source.replace(self.find, self.replace)


def read_list(path: Path) -> list[Mutant]:
    """Read the list. Raises `TypeError` or `KeyError` for a table with other keys than a mutant's."""
    tables = tomllib.loads(path.read_text(encoding="utf-8"))["mutant"]
    return [Mutant(**{**table, "tests": tuple(table.get("tests", ()))}) for table in tables]


def compiled(source: str) -> str:
    """Return what a source says to Python, without layout and comments. Raises `SyntaxError`."""
    return ast.dump(ast.parse(source))


def is_defined(tree: Path, test: str) -> bool:
    """Tell whether a test file defines the test of an id, whatever its case; a whole file is no such test."""
    path, _, name = test.partition("[")[0].partition("::")
    source = (tree / path).read_text(encoding="utf-8") if (tree / path).is_file() else ""
    return bool(name) and re.search(rf"^(async )?def {re.escape(name)}\(", source, re.MULTILINE) is not None


def copy_of(tree: Path, into: Path) -> None:
    """Copy all files that git knows or would add, as they are now."""
    told = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=tree,
        check=True,
        capture_output=True,
        text=True,
    )
    for name in filter(None, told.stdout.split("\0")):
        if (tree / name).is_file():
            (into / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(tree / name, into / name)


def write(path: Path, source: str) -> None:
    """Write a module, and forget what was compiled of it: its size and its second may be those of the old one."""
    path.write_text(source, encoding="utf-8")
    Path(importlib.util.cache_from_source(str(path))).unlink(missing_ok=True)


def load_libraries() -> None:
    """Load what tests import of others, as far as it is installed, before children inherit it."""
    for library in LIBRARIES:
        with suppress(ImportError):
            importlib.import_module(library)


def run_tests(tree: Path, tests: Sequence[str]) -> tuple[int, str]:
    """Run tests on the code of a tree until one fails, in a child of this process.

    Gives pytest's exit code, that of a signal below 0, and what was printed.
    """
    with TemporaryFile() as printed:
        child = os.fork()
        if not child:
            try:
                _become_pytest(tree, tests, printed.fileno())
            finally:
                os._exit(pytest.ExitCode.INTERNAL_ERROR)
        _, status = os.waitpid(child, 0)
        printed.seek(0)
        return os.waitstatus_to_exitcode(status), printed.read().decode(errors="replace")


def _become_pytest(tree: Path, tests: Sequence[str], printed: int) -> None:
    """Run pytest in this process, which ends with it; an alarm ends it after `SECONDS`."""
    signal.alarm(SECONDS)
    os.dup2(printed, 1)
    os.dup2(printed, 2)
    os.chdir(tree)
    folders = [str(tree / folder) for folder in ("client", "server")]
    os.environ["PYTHONPATH"] = os.pathsep.join(folders)  # of what the tests start
    sys.path[:0] = folders
    code = pytest.main([*PYTEST, *tests])
    sys.stdout.flush()
    os._exit(code)


def verdict_on(mutant: Mutant, tree: Path) -> tuple[bool, str]:
    """Try one mutant in a copy, and put that in order again. Gives whether it was caught, and that in words."""
    path = tree / mutant.file
    source = path.read_text(encoding="utf-8")
    write(path, mutant.applied(source))
    try:
        code, told = run_tests(tree, mutant.tests)
    finally:
        write(path, source)
    if code == -signal.SIGALRM:
        return False, f"UNDECIDED after {SECONDS} seconds"
    if code == 0:
        return False, "SURVIVED"
    found = FAILED.search(told)
    if code != 1 or found is None:
        return False, f"BROKEN, as its tests cannot run:\n{told}"
    return True, f"caught by {found[1]}"


def own_copy(tree: Path, directory: Path) -> Path:
    """Return this process's copy of the tree, which is made when it is first asked for."""
    copy = directory / str(os.getpid())
    if not copy.exists():
        copy.mkdir()
        copy_of(tree, copy)
    return copy


def try_all(mutants: Sequence[Mutant], tree: Path, jobs: int) -> int:
    """Try mutants, so many at a time, and print a line for each; return the exit code."""
    equal = [each for each in mutants if each.equal]
    trying = [each for each in mutants if not each.equal]
    tests = sorted({test for each in trying for test in each.tests})
    if len(trying) > 1:  # for one alone it would take longer than it saves
        load_libraries()
    survived = 0
    with (
        TemporaryDirectory(prefix="mutants-") as directory,
        ProcessPoolExecutor(jobs, multiprocessing.get_context("fork")) as workers,
    ):
        here = partial(own_copy, tree, Path(directory))
        print(f"{len(tests)} tests without any mutant ...", flush=True)
        parts = [part for first in range(jobs) if (part := tests[first::jobs])]
        for code, told in workers.map(partial(_tested, here), parts):
            if code:
                print(told)
                return 2
        trials = {workers.submit(_tried, here, mutant): mutant for mutant in trying}
        for number, done in enumerate(as_completed(trials), 1):
            caught, words = done.result()
            survived += not caught
            mutant = trials[done]
            print(f"{number:>3}/{len(trying)} {mutant.name} ({mutant.file}): {words}", flush=True)
    for mutant in equal:
        print(f"equal   {mutant.name} ({mutant.file}): {mutant.equal}")
    print(f"{len(trying) - survived} of {len(trying)} caught, {survived} survived; {len(equal)} change nothing")
    return 1 if survived else 0


def _tested(copy: Callable[[], Path], tests: Sequence[str]) -> tuple[int, str]:
    return run_tests(copy(), tests)


def _tried(copy: Callable[[], Path], mutant: Mutant) -> tuple[bool, str]:
    return verdict_on(mutant, copy())


def table(mutants: Sequence[Mutant]) -> str:
    """Return the rows of the page: what breaks, where, who found it, and what catches it."""
    rows = ["| what is broken | where | from | caught by |", "|---|---|---|---|"]
    for each in mutants:
        files = dict.fromkeys(test.partition("[")[0].removeprefix("tests/") for test in each.tests)
        told = "<br>".join(f"`{name}`" for name in files) or f"equal: {each.equal}"
        rows.append(f"| {each.name} | `{each.file}` | {each.origin} | {told} |")
    return "\n".join(rows)


def totals(mutants: Sequence[Mutant]) -> str:
    """Return the rows of the page's other table: how many were noticed when first tried, and are now."""
    kinds = {
        "outsiders, survived": "outsiders, survived",
        "outsiders, undecided": "outsiders, undecided",
        "ourselves, in other places": "own, ",
        "together": "",
    }
    head = "| who thought of them | mutants | noticed before | noticed now | change nothing |"
    rows = [head, "|---|---|---|---|---|"]
    for kind, origin in kinds.items():
        those = [each for each in mutants if each.origin.startswith(origin)]
        before, equal = sum("caught" in each.origin for each in those), sum(bool(each.equal) for each in those)
        rows.append(f"| {kind} | {len(those)} | {before} | {len(those) - equal} | {equal} |")
    return "\n".join(rows)


def main() -> int:
    """Read the list, compare it with the tree, and try what was chosen."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tree", type=Path, default=ROOT, help="the tree to break a copy of")
    parser.add_argument("--only", default="", help="words of a name, a file or an origin")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="how many are tried at a time")
    parser.add_argument("--check", action="store_true", help="run no test")
    parser.add_argument("--table", action="store_true", help="print the page's two tables")
    arguments = parser.parse_args()
    mutants = [each for each in read_list(arguments.tree / LIST) if arguments.only in each.words]
    problems = [problem for each in mutants for problem in each.problems(arguments.tree)]
    faults = Counter((each.file, each.find, each.replace) for each in mutants)
    problems += [f"{fault[0]}: one fault is listed {count} times" for fault, count in faults.items() if count > 1]
    if not mutants:
        problems = [f"no mutant has the words {arguments.only!r}"]
    if problems:
        print("\n".join(problems), file=sys.stderr)
        return 2
    if arguments.table:
        print(totals(mutants), table(mutants), sep="\n\n")
    elif not arguments.check:
        return try_all(mutants, arguments.tree, arguments.jobs)
    return 0


if __name__ == "__main__":
    sys.exit(main())
