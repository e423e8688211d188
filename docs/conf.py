"""How the documentation becomes a site: `make docs`."""

from __future__ import annotations

import inspect
import logging
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer.main
from docutils.nodes import Element
from sphinx.addnodes import pending_xref
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment

import equipoise
import equipoise.cli
import equipoise.errors
import equipoise_server.cli

ROOT = Path(__file__).parents[1]

# Sphinx turns on what others have to say, too.
logging.getLogger("alembic").setLevel(logging.WARNING)

project = "Equipoise"
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
# Docstrings put names of code between single backticks.
default_role = "code"
autodoc_member_order = "bysource"
autodoc_typehints_format = "short"
napoleon_use_ivar = True
# Other packages have no page here, as a site is built without a network.
nitpick_ignore_regex = [
    ("py:.*", rf"{package}\..*") for package in ("collections", "datetime", "numpy", "pathlib", "pyarrow")
]
# Nor have these, which nobody has to make or to look into.
INTERNAL = (
    "clients.connection.Connection",
    "local.client.LocalClient",
    "profile.receipt_store.ReceiptStore",
    "queries.box_terms.Terms",
    "queries.box_terms.Vectors",
    "queries.marginals.MarginalRange",
    "queries.marginals.Marginals",
    "queries.numeric_values.NumericValues",
    "queries.predicates.AttributeName",
    "queries.restricted_tables.RestrictedTables",
    "questions.aggregates.Aggregate",
    "questions.builder.Table",
    "questions.question.Question",
    "records.admitted_losses.AdmittedLosses",
    "records.evidence.Evidence",
    "results.Labels",
)
nitpick_ignore = [("py:class", f"equipoise.{name}") for name in INTERNAL]
# What methods take and give, by the modules that have it.
GIVEN = {
    "equipoise.frames": ("Frame",),
    "equipoise.model.rounds": ("Round", "RoundDetail", "Plan", "Progress", "Grant", "Ending"),
    "equipoise.model.plan_choices": ("PlanChoice", "PlanCandidate", "Forecast"),
    "equipoise.model.submissions": ("DryRun", "Receipt", "Withdrawal"),
    "equipoise.model.results": ("Answers", "ResultColumns"),
    "equipoise.model.synopsis": ("Synopsis", "SynopsisPart"),
    "equipoise.queries.grant_costs": ("GrantCosts", "StatementCost"),
    "equipoise.queries.grant_price": ("AskedTable",),
    "equipoise.model.own_world": ("OwnDataset", "MeasuredTable", "SpentStatement", "GrantRequest", "RequestState"),
    "equipoise.model.datasets": (
        "Dataset",
        "DatasetState",
        "DatasetVersion",
        "DatasetStanding",
        "DatasetHistory",
        "DatasetCharge",
    ),
    "equipoise.model.accounts": ("Account", "AccountCharge", "JournalEntry", "Danger"),
    "equipoise.model.calendar": ("RoundSchedule", "Period"),
    "equipoise.model.identities": ("Caller", "Identity", "Role"),
    "equipoise.profile.enrolment": ("Bundle",),
    "equipoise.records.bundle": ("Bundle",),
    "equipoise.model.persons": ("Persons", "PersonMode"),
    "equipoise.accounting.cost": ("Cost",),
    "equipoise.model.log": ("RecordOpening", "ItemOpening", "SealedSeed"),
}
html_theme = "furo"
html_title = "Equipoise"
html_copy_source = False
myst_heading_anchors = 4
myst_enable_extensions = ["dollarmath"]
nitpicky = True

# Pages that lie beside what they are about, by their names in the site.
ELSEWHERE = {
    "runbook": "deploy/RUNBOOK.md",
    "deployment": "deploy/README.md",
    "security": "SECURITY.md",
    "contributing": "CONTRIBUTING.md",
}
NAMES = {file: name for name, file in ELSEWHERE.items()}
ERRORS = [
    name for name, each in vars(equipoise.errors).items() if inspect.isclass(each) and issubclass(each, Exception)
]
# Bases whose members need no description here.
_NOT_OURS = "str, int, float, tuple, dict, object, BaseException, Exception, Enum, StrEnum"
_LINK = re.compile(r"\[(?P<text>[^\]]+)\]\((?P<target>[\w./-]+)(?P<place>#[^)\s]*)?\)")


