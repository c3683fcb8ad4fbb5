"""Hugging Face tokenizers → GGUF vocabularies: recorded ones turned back, and converted again."""

import json
import struct

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from token_files import TOKENS, tokenizer

from synapse_edu.checkpoint.container import open_container
from synapse_edu.checkpoint.hf_vocabulary import SPLITS, pre_tokenizer, vocabulary_from
from synapse_edu.errors import FileProblem, SynapseError, UnsupportedModel

TEXTS = ["Hello world's 12345 → naïve\n\n  end", "<|eot_id|> x", "", "日本語 42", "the the\tthe"]
REGEX = {name: regex for regex, name in SPLITS.items()}


def rule(pre):
    """The pre_tokenizer of ``tokenizer.json`` for a family."""
    if pre == "gpt-2":
        return {"type": "ByteLevel", "add_prefix_space": False, "use_regex": True}
    if pre == "smollm":
        digits = {"type": "Digits", "individual_digits": True}
        return {"type": "Sequence", "pretokenizers": [digits, {"type": "ByteLevel"}]}
    split = {"type": "Split", "pattern": {"Regex": REGEX[pre]}, "behavior": "Isolated"}
    return {
        "type": "Sequence",
        "pretokenizers": [split, {"type": "ByteLevel", "use_regex": False}],
    }


def write_json(path, value):
    path.write_text(json.dumps(value), encoding="utf-8")


def byte_level_folder(folder, m):
    """tokenizer.json and tokenizer_config.json from GGUF metadata."""
    tokens = [t.decode("utf-8") for t in m["tokenizer.ggml.tokens"]]
    types = m["tokenizer.ggml.token_type"]
    added = [
        {"id": i, "content": t, "special": bool(types[i] == 3)}
        for i, t in enumerate(tokens)
        if types[i] in (3, 4)
    ]
    write_json(
        folder / "tokenizer.json",
        {
            "model": {
                "type": "BPE",
                "vocab": {t: i for i, t in enumerate(tokens) if types[i] == 1},
                "merges": [x.decode("utf-8") for x in m["tokenizer.ggml.merges"]],
            },
            "added_tokens": added,
            "pre_tokenizer": rule(m["tokenizer.ggml.pre"]),
        },
    )
    names = {
        kind: tokens[int(m[f"tokenizer.ggml.{kind}_token_id"])]
        for kind in ("bos", "eos")
        if f"tokenizer.ggml.{kind}_token_id" in m
    }
    config = {f"{kind}_token": {"content": text} for kind, text in names.items()}
    for key in ("add_bos_token", "add_eos_token"):
        if f"tokenizer.ggml.{key}" in m:
            config[key] = bool(m[f"tokenizer.ggml.{key}"])
    write_json(folder / "tokenizer_config.json", config | {"chat_template": "{{ bos_token }}"})


@pytest.mark.parametrize("family", ["llama-bpe", "qwen2", "tekken", "smollm", "gpt-2"])
def test_byte_level(tmp_path, family):
    m = open_container(TOKENS / f"tiny-{family}.gguf").metadata
    byte_level_folder(tmp_path, m)
    n = len(m["tokenizer.ggml.tokens"])
    found = vocabulary_from(tmp_path, n + 3)
    assert found["tokenizer.ggml.model"] == "gpt2"
    assert found["tokenizer.ggml.pre"] == m["tokenizer.ggml.pre"]
    types = np.append(m["tokenizer.ggml.token_type"], [5, 5, 5])
    kept = np.isin(types, [1, 3, 4])  # tokenizer.json knows no other types
    texts = [*m["tokenizer.ggml.tokens"], b"", b"", b""]
    want = [text if kept[i] else b"[PAD%d]" % i for i, text in enumerate(texts)]
    assert found["tokenizer.ggml.tokens"] == want and not kept[n:].any()
    assert found["tokenizer.ggml.merges"] == list(m["tokenizer.ggml.merges"])
    assert np.array_equal(found["tokenizer.ggml.token_type"], np.where(kept, types, 5))
    assert found["tokenizer.chat_template"] == "{{ bos_token }}"
    a, b = tokenizer(dict(m)), tokenizer(found)
    for text in TEXTS:
        for special in (False, True):
            assert a.encode(text, parse_special=special) == b.encode(text, parse_special=special)


def test_merges_as_pairs_and_ids_from_config(tmp_path):
    m = open_container(TOKENS / "tiny-smollm.gguf").metadata
    byte_level_folder(tmp_path, m)
    saved = json.loads((tmp_path / "tokenizer.json").read_text(encoding="utf-8"))
    saved["model"]["merges"] = [x.split(" ") for x in saved["model"]["merges"]]
    write_json(tmp_path / "tokenizer.json", saved)
    (tmp_path / "tokenizer_config.json").unlink()
    write_json(tmp_path / "config.json", {"bos_token_id": 2, "eos_token_id": 3})
    found = vocabulary_from(tmp_path, len(m["tokenizer.ggml.tokens"]))
    assert found["tokenizer.ggml.merges"] == list(m["tokenizer.ggml.merges"])
    assert found["tokenizer.ggml.bos_token_id"] == 2 and found["tokenizer.ggml.eos_token_id"] == 3
    assert type(found["tokenizer.ggml.bos_token_id"]) is np.uint32


