"""Schemas as hypothesis draws them."""

from __future__ import annotations

from hypothesis import strategies as st

from equipoise.queries.schema import Attribute, Schema
from equipoise.queries.schema_checks import bin_labels

names = st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=8)


@st.composite
def attributes(draw: st.DrawFn, name: str) -> Attribute:
    extra = draw(st.lists(st.sampled_from(["missing", "unknown"]), unique=True))
    missing, unknown = ("missing" * ("missing" in extra), "unknown" * ("unknown" in extra))
    if draw(st.booleans()):
        labels = draw(st.lists(names, min_size=1, max_size=5, unique=True))
        named = draw(st.dictionaries(names.map("code {}".format), st.sampled_from(labels), max_size=3))
        codes = tuple(sorted(named.items()))
        listed = (*labels, *(r for r in extra if r not in labels))
        return Attribute(name, listed, (), missing, unknown, codes=codes)
    dates = draw(st.booleans())
    numbers = st.integers(-(10**10), 10**11) if dates else st.floats(-1e9, 1e9)
    values = draw(st.lists(numbers, min_size=2, max_size=5, unique=True))
    edges = tuple(sorted(float(value) for value in values))
    clamp = not unknown and draw(st.booleans())
    bins = bin_labels(edges, dates)
    return Attribute(name, (*bins, *extra), edges, missing, unknown, clamp, dates=dates)


schemas = st.lists(names, min_size=1, max_size=4, unique=True).flatmap(
    lambda some: st.tuples(*(attributes(name) for name in some)).map(Schema)
)
