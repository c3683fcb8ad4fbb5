"""Merging by score: ties, byte fallback, spaces, and cuts that change no id."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from token_files import spm, tiny, tokenizer

from synapse_edu.errors import TokenizerProblem
from synapse_edu.tokenizer.spm import characters

BASE = ["<unk>", "<s>", "</s>"]
TYPES = [2, 3, 3]


def make(texts, scores, **keys):
    n = len(texts)
    return tokenizer(
        spm(BASE + texts, [0.0] * 3 + scores, TYPES + [1] * n, add_bos_token=False, **keys)
    )


def test_the_highest_score_goes_first_and_ties_go_left():
    tok = make(["a", "b", "ab", "ba"], [0, 0, -1, -1], add_space_prefix=False)
    assert tok.encode("aba") == [5, 3]
    tok = make(["a", "b", "ab", "ba"], [0, 0, -2, -1], add_space_prefix=False)
    assert tok.encode("aba") == [3, 6]


def test_a_space_is_put_in_front_and_again_after_a_special_token():
    tok = make(["a", "▁", "▁a"], [0, 0, 0])
    assert tok.encode("a") == [5] and tok.encode("") == []
    assert tok.encode(" a") == [4, 5]
    assert tok.encode("a</s>a", parse_special=True) == [5, 2, 5]


def test_bytes_stand_in_for_what_has_no_token():
    tok = make([f"<0x{b:02X}>" for b in range(256)] + ["a"], [0.0] * 257, add_space_prefix=False)
    assert tok.encode("é") == [3 + 0xC3, 3 + 0xA9]
    assert tok.encode(b"\xe2ab") == [3 + 0xE2, 3 + ord("a"), 3 + ord("b")]  # one symbol of three
    assert tok.newline_id == 3 + 10


def test_a_byte_without_token_is_named():
    with pytest.raises(TokenizerProblem, match="0x7A"):
        make(["a"], [0], add_space_prefix=False).encode("z")


def test_characters_are_cut_by_the_lead_byte():
    assert characters(b"\xf0\x9f\x80") == [b"\xf0\x9f\x80"]
    assert characters(b"\x80\xc3\xa9\nz") == [b"\x80", b"\xc3\xa9", b"\n", b"z"]


@pytest.mark.parametrize("name", ["spm", "spm-nopfx", "spm-phi3"])
@given(data=st.data())
def test_cutting_first_changes_no_id(name, data):
    tok = tiny(name)
    texts = st.sampled_from(tok.vocabulary.tokens) | st.binary(max_size=4)
    raw = b"".join(data.draw(st.lists(texts, max_size=12)))
    escaped = tok.encoder.escape(raw, True)
    pieces = tok.encoder.pieces(escaped)
    assert b"".join(pieces) == escaped
    whole = list(tok.encoder.encode_piece(escaped))
    assert [i for piece in pieces for i in tok.encoder.encode_piece(piece)] == whole
    assert tok.encoder.encode(raw, True) == whole
