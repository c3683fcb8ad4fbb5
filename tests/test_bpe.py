"""Merging by rank: order, inversions, fallbacks, whole words, and no quadratic time."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from token_files import bpe, tokenizer

from synapse_edu.tokenizer import bpe as module
from synapse_edu.tokenizer.merging import merge


def slow_merge(symbols, ranks, glue):
    """The definition: again and again, the lowest rank, then the leftmost pair."""
    symbols = list(symbols)
    while True:
        pairs = [
            (ranks[a + glue + b], i)
            for i, (a, b) in enumerate(zip(symbols, symbols[1:], strict=False))
            if a + glue + b in ranks
        ]
        if not pairs:
            return symbols
        _, i = min(pairs)
        symbols[i : i + 2] = [symbols[i] + symbols[i + 1]]


SYMBOLS = st.sampled_from([b"a", b"b", b"c"])


@given(
    st.lists(SYMBOLS, max_size=30),
    st.lists(st.tuples(*[st.lists(SYMBOLS, min_size=1, max_size=3)] * 2), max_size=25),
    st.sampled_from([b"", b" "]),
)
def test_the_heap_agrees_with_the_definition(symbols, pairs, glue):
    ranks = {}
    for left, right in pairs:
        ranks.setdefault(b"".join(left) + glue + b"".join(right), len(ranks) % 7)
    log = []
    merged = merge(symbols, ranks, glue, log)
    assert merged == slow_merge(symbols, ranks, glue) and len(log) == len(symbols) - len(merged)


def test_a_new_pair_of_lower_rank_goes_next():
    """GPT-2's "all occurrences of a pair first" would give ab, ab."""
    merges = ["ab a", "a b"]
    tok = tokenizer(bpe(["a", "b", "c", "ab", "aba"], merges, pre="gpt-2"))
    assert tok.encode("abab") == [4, 1]


def test_a_symbol_without_token_falls_back_to_its_bytes():
    tok = tokenizer(bpe(["x", "y"], ["Ġ x", "x y"]))
    assert tok.encode(" x") == [0]  # "Ġx" is no token; its two first bytes have none either
    assert tok.encode("xy") == [0, 1]
    assert tok.encode("é") == []


def test_a_word_that_is_a_token_is_taken_whole_only_where_merges_are_ignored():
    tokens = ["a", "b", "ab", "<s>"]
    whole = bpe(tokens, pre="llama-bpe", add_bos_token=False)
    assert tokenizer(whole).encode("ab") == [2]
    assert tokenizer(bpe(tokens, pre="qwen2")).encode("ab") == [0, 1]


def test_the_cache_is_bounded(monkeypatch):
    monkeypatch.setattr(module, "CACHE_WORDS", 50)
    tok = tokenizer(bpe(["a", "b", "Ġ"]))
    words = [f"{'a' * (i % 30)}b{'a' * (i // 30)}" for i in range(300)]
    random.Random(1).shuffle(words)
    for i in range(0, 300, 20):
        tok.encode(" ".join(words[i : i + 20]))
        assert len(tok.encoder._cache) <= 50
    tok.encode("b" * 1000)
    assert all(len(word) <= module.CACHE_LENGTH for word in tok.encoder._cache)


@pytest.mark.parametrize("text", ["A" * 100_000, " " * 20_000 + "x", "ab " * 30_000])
def test_time_grows_with_the_text_and_not_with_its_square(text):
    """Counted, not timed: the loop asks for a rank at most a few times a symbol."""

    class Counting(dict):
        asked = 0

        def get(self, key):
            Counting.asked += 1
            return super().get(key)

    runs = ["A", "AA", "AAAA", "Ġ", "ĠĠ", "ĠĠĠĠ", "x", "a", "b"]
    tok = tokenizer(bpe(runs, ["A A", "AA AA", "Ġ Ġ", "ĠĠ ĠĠ"], pre="gpt-2"))
    tok.encoder.ranks = Counting(tok.encoder.ranks)
    assert tok.decode_bytes(tok.encode(text)).decode() == text
    assert Counting.asked < 4 * len(text)
