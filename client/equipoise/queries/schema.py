"""What the records of a table can be: attributes with categories or numeric bins, and their product.

The schema file is JSON with a version:

    {"version": 1, "attributes": [
      {"name": "carrier", "categories": ["AA", "UA"], "unknown": "other"},
      {"name": "dep_delay", "edges": [-60, 0, 15, 60], "clamp": true, "missing": "cancelled"},
      {"name": "departure", "edges": ["2013-01-01", "2013-04-01", "2013-07-01T12:00"]}
    ]}

Every value of a column must fall into exactly one category of its attribute, or the table is refused, unless a
rule says otherwise: `missing` names the category for missing values, `unknown` the one for labels that are not
listed and values outside the bins, `clamp` sends such values to the nearest bin. Both categories are added at the
end if they are not listed. Edges are numbers, or dates in ISO 8601. `"ordered": true` says that the order of the
categories means something, so that ranges may get less noise; it is the default with edges. `{"age": 10}` is short
for a column coded 0, 1, 2, ... `schema_file` reads further short forms, of labels and of edges.

`"codes": {"1": "aged under 18", "9": "missing"}` says which values of the table stand for which categories, where
these are called otherwise. Several may stand for one. People ask by the categories.

Where persons with few rows are filled up (`equipoise.model.persons`), every attribute has one more category, the
last one, which `none` names: that of records of nothing. No value falls into it, and no predicate counts them.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from equipoise.errors import InvalidArgument
from equipoise.queries.dates import date_text
from equipoise.queries.schema_checks import (
    MAX_CATEGORIES,
    bin_labels,
    check_codes,
    check_edges,
    check_keys,
    check_labels,
    check_text,
    read_codes,
    read_edges,
    read_list,
)
from equipoise.queries.strict_json import parse_json

VERSION = 1
MAX_ATTRIBUTES = 256
RULES = ("missing", "unknown", "none")  # each names a category


@dataclass(frozen=True)
class Attribute:
    """One column: its categories in order, and how its values reach them.

    With `edges`, the first `len(edges) - 1` categories are the bins `[edges[i], edges[i + 1])`, and only the
    `missing`, `unknown` and `none` categories may follow. `ordered` None: where it has edges. `dates`: the edges
    are dates, as whole seconds since 1970-01-01 00:00 UTC. `codes`: ascending pairs of a value of the table and the
    category that it stands for. Raises `InvalidArgument`.
    """

    name: str
    categories: tuple[str, ...]
    edges: tuple[float, ...] = ()
    missing: str = ""
    unknown: str = ""
    clamp: bool = False
    ordered: bool | None = None
    dates: bool = False
    none: str = ""
    codes: tuple[tuple[str, str], ...] = ()

    def __post_init__(self) -> None:
        check_text("name", self.name)
        check_labels(self.categories, self._positions)
        self._check_rules()
        check_codes(self.codes, {} if self.edges else self._positions, self.none)
        for flag, value in (("clamp", self.clamp), ("ordered", self.ordered is not None and self.ordered)):
            if not isinstance(value, bool):
                raise InvalidArgument(flag, "must be true or false")
        if (self.clamp or self.dates) and not self.edges:
            raise InvalidArgument("clamp" if self.clamp else "dates", "are for attributes with edges only")
        if self.clamp and self.unknown:
            raise InvalidArgument("clamp", "cannot stand beside unknown: both say where out-of-range values go")
        if self.edges:
            self._check_edges()

    def _check_rules(self) -> None:
        for rule in RULES:
            label = getattr(self, rule)
            if not isinstance(label, str) or (label and label not in self._positions):
                raise InvalidArgument(rule, f"{label!r} is not one of the categories")
        of_values = self.none in self.categories[:-1] or self.none in (self.missing, self.unknown)
        if self.none and (of_values or self.size == 1):
            raise InvalidArgument("none", "must be the last category of several, and that of no value")

    def _check_edges(self) -> None:
        check_edges(self.edges, self.dates)
        if len(self.categories) < self.bins:
            raise InvalidArgument("categories", f"are fewer than the {self.bins} bins")
        for label in self.categories[self.bins :]:
            if label not in (self.missing, self.unknown, self.none):
                raise InvalidArgument("categories", f"{label!r} follows the bins; only missing and unknown may")

    @property
    def size(self) -> int:
        """The number of categories."""
        return len(self.categories)

    @property
    def bins(self) -> int:
        """The number of numeric bins; 0 for a categorical attribute."""
        return max(0, len(self.edges) - 1)

    @property
    def is_ordered(self) -> bool:
        """Whether its order means something."""
        return bool(self.edges) if self.ordered is None else self.ordered

    def index(self, label: str) -> int:
        """Returns the position of a category. Raises `InvalidArgument`."""
        try:
            return self._positions[label]
        except (KeyError, TypeError):
            called = next((f"; it is called {named!r}" for code, named in self.codes if code == label), "")
            raise InvalidArgument(f"attribute {self.name}", f"has no category {label!r}{called}") from None

    @cached_property
    def _positions(self) -> dict[str, int]:
        return {label: i for i, label in enumerate(self.categories)}


@dataclass(frozen=True)
class Schema:
    """The attributes, in the order of the universe's axes (the last one varies fastest)."""

    attributes: tuple[Attribute, ...]

    def __post_init__(self) -> None:
        if not self.attributes:
            raise InvalidArgument("schema.attributes", "are empty")
        if len(self.attributes) > MAX_ATTRIBUTES:
            raise InvalidArgument("schema.attributes", f"are more than {MAX_ATTRIBUTES}")
        for i, each in enumerate(self.attributes):
            if each.name in self.names[:i]:
                raise InvalidArgument(f"schema.attributes[{i}].name", f"{each.name!r} is used twice")
            if bool(each.none) != self.padded:
                raise InvalidArgument(f"schema.attributes[{i}].none", "must be set for all attributes, or for none")

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The attributes' names."""
        return tuple(each.name for each in self.attributes)

    @property
    def sizes(self) -> tuple[int, ...]:
        """The attributes' numbers of categories."""
        return tuple(each.size for each in self.attributes)

    @property
    def ordered(self) -> tuple[int, ...]:
        """The places of attributes whose order means something, ascending."""
        return tuple(axis for axis, each in enumerate(self.attributes) if each.is_ordered)

    @property
    def universe_size(self) -> int:
        """The number of different records there can be."""
        return math.prod(self.sizes)

    @property
    def padded(self) -> bool:
        """Whether there may be records of nothing, which are in the last category of every attribute."""
        return bool(self.attributes[0].none)

    def attribute(self, name: str) -> Attribute:
        """Returns the attribute of that name. Raises `InvalidArgument`."""
        for each in self.attributes:
            if each.name == name:
                return each
        raise InvalidArgument("attribute", f"the schema has no attribute {name!r}")

    @classmethod
    def from_json(cls, text: str) -> Schema:
        """Reads a schema file. Raises `InvalidArgument`, naming for example `schema.attributes[2].edges`."""
        document = parse_json(text, "schema")
        if not isinstance(document, dict):
            raise InvalidArgument("schema", "must be a JSON object")
        if "version" not in document and "attributes" not in document:
            return cls(tuple(_coded(name, size) for name, size in document.items()))
        check_keys("schema", document, {"version", "attributes"})
        version = document.get("version")
        if isinstance(version, bool) or version != VERSION:
            raise InvalidArgument("schema.version", f"must be {VERSION}")
        attributes = document.get("attributes")
        if not isinstance(attributes, list):
            raise InvalidArgument("schema.attributes", "must be a list")
        return cls(tuple(_from_document(f"schema.attributes[{i}]", each) for i, each in enumerate(attributes)))

    def to_json(self) -> str:
        """Returns the schema file; `from_json` reads it back to an equal schema."""
        documents = [_to_document(each) for each in self.attributes]
        return json.dumps({"version": VERSION, "attributes": documents}, ensure_ascii=False, indent=2) + "\n"


