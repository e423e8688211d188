"""Counts the files that a change of some kind needs, by tracing an existing example of that kind.

    python tools/touched_files.py                     of this tree
    python tools/touched_files.py --revision REV      of a git revision
    python tools/touched_files.py --tree PATH         of another tree
    python tools/touched_files.py --files             lists the files as well
    python tools/touched_files.py --change BASE..HEAD the files that a change really touched, by kind

A file counts if its code names the example: in Python as an identifier, an imported module, or a string without
spaces (a key, an option, a column); in a proto as an identifier. Prose (docstrings, comments, messages, help) does
not count. Nor do tests, benchmarks and generated code. Pages that name it are counted apart.

This is an upper bound where a file merely uses what was added, and a lower one where a file lists what exists under
no name of its own. It is the same measure before and after. What a change really took is `--change`.
"""

from __future__ import annotations

import argparse
import ast
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from probes import PROBES, Example
from trees import KINDS, changed_files, files_of, kind_of, tree_at

COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
WORD = re.compile(r"[A-Za-z_][\w-]*")
NO_PROSE = re.compile(r"\S+")


@dataclass(frozen=True)
class Names:
    """All names in a file's code, and those of its signatures; strings stand in quotes besides."""

    everywhere: frozenset[str]
    signatures: frozenset[str]


def python_names(source: str) -> Names:
    """The names in a Python file, without prose."""
    tree = ast.parse(source)
    prose = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    everywhere: set[str] = set()
    signatures: set[str] = set()
    for node in ast.walk(tree):
        if id(node) not in prose:
            everywhere.update(_names(node))
        if isinstance(node, ast.arg | ast.AnnAssign):
            signatures.update(_signature(node))
    return Names(frozenset(everywhere), frozenset(signatures))


def _names(node: ast.AST) -> Iterator[str]:
    match node:
        case ast.Name(name) | ast.Attribute(attr=name):
            yield name
        case ast.FunctionDef(name) | ast.AsyncFunctionDef(name) | ast.ClassDef(name):
            yield name
        case ast.arg(name) | ast.keyword(str(name)):
            yield name
        case ast.ImportFrom(str(module), names):
            yield module
            for each in names:
                yield from (each.name, f"{module}.{each.name}")
        case ast.Import(names):
            yield from (each.name for each in names)
        case ast.Constant(str(text)) if NO_PROSE.fullmatch(text):
            for word in WORD.findall(text):
                yield from (word, f"'{word}'")
        case _:
            pass


def _signature(node: ast.arg | ast.AnnAssign) -> Iterator[str]:
    if isinstance(node, ast.arg):
        yield node.arg
    elif isinstance(node.target, ast.Name):
        yield node.target.id
    if node.annotation is not None:
        yield ast.unparse(node.annotation)


def text_names(source: str) -> Names:
    """The words of a proto, or of a page."""
    words = frozenset(WORD.findall(source))
    return Names(words | {f"'{word}'" for word in words}, frozenset())


def names_in(tree: Path) -> dict[str, tuple[str, Names]]:
    """Kind and names of every file of a tree."""
    found = {}
    for path, kind in files_of(tree):
        source = (tree / path).read_text(encoding="utf-8")
        if kind == "protos":
            source = COMMENT.sub("", source)
        found[path] = (kind, python_names(source) if kind == "code" else text_names(source))
    return found


def files_naming(example: Example, names: dict[str, tuple[str, Names]]) -> dict[str, list[str]]:
    """The files that name the example, by kind."""
    wanted = re.compile("|".join(example.names))
    found: dict[str, list[str]] = {"code": [], "protos": [], "docs": []}
    for path, (kind, known) in names.items():
        some = known.signatures if example.signatures else known.everywhere
        if any(wanted.fullmatch(name.replace("-", "_").lstrip("_")) or wanted.fullmatch(name) for name in some):
            found[kind].append(path)
    return found


def report(tree: Path, *, with_files: bool) -> None:
    """Print a line an example."""
    names = names_in(tree)
    print(f"{'what is added':28}{'traced by':46}{'files':>6}{'code':>6}{'protos':>8}{'(pages)':>9}{'wanted':>8}")
    for probe in PROBES:
        for example in probe.examples:
            found = files_naming(example, names)
            code, protos, docs = (len(found[kind]) for kind in ("code", "protos", "docs"))
            print(
                f"{probe.title:28}{example.title:46}{code + protos:>6}{code:>6}{protos:>8}{docs:>9}{probe.most:>8}"
            )
            if with_files:
                for path in (path for paths in found.values() for path in paths):
                    print(f"    {path}")


def report_change(change: str, *, with_files: bool) -> None:
    """Print how many files of each kind a change touched."""
    paths = changed_files(change)
    counts = Counter(kind_of(path) for path in paths)
    print(", ".join(f"{kind} {counts[kind]}" for kind in KINDS if counts[kind]) or "nothing")
    print(f"code and protos together: {counts['code'] + counts['protos']} files")
    if with_files:
        for kind in KINDS:
            for path in paths:
                if kind_of(path) == kind:
                    print(f"    {kind:10} {path}")


def main() -> None:
    """Count in a tree, or in a change."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--revision", help="a git revision of this repository")
    parser.add_argument("--tree", type=Path, help="the root of another tree")
    parser.add_argument("--change", help="two revisions, BASE..HEAD")
    parser.add_argument("--files", action="store_true", help="list the files")
    arguments = parser.parse_args()
    if arguments.change is not None:
        report_change(arguments.change, with_files=arguments.files)
        return
    with tree_at(arguments.revision, arguments.tree) as tree:
        report(tree, with_files=arguments.files)


if __name__ == "__main__":
    main()
