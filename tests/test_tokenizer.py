"""Text → ids → text: arguments, notes, special tokens, pieces, streams."""

import codecs
import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from shared_data import CASES, TOKENS, needs_shared
from token_files import TINY, bpe, spm, tiny, tokenizer

from synapse_edu.errors import BadArgument, TokenizerProblem
from synapse_edu.tokenizer.alphabet import CHARACTERS, from_alphabet, to_alphabet
from synapse_edu.tokenizer.attributes import CONTROL, LSTRIP, RSTRIP
from synapse_edu.tokenizer.pieces import clean_spaces
from synapse_edu.tokenizer.special import partition
from synapse_edu.tokenizer.tokenizer import Tokenizer
from synapse_edu.tokenizer.utf8 import code_point_ends, decode_lenient
from synapse_edu.tokenizer.vocabulary import Vocabulary


# --- arguments ---------------------------------------------------------------------------------
@pytest.mark.parametrize("name", TINY)
def test_text_and_its_bytes_give_the_same_ids(name):
    text = "Việt 12 👍🏽\n"
    assert tiny(name).encode(text) == tiny(name).encode(text.encode())


@pytest.mark.parametrize("text", [None, 3, ["a"], "a\ud800b"])
def test_what_is_no_text_is_refused(text):
    with pytest.raises(BadArgument):
        tiny("smollm").encode(text)


@pytest.mark.parametrize("raw", [b"\xf4\x90\x80\x80", b"ab\xf7\xbf\xbf\xbf"])
def test_beyond_the_last_code_point(raw):
    with pytest.raises(TokenizerProblem, match="0x10FFFF"):
        tiny("smollm").encode(raw)
    assert tiny("spm").encode(raw)  # SPM never decodes


@pytest.mark.parametrize("token", [-1, 10**9, 2.0, "7", None])
def test_an_id_that_is_none(token):
    with pytest.raises(BadArgument):
        tiny("smollm").piece(token)
    with pytest.raises(BadArgument):
        tiny("smollm").decode([1, token])
    with pytest.raises(BadArgument):
        list(tiny("smollm").stream([token]))


def test_ids_may_be_numpy_integers():
    tok = tiny("smollm")
    assert tok.decode(np.array(tok.encode("hi there"))) == "hi there"


def test_a_begin_token_that_is_wanted_but_not_named():
    tok = tokenizer(bpe(["a", "b"], add_bos_token=True))
    assert tok.encode("a", add_special=False) == [0]
    with pytest.raises(TokenizerProblem, match="bos_token_id"):
        tok.encode("a")


# --- notes -------------------------------------------------------------------------------------
def test_two_begin_tokens_are_kept_and_said_once():
    said = []
    vocabulary = tiny("llama-bpe").vocabulary
    tok = Tokenizer(vocabulary, say=said.append)
    begin = vocabulary.roles["bos"]
    text = vocabulary.tokens[begin] + b"Hi"
    for _ in range(3):
        assert tok.encode(text, parse_special=True)[:2] == [begin, begin]
    assert len(said) == 1 and said == tok.notes and "two" in said[0]
    tok.encode(text, add_special=False, parse_special=True)
    assert len(said) == 1


def test_a_note_of_the_vocabulary_is_printed(capsys):
    Tokenizer(Vocabulary.from_metadata(bpe(["a"], pre="")))
    assert capsys.readouterr().err.count("tokenizer.ggml.pre is missing") == 1


# --- special tokens ----------------------------------------------------------------------------
def cut(raw, special, typed=b""):
    return [(raw[f.start : f.end], f.token) for f in partition(raw, special, typed)]


def test_the_longest_token_wins_even_against_an_earlier_one():
    assert cut(b"zyxyzzy", [(7, b"xyzzy", 0), (8, b"zyx", 0)]) == [(b"zy", None), (b"xyzzy", 7)]


def test_white_space_beside_a_token():
    assert cut(b"a \t<x> \n b", [(1, b"<x>", RSTRIP)])[2] == (b"b", None)
    assert cut(b"a \t<x> b", [(1, b"<x>", LSTRIP)])[0] == (b"a", None)
    assert cut(b" <x> ", [(1, b"<x>", LSTRIP | RSTRIP)]) == [(b"<x>", 1)]
    assert cut(b"", [(1, b"<x>", 0)]) == []


def test_typed_bytes_are_no_control_token():
    raw = b"<x><x>"
    assert cut(raw, [(1, b"<x>", CONTROL)], b"\0\1\0\0\0\0") == [(b"<x>", None), (b"<x>", 1)]
    assert cut(raw, [(1, b"<x>", 0)], b"\1" * 6) == [(b"<x>", 1), (b"<x>", 1)]
    assert cut(b"aaaa", [(1, b"aa", CONTROL)], b"\1\0\0\0") == [
        (b"a", None), (b"aa", 1), (b"a", None),
    ]  # fmt: skip


def test_control_tokens_in_text_need_to_be_asked_for():
    tok = tokenizer(bpe(["<", "s", ">", "<s>", "<u>"], types=[1, 1, 1, 3, 4], pre="qwen2"))
    assert tok.encode("<s><u>") == [0, 1, 2, 4]
    assert tok.encode("<s><u>", parse_special=True) == [3, 4]


# --- ids → text --------------------------------------------------------------------------------
@pytest.mark.parametrize("name", [n for n in TINY if n != "tiny-edge"])
@given(text=st.text(max_size=40))
def test_there_and_back(name, text):
    tok = tiny(name)
    if tok.vocabulary.clean_spaces or tok.vocabulary.add_space_prefix:
        text = text.replace(" ", "_").replace("▁", "_")  # decoding is lossy for these
    ids = tok.encode(text, add_special=False)
    assert tok.decode_bytes(ids, unparse_special=True) == text.encode("utf-8")