# --- SentencePiece -------------------------------------------------------------------------------
def message(*fields):
    """A protocol-buffer message of (number, bytes | float | int)."""
    out = b""
    for number, value in fields:
        if isinstance(value, bytes):
            out += varint(number << 3 | 2) + varint(len(value)) + value
        elif isinstance(value, float):
            out += varint(number << 3 | 5) + struct.pack("<f", value)
        else:
            out += varint(number << 3) + varint(value)
    return out


def varint(n):
    out = b""
    while n > 127:
        out, n = out + bytes([n & 127 | 128]), n >> 7
    return out + bytes([n])


def sentencepiece(m):
    """tokenizer.model from GGUF metadata, with settings that must be passed over."""
    rows = zip(
        m["tokenizer.ggml.tokens"],
        m["tokenizer.ggml.scores"].tolist(),
        m["tokenizer.ggml.token_type"].tolist(),
        strict=True,
    )
    pieces = [message((1, text), (2, float(score)), (3, kind)) for text, score, kind in rows]
    trainer = message((1, b"corpus.txt"), (4, 300), (10, 0.5))
    return message(*[(1, piece) for piece in pieces], (2, trainer))


@pytest.mark.parametrize("name", ["spm", "spm-nopfx", "spm-phi3"])
def test_sentencepiece(tmp_path, name):
    m = open_container(TOKENS / f"tiny-{name}.gguf").metadata
    (tmp_path / "tokenizer.model").write_bytes(sentencepiece(m))
    n = len(m["tokenizer.ggml.tokens"])
    write_json(
        tmp_path / "tokenizer_config.json",
        {
            "add_bos_token": True,
            "added_tokens_decoder": {str(n): {"content": "<extra▁one>", "special": False}},
        },
    )
    found = vocabulary_from(tmp_path, n + 2)
    assert found["tokenizer.ggml.model"] == "llama"
    assert found["tokenizer.ggml.tokens"][:n] == list(m["tokenizer.ggml.tokens"])
    assert found["tokenizer.ggml.tokens"][n:] == [b"<extra one>", b"[PAD%d]" % (n + 1)]
    assert np.array_equal(found["tokenizer.ggml.scores"][:n], m["tokenizer.ggml.scores"])
    want = np.append(m["tokenizer.ggml.token_type"], [4, 5])
    assert np.array_equal(found["tokenizer.ggml.token_type"], want)
    assert found["tokenizer.ggml.add_bos_token"] == np.True_


def test_no_tokenizer_is_no_vocabulary(tmp_path):
    assert vocabulary_from(tmp_path, 10) == {}


# --- refusals ------------------------------------------------------------------------------------
GOOD = {"model": {"type": "BPE", "vocab": {"a": 0}, "merges": []}, "pre_tokenizer": rule("gpt-2")}
BAD = {
    "wordpiece": ({"model": {"type": "WordPiece"}}, "only vocabularies of the kind BPE"),
    "bytes": ({"model": {"vocab": {}, "byte_fallback": True}}, "tokenizer.model"),
    "id": ({**GOOD, "model": {"vocab": {"a": "0"}}}, "is damaged"),
    "negative": ({**GOOD, "model": {"vocab": {"a": -1}}}, "is damaged"),
    "one id": ({**GOOD, "model": {"vocab": {"a": 1, "b": 1}, "merges": ["a b"]}}, "have one id, 1"),
    "no merges": (GOOD, "no merges"),
    "added": ({**GOOD, "added_tokens": [{"id": 1}]}, "added_tokens are damaged"),
    "cut": ({**GOOD, "pre_tokenizer": {"type": "Whitespace"}}, "'Whitespace'"),
    "regex": ({**GOOD, "pre_tokenizer": None}, "not known"),
}


@pytest.mark.parametrize("name", BAD)
def test_refusals(tmp_path, name):
    value, found = BAD[name]
    write_json(tmp_path / "tokenizer.json", value)
    with pytest.raises(SynapseError, match=found):
        vocabulary_from(tmp_path, 4)


def test_another_regex_is_never_guessed():
    one = rule("llama-bpe")
    one["pretokenizers"][0]["pattern"]["Regex"] += "|x"
    with pytest.raises(UnsupportedModel, match="not known"):
        pre_tokenizer(one)
    one = rule("qwen2")
    one["pretokenizers"][0]["behavior"] = "Removed"
    with pytest.raises(UnsupportedModel, match="not known"):
        pre_tokenizer(one)


@settings(
    max_examples=200, deadline=None, derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)  # fmt: skip
@given(st.integers(0, 2**20), st.binary(min_size=1, max_size=4), st.booleans())
def test_a_damaged_sentencepiece_model(tmp_path, where, new, cut):
    raw = bytearray(sentencepiece(open_container(TOKENS / "tiny-spm.gguf").metadata))
    where %= len(raw)
    raw[where : None if cut else where + len(new)] = new
    (tmp_path / "tokenizer.model").write_bytes(raw)
    try:
        vocabulary_from(tmp_path, 400)
    except SynapseError:
        pass


def test_a_file_that_is_no_sentencepiece_model(tmp_path):
    (tmp_path / "tokenizer.model").write_bytes(b"IQ== 0\nIg== 1\n")
    with pytest.raises(FileProblem, match="not a SentencePiece model"):
        vocabulary_from(tmp_path, 4)
