from __future__ import annotations

import doctest
import hashlib
from itertools import product
from types import ModuleType

import numpy as np
import pytest
from harness.examples import examples
from harness.random_references import ScriptedStream, chacha20_block, hkdf_32
from hypothesis import given, settings
from hypothesis import strategies as st

from equipoise_server.randomness import exponential, stream
from equipoise_server.randomness.stream import KeyedStream

SEED = bytes(range(32))
TOP = 2**64 - 1
# Fixed for ever: a replay of an old round reads the same bits on every machine.
KNOWN_WORDS = [8660922290112069845, 13976396986868572453, 15958364824024810211]
KNOWN_DIGEST = "2dabac8d30776f8846a0525ecc3fc57d44cf5955f165fe5ab6fb449526604ec5"
KNOWN_BELOW = 538202551445005508023926604520237363634
KNOWN_PERMUTATION = [7, 2, 10, 3, 4, 11, 9, 6, 8, 0, 1, 5]


def expected_words(seed: bytes, labels: tuple[str, ...], count: int) -> list[int]:
    info = b"equipoise keyed stream 1" + len(labels).to_bytes(4, "big")
    for label in labels:
        info += len(label.encode()).to_bytes(4, "big") + label.encode()
    key = hkdf_32(seed, info)
    blocks = b"".join(chacha20_block(key, block, bytes(12)) for block in range(-(-count // 8)))
    return [int.from_bytes(blocks[8 * i : 8 * i + 8], "little") for i in range(count)]


def test_the_reference_is_rfc_8439_chacha20() -> None:
    # Section 2.3.2 of the RFC.
    block = chacha20_block(SEED, 1, bytes.fromhex("000000090000004a00000000"))
    assert block.hex().startswith("10f1e7e4d13b5915500fdd1fa32071c4")
    assert block.hex().endswith("b5129cd1de164eb9cbd083e8a2503c4e")


@pytest.mark.parametrize("labels", [(), ("",), ("game/records",), ("repair/answers", "Ünïcode ✈"), ("a", "b", "c")])
def test_words_are_hkdf_and_chacha20(labels: tuple[str, ...]) -> None:
    assert KeyedStream.derive(SEED, *labels).words(100).tolist() == expected_words(SEED, labels, 100)


@pytest.mark.parametrize("module", [exponential, stream])
def test_documented_examples_are_true(module: ModuleType) -> None:
    result = doctest.testmod(module)
    assert (result.attempted > 0, result.failed) == (True, 0)


@pytest.mark.slow
def test_known_answers() -> None:
    stream = KeyedStream.derive(SEED, "known answers")
    assert stream.words(3).tolist() == KNOWN_WORDS
    assert hashlib.sha256(stream.words(5_000_003).astype("<u8").tobytes()).hexdigest() == KNOWN_DIGEST
    assert stream.below(10**40) == KNOWN_BELOW
    assert stream.permutation(12).tolist() == KNOWN_PERMUTATION


@given(st.lists(st.integers(0, 70), max_size=12))
@settings(max_examples=examples(50), deadline=None)
def test_any_cutting_gives_the_same_words(cuts: list[int]) -> None:
    whole = KeyedStream.derive(SEED, "cut").words(sum(cuts))
    stream = KeyedStream.derive(SEED, "cut")
    parts = [stream.words(cut) for cut in cuts]
    assert np.array_equal(np.concatenate([np.empty(0, np.uint64), *parts]), whole)


def test_no_two_lists_of_labels_share_a_stream() -> None:
    lists = [(), ("",), ("", ""), ("ab", "c"), ("a", "bc"), ("abc",), ("c", "ab"), ("a\x00", "bc"), ("a", "\x00bc")]
    firsts = {KeyedStream.derive(seed, *labels).words(1)[0] for labels in lists for seed in (SEED, SEED[::-1])}
    assert len(firsts) == 2 * len(lists)


def test_bad_arguments_are_refused() -> None:
    with pytest.raises(ValueError, match="16 bytes"):
        KeyedStream.derive(b"short", "x")
    stream = KeyedStream.derive(SEED, "bad")
    for call in (stream.words, stream.permutation):
        with pytest.raises(ValueError, match="negative"):
            call(-1)
    with pytest.raises(ValueError, match="below 1"):
        stream.below(0)
    with pytest.raises(ValueError, match="below 1"):
        stream.below_each(np.array([3, 0], dtype=np.uint64))
    with pytest.raises(OverflowError, match="used up"):
        stream.words(2**35 + 1)


def test_nothing_is_read_where_nothing_is_random() -> None:
    stream = ScriptedStream([])
    assert stream.below(1) == 0
    assert stream.words(0).size == 0
    assert stream.permutation(1).tolist() == [0]
    assert stream.permutation(0).tolist() == []
    assert stream.read == 0


def test_below_keeps_the_low_bits_and_reads_again_beyond_the_bound() -> None:
    assert [ScriptedStream([8 + v]).below(5) for v in range(5)] == [0, 1, 2, 3, 4]
    stream = ScriptedStream([5, 6, 7 + 8, 3 + 16])
    assert stream.below(5) == 3
    assert stream.read == 4
    assert ScriptedStream([7, 9]).below(1 << 128) == 7 + (9 << 64)
    assert ScriptedStream([7, 9, 1, 3]).below((1 << 64) + 2) == 1 + (1 << 64)


def test_below_each_reads_the_incomplete_run_again() -> None:
    bounds = [1, 3, 5, 1 << 63, 6, TOP]
    for bound in bounds:
        runs = 2**64 // bound
        for word in {0, bound - 1, runs * bound - 1, runs * bound, TOP}:
            if word > TOP:
                continue
            drawn = ScriptedStream([word, 0]).below_each(np.array([bound], dtype=np.uint64))
            assert drawn.tolist() == [word % bound if word < runs * bound else 0]
    stream = ScriptedStream([TOP, 4, TOP - 1, TOP, 2, 1])
    assert stream.below_each(np.array([3, 3, 6], dtype=np.uint64)).tolist() == [1, 1, 2]
    assert stream.read == 6


def test_below_each_takes_every_residue_from_equally_many_words() -> None:
    # With 2^64 words none can be listed; the count of kept words is a multiple of the bound, and that is all.
    for bound in (3, 7, 10, 2**40 + 1, 2**63 + 1):
        largest_kept = (2**64 // bound) * bound - 1
        kept = ScriptedStream([largest_kept]).below_each(np.array([bound], dtype=np.uint64))
        assert kept.tolist() == [bound - 1]
        if largest_kept < TOP:
            stream = ScriptedStream([largest_kept + 1, 0])
            assert stream.below_each(np.array([bound], dtype=np.uint64)).tolist() == [0]
            assert stream.read == 2


@pytest.mark.parametrize("size", [2, 3, 4, 5])
def test_every_permutation_comes_from_exactly_one_list_of_choices(size: int) -> None:
    choices = list(product(*(range(bound) for bound in range(size, 1, -1))))
    orders = {tuple(ScriptedStream(list(words)).permutation(size).tolist()) for words in choices}
    assert len(orders) == len(choices)
    assert all(sorted(order) == list(range(size)) for order in orders)
