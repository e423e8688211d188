"""The pages that list what the code has: every limit, refusal, method's policy, and kind of statement."""

from __future__ import annotations

from pathlib import Path

from annotated_types import Ge, Le
from pydantic.fields import FieldInfo

from equipoise.errors import BY_REASON
from equipoise.queries.statements import KINDS, LinearKind
from equipoise.records.record import Kind
from equipoise.records.record_layouts import ITEMS, NAMES
from equipoise_server.config import Config
from equipoise_server.identity.policy import POLICY

DOCS = Path(__file__).parents[2] / "docs"


def rows(page: str, first: str) -> list[str]:
    """The rows of the page's table whose first column has this head."""
    lines = (DOCS / page).read_text(encoding="utf-8").splitlines()
    begin = next(number for number, line in enumerate(lines) if line.startswith(f"| {first} |")) + 2
    end = next((number for number in range(begin, len(lines)) if not lines[number].startswith("|")), len(lines))
    return lines[begin:end]


def limit(name: str, field: FieldInfo) -> str:
    """A field as the page lists it."""
    low = next((each.ge for each in field.metadata if isinstance(each, Ge)), "")
    high = next((each.le for each in field.metadata if isinstance(each, Le)), "")
    allowed = f"{low:,} to {high:,}" if field.metadata else ""
    default = (
        "" if field.is_required() else f"{field.default:,}" if field.annotation is int else f"`{field.default}`"
    )
    return f"| `{name}` | {default} | {allowed} | {field.description} |"


def test_every_setting_is_in_the_page_of_limits_as_it_is() -> None:
    listed, expected = rows("limits.md", "setting"), [limit(*each) for each in Config.model_fields.items()]
    missing = [row for row in expected if row not in listed]
    assert not missing, "docs/limits.md needs these rows, in the order of the settings:\n" + "\n".join(missing)
    assert listed == expected


def test_every_refusal_is_in_the_page_of_errors_as_it_is() -> None:
    listed = [
        f"| `{reason}` | `{kind.status}` | `{kind.__name__}` | {kind.advice} |"
        for reason, kind in BY_REASON.items()
    ]
    assert rows("errors.md", "reason") == listed


def test_every_item_and_kind_of_record_is_in_the_page_of_formats() -> None:
    described = [row.strip("| ").split(" | ") for row in rows("formats.md", "item")]
    names = {item.strip("`"): [field.strip("`") for field in fields.split(", ")] for item, _, fields in described}
    assert names == {NAMES[cls]: list(codec.keys) for cls, codec in ITEMS.items()}
    kinds = [kind for row in rows("formats.md", "kind") for kind in row.split(" | ")[0].strip("| ").split(", ")]
    assert sorted(kinds) == sorted(f"`{kind}`" for kind in Kind)


def test_every_recorded_event_is_in_the_page_of_monitoring() -> None:
    events = [f"| `{row.event}` | `{method.rpartition('/')[2]}` |" for method, row in POLICY.items() if row.event]
    assert rows("monitoring.md", "event") == events


def test_every_form_of_a_statement_is_in_the_page_of_its_kind() -> None:
    for kind in KINDS:
        page = DOCS / ("statements.md" if isinstance(kind, LinearKind) else "statistics.md")
        described = page.read_text(encoding="utf-8")
        assert [form.key for form in kind.forms.values() if f'{{"{form.key}": ' not in described] == []
