"""The documentation's first page leads everybody to what they came for, in two clicks at most."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"
# Pages whose text lies elsewhere, as docs/conf.py has them.
ELSEWHERE = {"security.md": "SECURITY.md", "runbook.md": "deploy/RUNBOOK.md", "deployment.md": "deploy/README.md"}


def clicks(page: str) -> set[str]:
    """The pages that a page links to, from the root of the site."""
    text = (DOCS / page).read_text(encoding="utf-8")
    listed = [
        f"{each}.md" for block in re.findall(r"```{toctree}(.*?)```", text, re.DOTALL) for each in block.split()
    ]
    linked = re.findall(r"\]\(([\w./-]+\.md)(?:#[^)]*)?\)", text)
    return {
        target.relative_to(DOCS).as_posix()
        for each in (*linked, *listed)
        if (target := (DOCS / page).parent.joinpath(each).resolve()).is_relative_to(DOCS) and target.exists()
    }


FIRST = clicks("index.md")


@pytest.mark.parametrize(
    ("page", "words"),
    [
        ("tutorials/analyst.md", "equipoise sql"),
        ("tutorials/operator.md", "equipoise operator round open"),
        ("tutorials/auditor.md", "equipoise audit verify"),
        ("security.md", "vulnerability"),
    ],
)
def test_two_clicks_lead_to(page: str, words: str) -> None:
    assert page in FIRST or any(page in clicks(each) for each in FIRST)
    place = DOCS.parent / ELSEWHERE[page] if page in ELSEWHERE else DOCS / page
    assert words in place.read_text(encoding="utf-8")


def test_every_stub_says_where_its_text_is() -> None:
    for page, text in ELSEWHERE.items():
        assert text in (DOCS / page).read_text(encoding="utf-8")
        assert (DOCS.parent / text).is_file()