def test_a_piece_outside_the_byte_alphabet_is_spelled_out():
    tok = tokenizer(bpe(["a▁"]))
    assert tok.piece(0) == b"a[UNK_BYTE_0xe29681" + "a▁".encode() + b"]"


@pytest.mark.parametrize(
    "text, byte",
    [("<0x0A>", 10), ("<0xff>", 255), ("<0xZZ>", 0), ("<0x 7>", 7), ("<0x-1>", 255)],
)
def test_byte_tokens_are_read_as_c_reads_them(text, byte):
    tok = tokenizer(spm([text], types=[6]))
    assert tok.piece(0) == bytes([byte])


def test_a_byte_token_that_is_too_short():
    with pytest.raises(TokenizerProblem, match="<0x0A>"):
        tokenizer(spm(["<0"], types=[6])).piece(0)


@pytest.mark.parametrize(
    "raw, cleaned",
    [
        (b" ? x", b"? x"),
        (b"a  .", b"a ."),
        (b"a ' ' b", b"a'' b"),
        (b"a ' b ' c", b"a'b'c"),
        (b"it 's 'sx 't 're 'r", b"it's'sx 't're 'r"),
        (b" 's", b"'s"),
        (b"", b""),
    ],
)
def test_clean_spaces(raw, cleaned):
    assert clean_spaces(raw) == cleaned


def test_begin_token_and_leading_space():
    tok = tiny("spm")
    ids = tok.encode("Hello")
    assert tok.decode_bytes(ids, remove_special=True) == b" Hello"
    assert tok.decode_bytes(ids[1:]) == b"Hello"


# --- streams -----------------------------------------------------------------------------------
@pytest.mark.parametrize("name", TINY)
@given(text=st.text(max_size=30))
def test_a_stream_is_the_text_without_broken_characters(name, text):
    tok = tiny(name)
    ids = tok.encode(text)
    pieces = list(tok.stream(ids))
    whole = b"".join(tok.piece(i, special=False) for i in ids)
    if tok.vocabulary.add_space_prefix:
        whole = whole.removeprefix(b" ")
    assert "".join(pieces) == whole.decode("utf-8", "replace") and "" not in pieces
    if "\ufffd" not in text and name != "tiny-edge":  # tiny-edge has no token for some bytes
        assert not any("\ufffd" in piece for piece in pieces)


def test_what_never_completes_is_shown_at_the_end():
    tok = tokenizer(bpe(CHARACTERS, pre="gpt-2"))
    ids = tok.encode("é🦙")
    assert list(tok.stream(ids[:-1])) == ["é", "\ufffd"]
    stream = tok.new_stream()
    assert [stream.push(i) for i in ids] == ["", "é", "", "", "", "🦙"] and stream.flush() == ""


def test_a_continuation_keeps_its_space():
    tok = tiny("spm")
    ids = tok.encode("Hello", add_special=False)
    assert "".join(tok.stream(ids)) == "Hello"
    assert "".join(tok.stream(ids, continuing=True)) == " Hello"


@needs_shared("test_golden_tokens, on the tiny vocabularies")
def test_s15_recorded_pieces(tmp_path):
    import gzip

    import synapse_edu as se

    record = json.loads((CASES / "inputs" / "S15" / "case.json").read_text(encoding="utf-8"))
    for name, texts in record["expected"].items():
        packed = TOKENS / "vocabs" / f"{name}.gguf.gz"
        path = tmp_path / f"{name}.gguf"
        path.write_bytes(gzip.decompress(packed.read_bytes()))
        tok = se.load_tokenizer(path)
        for text, row in texts.items():
            pieces = [tok.piece(i, special=False) for i in row["ids"]]
            assert [p.hex() for p in pieces if p] == row["pieces_hex"]
            streamed = list(tok.stream(row["ids"]))
            assert "".join(streamed) == text and "\ufffd" not in "".join(streamed)


# --- bytes -------------------------------------------------------------------------------------
def test_the_byte_alphabet_is_a_bijection():
    assert len(set(CHARACTERS)) == 256 and from_alphabet("".join(CHARACTERS)) == bytes(range(256))
    assert to_alphabet(b" \n\xad") == ["Ġ", "Ċ", "Ń"]


@pytest.mark.parametrize(
    "raw, text",
    [
        (b"\xc0\x80", "\0"),
        (b"\xed\xa0\x80", "\ud800"),
        (b"\xe2\x82z", "\ufffd\ufffdz"),
        (b"\xf8\xff\x80", "\ufffd" * 3),
        (b"\xe0\x80\x80", "\0"),
        (b"\xc3", "\ufffd"),
    ],
)
def test_lenient_utf8(raw, text):
    assert decode_lenient(raw) == text and len(code_point_ends(raw)) == len(text)


@given(st.binary(max_size=30))
def test_lenient_utf8_never_loses_its_place(raw):
    try:
        text = decode_lenient(raw)
    except TokenizerProblem:
        return
    ends = code_point_ends(raw)
    assert len(ends) == len(text) and ends[-1:] == [len(raw)][: len(raw)]
    try:
        assert codecs.decode(raw, "utf-8") == text
    except UnicodeDecodeError:
        pass


@pytest.mark.parametrize("ids", [None, 5, np.array([[1, 2]]), np.array(3), [1.5], ["a"], [None]])
def test_what_cannot_be_decoded_is_refused(ids):
    with pytest.raises(BadArgument):
        tiny(TINY[0]).decode(ids)
