"""Lists the functions of public name whose docstrings leave out what they take, or which errors they raise.

python tools/undescribed.py            of this tree
python tools/undescribed.py FOLDER     of one folder of it
python tools/undescribed.py --tree PATH    of another tree

Functions are those of modules, and the methods of the clients. A number, a text, an array or a collection tells by
its type neither its unit nor its shape nor what it is of. The docstring of a function that takes two of them or
more names each: in a sentence, in backticks, or in `Args:`. What has a class of its own may be left out, and so may
what is an option of the command line, which has its help. Where there are `Args:`, they follow the signature, and
the docstring names the errors that the function raises itself.
"""

from __future__ import annotations

import argparse
import ast
import re
from collections.abc import Iterator
from pathlib import Path

from trees import ROOT, files_of

CLIENTS = "client/equipoise/clients/"  # whose methods are the interface for programs
MANY = 2  # parameters of types that do not say what they are, from which on each is described
SILENT = re.compile(
    r"\b(int|float|str|bytes|bool|Fraction|NDArray|Floats|Ints|Bools|list|dict|set|frozenset|tuple|"
    r"Sequence|Mapping|Iterable|Iterator|Collection|Callable)\b"
)
ARGS = re.compile(r"^( *)Args:\n((?:\1 +.*\n|\n)*)", re.MULTILINE)
Function = ast.FunctionDef | ast.AsyncFunctionDef


def main() -> None:
    """Print one line a function that leaves something out, and how many there are."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", default="", help="a folder, from the root of the tree")
    parser.add_argument("--tree", type=Path, default=ROOT, help="the root of another tree")
    arguments = parser.parse_args()
    faults = [fault for fault in undescribed(arguments.tree) if fault.startswith(arguments.folder)]
    print(*faults, f"{len(faults)} functions", sep="\n")


def undescribed(tree: Path) -> Iterator[str]:
    """Where a docstring leaves something out, and what, one line a function."""
    for path, kind in files_of(tree):
        if kind == "code":
            module = ast.parse((tree / path).read_text(encoding="utf-8"))
            for name, function in public_functions(module, methods=path.startswith(CLIENTS)):
                fault = fault_of(function, option_types(module))
                if fault:
                    yield f"{path}:{function.lineno} {name}: {fault}"


def public_functions(module: ast.Module, *, methods: bool) -> Iterator[tuple[str, Function]]:
    """The functions of public name by their names; with `methods` also those of classes of public name."""
    for node in module.body:
        if isinstance(node, Function) and not node.name.startswith("_"):
            yield node.name, node
        if methods and isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
            for method in node.body:
                if isinstance(method, Function) and not method.name.startswith("_"):
                    yield f"{node.name}.{method.name}", method


def option_types(module: ast.Module) -> set[str]:
    """The names that stand for options of the command line: from a module of options, or annotated here."""
    names = set()
    for node in module.body:
        if isinstance(node, ast.ImportFrom) and (node.module or "").endswith("options"):
            names |= {alias.asname or alias.name for alias in node.names}
        if isinstance(node, ast.Assign) and ast.unparse(node.value).startswith("Annotated["):
            names |= {ast.unparse(target) for target in node.targets}
    return names


def fault_of(function: Function, options: set[str]) -> str:
    """What a function's docstring leaves out; empty if nothing."""
    arguments = function.args
    parameters = [*arguments.posonlyargs, *arguments.args, arguments.vararg, *arguments.kwonlyargs, arguments.kwarg]
    names = [each.arg for each in parameters if each]
    silent = [each.arg for each in parameters if each and _is_silent(each.annotation, options)]
    text = (ast.get_docstring(function) or "") + "\n"
    section = ARGS.search(text)
    if section is None:
        unnamed = [name for name in silent if f"`{name}`" not in text]
        return f"does not say what {', '.join(unnamed)} are" if unnamed and len(silent) >= MANY else ""
    described = re.findall(rf"^{section[1]}    \*{{0,2}}(\w+):", section[2], re.MULTILINE)
    if described != [name for name in names if name in described or name in silent]:
        return f"Args: says {', '.join(described)}, the signature {', '.join(names)}"
    unnamed = sorted(raised_errors(function) - set(re.findall(r"\w+", text)))
    return f"says nothing of {', '.join(unnamed)}" if unnamed else ""


def _is_silent(annotation: ast.expr | None, options: set[str]) -> bool:
    kind = "" if annotation is None else ast.unparse(annotation)
    return not kind.startswith("Annotated[") and kind not in options and SILENT.search(kind) is not None


def raised_errors(function: Function) -> set[str]:
    """The names of the errors that a function raises by itself, but those that only a fault of this code raises."""
    raised = set()
    for node in ast.walk(function):
        match node:
            case ast.Raise(exc=ast.Call(func=ast.Name(id=name))) if name[0].isupper():
                raised.add(name)
    return raised - {"AssertionError", "NotImplementedError"}


if __name__ == "__main__":
    main()
