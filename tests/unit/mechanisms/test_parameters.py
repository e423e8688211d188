"""Parameters of mechanisms with two kinds of plans are told apart by their keys."""

from __future__ import annotations

import pytest

from equipoise.errors import VerificationFailed
from equipoise.records.codec import COUNT, TEXT, canonical_object, key
from equipoise_server.mechanisms.parameters import Parameters, read_either


@canonical_object
class Plain(Parameters):
    count: int = key("count", COUNT)


@canonical_object
class Named(Parameters):
    count: int = key("count", COUNT)
    name: str = key("name", TEXT)


def test_each_kind_is_read_as_itself() -> None:
    for written in (Plain(3), Named(3, "of"), Named(3, '"count"')):
        assert read_either(written.to_json(), Plain, Named) == written
        assert read_either(written.to_json(), Named, Plain) == written


@pytest.mark.parametrize("text", ['{"name":"of"}', "{}", "[]", '"count"', '{"count":3,"more":1}'])
def test_what_has_the_keys_of_neither_is_refused(text: str) -> None:
    with pytest.raises(VerificationFailed, match="has the keys of no parameters"):
        read_either(text, Plain, Named)


@pytest.mark.parametrize("text", ['{"count":-3}', '{"count": 3}', '{"count":3', "\ud800"])
def test_what_is_not_written_in_the_one_form_is_refused(text: str) -> None:
    with pytest.raises(VerificationFailed):
        read_either(text, Plain, Named)