def site_source(_: Sphinx, name: str, source: list[str]) -> None:
    """Bring pages from elsewhere, and lead links out of this folder to the site's page, or name the file."""
    file = ROOT / ELSEWHERE.get(name, f"docs/{name}.md")
    if name in ELSEWHERE:
        source[0] = file.read_text(encoding="utf-8")
    if name in WRITTEN:
        source[0] = "".join(WRITTEN[name]())
        return
    up = "../" * name.count("/")

    def led(link: re.Match[str]) -> str:
        target = Path(os.path.normpath(file.parent / link["target"]))
        if not target.exists():
            raise ValueError(f"{file}: {link['target']} is a dead link")
        inside = target.relative_to(ROOT).as_posix()
        page = f"docs/{NAMES[inside]}.md" if inside in NAMES else inside
        if page.startswith("docs/") and page.endswith((".md", ".svg")):
            return f"[{link['text']}]({up}{page.removeprefix('docs/')}{link['place'] or ''})"
        return f"`{inside}`" if link["text"].strip("`") in inside else f"{link['text']} (`{inside}`)"

    source[0] = _LINK.sub(led, source[0])


def commands_page() -> Iterator[str]:
    """Yield the page of all commands, from their own help."""
    yield "# Commands\n\nThe help of every command, as `--help` prints it.\n"
    for program, app in (("equipoise", equipoise.cli.app), ("equipoise-server", equipoise_server.cli.app)):
        yield from _described(program, typer.main.get_command(app), 2)


def _described(name: str, command: Any, level: int) -> Iterator[str]:
    yield f"\n{'#' * level} {name}\n\n```text\n{(command.help or '').strip()}\n```\n"
    if hasattr(command, "commands"):
        for each in command.commands:
            _, below, _ = command.resolve_command(typer.Context(command), [each])
            yield from _described(f"{name} {each}", below, min(level + 1, 4))
        return
    yield "\n| option | |\n|---|---|\n"
    for parameter in command.params:
        said = ", ".join(f"`{each}`" for each in parameter.opts) if parameter.param_type_name == "option" else ""
        said = said or f"`{parameter.name}`"
        told = " ".join((getattr(parameter, "help", "") or "").split())
        yield f"| {said} | {told.replace('|', chr(92) + '|').replace('<', '&lt;').replace('[', chr(92) + '[')} |\n"


def python_page() -> Iterator[str]:
    """Yield the page of all public names, from their own descriptions."""
    yield "# Python\n\nWhat `from equipoise import ...` offers. Everything else may change without notice.\n"
    for title, of_kind in (("Classes", inspect.isclass), ("Functions", inspect.isfunction), ("Types", _is_other)):
        yield f"\n## {title}\n\n"
        for name in filter(lambda each: of_kind(getattr(equipoise, each)), equipoise.__all__):
            yield f"### {name}\n\n```{{eval-rst}}\n"
            if inspect.isclass(getattr(equipoise, name)):
                yield f".. autoclass:: equipoise.{name}\n   :members:\n   :inherited-members: {_NOT_OURS}\n"
            elif inspect.isfunction(getattr(equipoise, name)):
                yield f".. autofunction:: equipoise.{name}\n"
            else:
                yield f".. autodata:: equipoise.{name}\n   :no-value:\n"
            yield "```\n\n"
    yield "\n## What methods take and give\n\n"
    for module, names in GIVEN.items():
        for name in names:
            yield f"### {module}.{name}\n\n```{{eval-rst}}\n.. autoclass:: {module}.{name}\n   :members:\n```\n\n"
    yield "\n## Errors\n\nOf `equipoise.errors`; [errors.md](errors.md) says when each is raised.\n\n"
    for name in ERRORS:
        yield f"```{{eval-rst}}\n.. autoexception:: equipoise.errors.{name}\n```\n\n"


def _is_other(found: object) -> bool:
    return not inspect.isclass(found) and not inspect.isfunction(found)


def error_of(app: Sphinx, env: BuildEnvironment, node: pending_xref, shown: Element) -> Element | None:
    """Find an error that a docstring names without its module."""
    if node["reftype"] != "exc" or node["reftarget"] not in ERRORS:
        return None
    target = f"equipoise.errors.{node['reftarget']}"
    return env.domains["py"].resolve_xref(env, node["refdoc"], app.builder, "exc", target, node, shown)


# Pages that are written here, from what the programs say of themselves.
WRITTEN = {"commands": commands_page, "python": python_page}


def setup(app: Sphinx) -> None:
    """Register what this page adds to Sphinx."""
    app.connect("source-read", site_source)
    app.connect("missing-reference", error_of)