def make_attribute(field: str, **values: Any) -> Attribute:
    """Returns an attribute whose errors are named below `field`, such as `schema.attributes[2].edges`."""
    try:
        return Attribute(**values)
    except InvalidArgument as error:
        raise InvalidArgument(f"{field}.{error.field}", error.problem) from None


def _from_document(field: str, document: object) -> Attribute:
    if not isinstance(document, dict):
        raise InvalidArgument(field, "must be a JSON object")
    check_keys(field, document, {"name", "categories", "edges", *RULES, "clamp", "ordered", "codes"})
    values, dates = read_edges(field, document)
    if "edges" not in document and "categories" not in document:
        raise InvalidArgument(field, "must have categories or edges")
    categories = read_list(field, document, "categories") or bin_labels(values, dates)
    rules = {rule: check_text(f"{field}.{rule}", document[rule]) for rule in RULES if rule in document}
    added = [label for label in dict.fromkeys(rules.values()) if categories and label not in categories]
    given = rules | {flag: document[flag] for flag in ("clamp", "ordered") if flag in document}
    name, labels = document.get("name", ""), (*categories, *added)
    codes = read_codes(field, document)
    return make_attribute(field, name=name, categories=labels, edges=values, dates=dates, codes=codes, **given)


def _to_document(attribute: Attribute) -> dict[str, object]:
    document: dict[str, object] = {"name": attribute.name}
    if attribute.edges:
        numbers = [int(e) if float(e).is_integer() else float(e) for e in attribute.edges]
        document["edges"] = [date_text(e) for e in numbers] if attribute.dates else numbers
    document["categories"] = list(attribute.categories)
    document |= {rule: getattr(attribute, rule) for rule in (*RULES, "clamp") if getattr(attribute, rule)}
    if attribute.ordered is not None:
        document["ordered"] = attribute.ordered
    if attribute.codes:
        document["codes"] = dict(attribute.codes)
    return document


def _coded(name: str, size: object) -> Attribute:
    field = f"schema.{name}"
    if isinstance(size, bool) or not isinstance(size, int) or not 1 <= size <= MAX_CATEGORIES:
        raise InvalidArgument(field, f"must be a number of categories from 1 to {MAX_CATEGORIES:,}")
    return make_attribute(field, name=name, categories=tuple(str(code) for code in range(size)))
